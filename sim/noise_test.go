package sim

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestNoiseHasItsMeanSpreadAndMemory(t *testing.T) {
	const deviation, steps = 0.10, 200_000
	n := newNoise(deviation, rand.New(rand.NewPCG(7, 0)))
	var sum, squares, products float64
	last := n.next()
	for range steps {
		x := n.next()
		sum += x
		squares += (x - 1) * (x - 1)
		products += (x - 1) * (last - 1)
		last = x
	}
	// Standard errors: mean 0.1·√3/√200k = 0.0004; the others about 0.004 of theirs.
	if mean := sum / steps; math.Abs(mean-1) > 0.002 {
		t.Errorf("mean factor %v, want 1", mean)
	}
	if got := math.Sqrt(squares / steps); math.Abs(got-deviation) > 0.002 {
		t.Errorf("standard deviation %v, want %v", got, deviation)
	}
	if got := products / squares; math.Abs(got-noiseMemory) > 0.02 {
		t.Errorf("correlation of neighbours %v, want %v", got, noiseMemory)
	}
}

func TestNoNoiseIsExactlyOne(t *testing.T) {
	n := newNoise(0, rand.New(rand.NewPCG(7, 0)))
	for range 3 {
		if x := n.next(); x != 1 {
			t.Fatalf("factor %v, want 1", x)
		}
	}
}
