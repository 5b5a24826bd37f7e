package router

import (
	"math"
	"testing"
	"time"
)

// sparing is a bench with a grace, ten streams of which run for a while, each of whom
// got tps tokens/s, and so many others ended lately.
func sparing(t *testing.T, curve curve, grace time.Duration, tps float64, ended int) *bench {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: grace}}, Route{Name: "nightly", Class: Batch})
	b.learn("x", curve)
	x := Target{Backend: "x", Model: "m"}
	var leases []*Lease
	for range 10 {
		leases = append(leases, b.force(Request{Route: "chat", Stream: true}, x).Lease)
	}
	b.run(leases, tps, 20*time.Second)
	for range ended {
		l := b.force(Request{Route: "chat", Stream: true}, x).Lease
		l.FirstToken(b.now)
		l.Done(b.now, 100)
	}
	return b
}

// While all are ahead of their floor and others end, one more may make all a little
// slower than it.
func TestAllSpareALittle(t *testing.T) {
	// 30.6 tokens/s at 10 and 28.9 at 11: 0.96 of the floor.
	curve := form{a: 1.0 / 60, b: (1/30.6 - 1.0/60) / 10, answer: 150}
	for _, c := range []struct {
		name  string
		grace time.Duration
		shown bool // streams need a margin
		tps   float64
		ended int
		edit  func(*Request)
		want  Reason
	}{
		{"all ahead, others end", time.Second, false, 30.6, 8, nil, OK},
		{"nobody ends", time.Second, false, 30.6, 0, nil, ReasonOwnFloor},
		{"few end", time.Second, false, 30.6, 3, nil, ReasonOwnFloor},
		{"no grace", 0, false, 30.6, 8, nil, ReasonOwnFloor},
		{"less than two thirds of a lead are spent", time.Second, false, 29.4, 8, nil, OK},
		{"a lead is spent", time.Second, false, 28.95, 8, nil, ReasonOwnFloor},
		{"a margin is needed", time.Second, true, 30.6, 8, nil, ReasonOwnFloor},
		{"who has no floor", time.Second, false, 30.6, 8, wish(0), ReasonProtects},
		{"three at once", time.Second, false, 30.6, 8, sequences(3), ReasonOwnFloor},
	} {
		t.Run(c.name, func(t *testing.T) {
			known := curve
			b := sparing(t, unshown{known}, c.grace, c.tps, c.ended)
			if c.shown {
				known.margin = 0.01
				b.learn("x", known)
			}
			if c.edit == nil {
				c.edit = func(*Request) {}
			}
			b.wantReason("chat", c.want, c.edit)
			if c.want == OK {
				got := b.seen(Request{Route: "chat", Stream: true})[0]
				if got.Basis != ByGrace || math.Abs(got.Low/(c.tps*28.9/30.6)-1) > 0.01 {
					t.Errorf("%v of %.1f tokens/s, want grace of %.1f", got.Basis, got.Low, c.tps*28.9/30.6)
				}
			}
		})
	}
}

// Where others run beside Pacer or on other replicas, those who end are held against
// the own streams alone, which they are counted among.
func TestEndsAreOfTheOwnStreams(t *testing.T) {
	curve := form{a: 1.0 / 60, b: (1/30.6 - 1.0/60) / 10, answer: 150}
	b := sparing(t, unshown{curve}, time.Second, 30.6, 8)
	g := b.backends[0].groups[0]
	if got := g.ends; math.Abs(got-8) > 1e-9 {
		t.Errorf("%v have ended, want 8", got)
	}
	b.sleep(levelMemory)
	b.tick()
	if got := g.ends; math.Abs(got-8/math.E) > 0.1 {
		t.Errorf("%v have ended ten seconds later, want %v", got, 8/math.E)
	}
	leases := b.fill("chat", 1)
	for _, l := range leases {
		l.Done(b.now, 0)
	}
	if got := g.ends; got > 8/math.E+0.1 {
		t.Errorf("who failed counts as one that ended: %v", got)
	}
}
