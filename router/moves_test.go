package router

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A replica tells what came and went of late, also of a backend where nothing of it runs
// any more, and no longer than anybody needs it.
func TestAReplicaTellsWhatCameAndWent(t *testing.T) {
	b := newBench(t, []string{"x", "y"}, chatQueue())
	begin := b.now
	ms := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Millisecond) }
	l := b.place("chat").Lease
	on := l.Target().Backend
	if got := b.Own(ms(10))[on]; got.Waiting != 1 || len(got.Moves) > 0 {
		t.Errorf("while one waits: %+v", got)
	}
	l.FirstToken(ms(50))
	l.Done(ms(120), 7)
	want := map[string]Load{on: {Moves: []Move{{At: ms(50), By: 1}, {At: ms(120), By: -1}}}}
	got := b.Own(ms(200))
	for name, l := range got {
		l.Level = Level{} // it saw a stream
		got[name] = l
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("80 ms after its end (-want +got):\n%s", diff)
	}
	if got := b.Own(ms(120).Add(movesReach + time.Millisecond)); len(got) > 0 {
		t.Errorf("after %v: %+v", movesReach, got)
	}
}

// The newest are told where there are too many.
func TestMovesAreBounded(t *testing.T) {
	var m moves
	now := time.Unix(1, 0)
	for i := range 3 * mostMoves {
		now = now.Add(time.Millisecond)
		m.note(now, i+1)
	}
	got := m.since(now.Add(-time.Second))
	if len(got) != mostMoves || !got[len(got)-1].At.Equal(now) {
		t.Errorf("%d moves up to %v, want %d up to %v", len(got), got[len(got)-1].At, mostMoves, now)
	}
}
