package profiles

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/racetest"
)

func TestRestartIsBelievedFromTheFirstWindows(t *testing.T) {
	for _, c := range []struct{ factor, after float64 }{{1.5, 1.5}, {1.3, 1.3}, {3, 3}, {1 / 1.3, math.Exp(-1.8 * fasterStep)}} {
		rng := rand.New(rand.NewPCG(5, 6))
		var d drift
		d.shifts(100, always(1), 0.04, rng)
		d.restarted()
		ln, _ := d.shifts(3, always(c.factor), 0.04, rng)
		if math.Abs(ln-math.Log(c.after)) > 0.07 {
			t.Errorf("step time × %.2f: shifted by %.3f after three windows, want %.3f", c.factor, ln, math.Log(c.after))
		}
	}
}

func TestRestartWithTheSameSettingsChangesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const restarts = 500
	var d drift
	off := 0
	for range restarts {
		d.restarted()
		if ln, _ := d.shifts(60, always(1), 0.05, rng); math.Abs(ln) > 0.05 {
			off++
		}
	}
	if share := float64(off) / restarts; share > 0.03 {
		t.Errorf("after %.1f %% of the restarts the curve was moved by more than 5 %%, want at most 3 %%", 100*share)
	}
}

// What was believed of the engine before it went down is not believed of the one
// that came back.
func TestRestartEndsADrift(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	var d drift
	d.shifts(50, always(1), 0.03, rng)
	ln, _ := d.shifts(20, always(1.6), 0.03, rng)
	if math.Abs(ln-math.Log(1.6)) > 0.05 {
		t.Fatalf("1.6 times slower: shifted by %.3f, want %.3f", ln, math.Log(1.6))
	}
	d.restarted()
	for range 2 {
		ln += d.see(-ln, 0, 0, ln)
	}
	if math.Abs(ln) > 0.03 {
		t.Errorf("back at its old speed: still shifted by %.3f after two windows", ln)
	}
}

// restart lets the engine die and come back after pause, factor times as slow.
func (e *engine) restart(b *Book, pause time.Duration, factor float64) {
	for _, r := range slices.Clone(e.running) {
		e.running = slices.DeleteFunc(e.running, func(o *request) bool { return o == r })
		e.occ.Set(e.at(e.now), len(e.running))
		r.stream.Close(e.at(e.now), false)
	}
	for _, r := range e.waiting {
		r.stream.Close(e.at(e.now), false)
	}
	e.waiting = nil
	e.now += pause
	e.next = max(e.next, e.now)
	e.turn = max(e.turn, e.now)
	e.uneven = func(int) float64 { return factor }
	b.Fold(e.at(e.now))
	e.folded = e.now
}

// TestRestartedEngine lets an engine die under bursts and come back: 1.5 times
// slower, the curve is within 10 % after three windows at most; the same, g
// stays where it was. Without Restarted the alarm takes its usual time.
func TestRestartedEngine(t *testing.T) {
	if racetest.On {
		t.Skip("hours of virtual time")
	}
	const seeds = 15
	for _, c := range []struct {
		name   string
		factor float64
		told   bool
	}{{"slower", 1.5, true}, {"slower, untold", 1.5, false}, {"the same", 1, true}} {
		var took []time.Duration
		var moved []float64
		for seed := range int64(seeds) {
			b := NewBook(Options{})
			e := newEngine(seed, b)
			e.rate = 2
			e.run(100_000)
			e.restart(b, 8*time.Second, c.factor)
			if c.told {
				b.Restarted(e.target.Backend)
			}
			from, at, worst := e.now, time.Hour, 0.0
			e.lasting(2*time.Minute, func() bool {
				curve, off := b.Curve(e.target), 0.0
				for _, n := range []int{1, 2, 4, 8, 16} {
					off = max(off, math.Abs(curve.TPS(n)*c.factor*e.fit.tpot(float64(n), curve.At(n).P)-1))
				}
				worst = max(worst, math.Abs(curve.Scale()-1))
				if off <= 0.1 && at == time.Hour {
					at = e.now - from
				}
				return false
			})
			took, moved = append(took, at), append(moved, worst)
		}
		slices.Sort(took)
		slices.Sort(moved)
		t.Logf("%s: within 10 %% after %v (median; all %v); g at most %.3f off (median), %.3f (worst)", c.name, took[seeds/2], took, moved[seeds/2], moved[seeds-1])
		median := took[seeds/2]
		switch {
		case c.factor == 1 && (moved[seeds/2] > 0.01 || moved[seeds*9/10] > 0.05):
			t.Errorf("%s: g went off by %.3f (median) and %.3f (9 in 10), want at most 0.01 and 0.05", c.name, moved[seeds/2], moved[seeds*9/10])
		case c.factor > 1 && c.told && median > 3*windowLength+windowGrace:
			t.Errorf("%s: within 10 %% after %v, want three windows", c.name, median)
		case c.factor > 1 && !c.told && median <= 3*windowLength+windowGrace:
			t.Errorf("%s: within 10 %% after %v without being told: the test shows nothing", c.name, median)
		}
	}
}

// TestABackendThatRecovers becomes 1.3 times slower for a while and then is as
// before. While it comes back the curve does not overshoot, and the bound promises
// nowhere more than the engine gives.
func TestABackendThatRecovers(t *testing.T) {
	if racetest.On {
		t.Skip("hours of virtual time")
	}
	const seeds = 5
	for _, slow := range []time.Duration{2 * time.Minute, 10 * time.Minute, time.Hour} {
		var back []time.Duration
		highest, over, promised := 0.0, 0.0, 0.0
		for seed := range int64(seeds) {
			b := NewBook(Options{})
			e := newEngine(seed, b)
			e.rate = 2
			e.run(200_000)
			e.uneven = func(int) float64 { return 1.3 }
			e.lasting(slow, func() bool { return false })
			e.uneven = nil
			from, at := e.now, time.Hour
			e.lasting(10*time.Minute, func() bool {
				c := b.Curve(e.target)
				highest = max(highest, c.Scale())
				lowest, off := math.Inf(1), 0.0
				for _, n := range []int{1, 2, 3, 4, 6, 8, 12, 16, 24} {
					truth := 1 / e.fit.tpot(float64(n), c.At(n).P)
					lowest = min(lowest, truth)
					promised = max(promised, c.Low(n, 0)/lowest)
					over = max(over, c.TPS(n)/truth)
					off = max(off, math.Abs(c.TPS(n)/truth-1))
				}
				if off <= 0.1 && at == time.Hour {
					at = e.now - from
				}
				return false
			})
			back = append(back, at)
		}
		slices.Sort(back)
		t.Logf("slow for %v: within 10 %% after %v; g at most %.3f, curve at most %.3f and bound at most %.3f of the truth", slow, back, highest, over, promised)
		if promised > 1 {
			t.Errorf("slow for %v: the bound promises %.3f of what the engine gives, want at most 1", slow, promised)
		}
		if over > 1.1 {
			t.Errorf("slow for %v: the curve is at %.3f of what the engine gives, want at most 1.1", slow, over)
		}
	}
}
