package profiles

import (
	"math"
	"testing"
)

// steepening is an engine whose step bends upwards, with a few steps at the highest n.
func steepening(n float64) float64 { return 0.012 + 1e-4*n + 1.2e-5*n*n }

func sumsBy(tpot func(n float64) float64) (s Sums) {
	for _, n := range []int{1, 2, 4, 6, 8, 10, 13, 16, 20, 24, 28, 33, 40, 48} {
		steps := 1500.0
		if n > 30 {
			steps = 80
		}
		at := sumsOf(Fit{A: tpot(float64(n))}, even(steps, n), flat)
		b := &at.bins[BinOf(n)]
		b.YY *= 1 + 5/steps // windows differ, more where they are short
		s.Add(Delta{Sums: at}, 0)
	}
	return s
}

// The fit is too quick at the highest n of an engine that steepens, and bins of few steps
// are hardly believed against it: the bound goes by a shape that steepens too.
func TestTheBoundSteepensWithTheEngine(t *testing.T) {
	s := sumsBy(steepening)
	c := newCurve(&s, nil, 0.02)
	truth := 1 / steepening(48)
	if !(c.TPS(48) > 1.05*truth) {
		t.Errorf("TPS(48) is %.1f where %.1f is true: nothing is shown here", c.TPS(48), truth)
	}
	for _, n := range []int{33, 40, 48} {
		if low, most := c.Low(n, 0), 1/steepening(float64(n)); low > most {
			t.Errorf("low(%d) is %.2f, above the true %.2f", n, low, most)
		}
	}
	if low := c.Low(48, 0); low < 0.85*truth {
		t.Errorf("low(48) is %.1f, far below the true %.1f", low, truth)
	}
}

// For what flattens that shape is the fit.
func TestAnEngineThatFlattensHasNoOtherShape(t *testing.T) {
	s := sumsBy(func(n float64) float64 { return 0.01 + 0.002*math.Sqrt(n) })
	c := newCurve(&s, nil, 0.02)
	x := s.rising(c.fit, s.against(c.fit), c.hi)
	for _, n := range []int{1, 8, 24, 48} {
		within(t, "its speed over that of the curve", min(c.with(x, n)/c.TPS(n), 1), 1, 0.002)
	}
	if v := c.with(rising{}, 48); !math.IsInf(v, 1) {
		t.Errorf("no shape says %v at 48", v)
	}
}

// Beyond the support the shape goes on as the fit does: how steep it would be there
// nobody knows.
func TestASteepShapeEndsAtTheSupport(t *testing.T) {
	s := sumsBy(steepening)
	c := newCurve(&s, nil, 0.02)
	x := s.rising(c.fit, s.against(c.fit), c.hi)
	within(t, "share of the fit's speed", c.with(x, 2*c.hi)*c.fit.tpot(float64(2*c.hi), 0), c.with(x, c.hi)*c.fit.tpot(float64(c.hi), 0), 1e-9)
}
