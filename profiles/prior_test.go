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
			b.Prior(Target{Backend: "gpu"}, c.points)
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
