package redisstore_test

import (
	"context"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/redistest"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/learn"
	"github.com/pacer-dev/pacer/profiles/storetest"
)

// The whole of learning over a server that dies and comes back empty: what was
// known stays known, what came meanwhile arrives once, and a gateway that
// starts afterwards knows it all.
func TestLearningSurvivesAnEmptiedServer(t *testing.T) {
	s := redistest.Start(t)
	book := profiles.NewBook(profiles.Options{})
	book.Ensure(gpu)
	type state struct {
		up  bool
		lag time.Duration
	}
	states := make(chan state)
	ctx, cancel := context.WithCancel(t.Context())
	loop, err := learn.New(learn.Options{
		Book: book, Store: store(t, s), Replica: "a", Every: 5 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
		OnCurves: func(time.Time, map[profiles.Target]*profiles.Curve) {},
		OnStore: func(up bool, lag time.Duration) {
			select {
			case states <- state{up, lag}:
			case <-ctx.Done():
			}
		},
	})
	must.Do(t, err)
	loopDone := make(chan error, 1)
	go func() { loopDone <- loop.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-loopDone
	})
	// until waits for two exchanges in a row after which ok holds: the first
	// may have begun before what the test did last.
	until := func(what string, ok func(state) bool) {
		t.Helper()
		timeout := time.After(time.Minute)
		for inRow := 0; inRow < 2; {
			select {
			case st := <-states:
				if inRow++; !ok(st) {
					inRow = 0
				}
			case <-timeout:
				t.Fatalf("timed out: %s", what)
			}
		}
	}
	shared := func(st state) bool { return st.up && st.lag == 0 }
	known := func(what string, book *profiles.Book, answers float64) {
		t.Helper()
		if got, want := book.Curve(gpu).Tokens(), answers*storetest.PerAnswer; math.Abs(got-want) > 0.02*want {
			t.Errorf("%s: the curve rests on %.1f tokens, want about %v", what, got, want)
		}
	}

	storetest.Teach(book, gpu)
	until("the first answer is shared", shared)
	known("before", book, 1)
	s.Kill()
	until("the loss is noticed", func(st state) bool { return !st.up })
	storetest.Teach(book, gpu)
	until("the second answer waits", func(st state) bool { return !st.up && st.lag > 0 })
	known("without the server", book, 2)
	s.Restart()
	until("all is shared again", shared)
	known("with the emptied server", book, 2)

	reborn := profiles.NewBook(profiles.Options{})
	reborn.Ensure(gpu)
	second, err := learn.New(learn.Options{
		Book: reborn, Store: store(t, s), Replica: "b", Log: slog.New(slog.DiscardHandler),
		OnCurves: func(time.Time, map[profiles.Target]*profiles.Curve) {},
	})
	must.Do(t, err)
	second.Start(t.Context())
	known("a gateway that starts afterwards", reborn, 2)
}
