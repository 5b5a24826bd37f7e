package profiles

import (
	"math"
	"testing"
)

// What a prior says beyond the end of curves is not lost: they reach their end.
func TestAPriorReachesItsLastPoint(t *testing.T) {
	for _, c := range []struct {
		name   string
		points []PriorPoint
		hi     int
		tps    float64 // there
	}{
		{"within", []PriorPoint{{N: 1, TPS: 50}, {N: 5000, TPS: 20}}, 5000, 20},
		{"at the end", []PriorPoint{{N: 1, TPS: 50}, {N: maxLevel, TPS: 20}}, maxLevel, 20},
		{"on both sides", []PriorPoint{{N: maxLevel / 2, TPS: 40}, {N: 2 * maxLevel, TPS: 10}}, maxLevel, 20},
		{"one behind it", []PriorPoint{{N: 1, TPS: 50}, {N: 3 * maxLevel, TPS: 50}, {N: 1 << 20, TPS: 5}}, maxLevel, 50},
		{"behind it alone", []PriorPoint{{N: 1 << 20, TPS: 5}}, maxLevel, 5},
		{"beside one that is none", []PriorPoint{{N: 1, TPS: 50}, {N: 64, TPS: 30}, {N: 2 * maxLevel, TPS: -1}}, 64, 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := NewBook(Options{})
			b.Prior(Target{Backend: "gpu"}, c.points, 0)
			curve := b.Curve(Target{Backend: "gpu"})
			if _, hi := curve.Support(); hi != c.hi {
				t.Errorf("it reaches %d, want %d", hi, c.hi)
			}
			if got := curve.TPS(c.hi); math.Abs(got/c.tps-1) > 1e-9 {
				t.Errorf("%v tokens/s at %d, want %v", got, c.hi, c.tps)
			}
			if curve.Low(min(2*c.hi, maxLevel), 0) <= 0 {
				t.Error("its bound ends before twice of that")
			}
		})
	}
}

// What a prior says of prompts counts until streams show what they cost.
func TestAPriorKnowsWhatPromptsCost(t *testing.T) {
	const told, truth = 300e-6, 50e-6
	points := []PriorPoint{{1, 100}, {16, 50}}
	b := NewBook(Options{})
	gpu := Target{Backend: "gpu"}
	b.Prior(gpu, points, told)
	c := b.Curve(gpu)
	within(t, "seconds of a prompt token", c.SecondsPerPromptToken(), told, 1e-9)
	within(t, "the bound beside 20 prompt tokens a step", c.Low(1, 20), 1/(1/c.Low(1, 0)+20*told), 1e-9)
	for _, none := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		b.Prior(gpu, points, none)
		if got := b.Curve(gpu).SecondsPerPromptToken(); got != 0 {
			t.Errorf("a prompt token takes %v s by a prior of %v, want 0, unknown", got, none)
		}
	}

	pr := newPrior(points)
	pr.cost = told
	f := Fit{A: 0.01, D: truth}
	without := sumsOf(f, even(3000, 1, 2, 4), flat)
	d := newCurve(&without, pr, 0.1)
	within(t, "seconds of a prompt token while none was seen", d.SecondsPerPromptToken(), told, 0.01)
	with := sumsOf(f, even(30000, 1, 2, 4, 8), func(n int) float64 { return float64(100 * (n % 3)) })
	d = newCurve(&with, pr, 0.1)
	within(t, "seconds of a prompt token once many were", d.SecondsPerPromptToken(), truth, 0.1)
}
