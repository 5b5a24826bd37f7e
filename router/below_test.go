package router

import (
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// Whoever gets less than what was asked for is counted, however the stream was
// placed.
func TestStreamsBelowTheirFloorAreCounted(t *testing.T) {
	effort := Route{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: []Step{{Kind: BestEffort}}}
	for _, c := range []struct {
		name   string
		routes []Route
		curve  form
		run    int // streams before the one in question
		tps    float64
		want   int
	}{
		{"above", []Route{effort}, carrying(20, 30, 60), 0, 31, 0},
		{"below", []Route{effort}, carrying(20, 30, 60), 0, 29, 1},
		{"by best effort", []Route{effort}, carrying(2, 30, 40), 2, 29, 1},
		{"out of reach", []Route{effort}, carrying(2, 10, 20), 0, 20, 1},
		{"spilled to a route without a floor", []Route{
			{Name: "chat", SLO: SLO{MinTPS: 30}, Targets: targets("y"), OnInfeasible: []Step{{Kind: Spill, Route: "small"}}},
			{Name: "small"},
		}, carrying(20, 30, 60), 0, 29, 1},
		{"nothing asked", []Route{{Name: "chat"}}, carrying(20, 30, 60), 0, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, []string{"x", "y"}, c.routes...)
			b.health("y", Down)
			b.learn("x", c.curve)
			b.run(b.fill("chat", c.run), 35, time.Second)
			d := b.place("chat")
			if d.Lease == nil {
				t.Fatalf("got %+v, want a lease", d)
			}
			x, y := GroupID{Backend: "x"}, GroupID{Backend: "y"}
			d.Lease.FirstToken(b.now)
			b.sleep(time.Second)
			d.Lease.Progress(b.now, profiles.Count{Tokens: c.tps})
			if got := b.Below(b.now); got[x] != c.want || got[y] != 0 || len(got) != 2 {
				t.Errorf("below their floor: %v, want %d on x", got, c.want)
			}
			d.Lease.Done(b.now, c.tps)
			if got := b.Below(b.now); got[x] != 0 {
				t.Errorf("below their floor: %v after it ended, want none", got)
			}
		})
	}
}
