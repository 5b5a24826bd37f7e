package profiles

import (
	"math"
	"testing"
)

// TestRungsCoverEveryLevel: the rungs follow each other without a gap, each is
// at most a 64th of what lies below it wide, and rungOf finds it.
func TestRungsCoverEveryLevel(t *testing.T) {
	last := 0
	for n := 1; n <= maxLevel; n++ {
		i := rungOf(n)
		top, below := rungTop(i), 0
		if i > 0 {
			below = rungTop(i - 1)
		}
		if i != last && i != last+1 || n <= below || n > top {
			t.Fatalf("n = %d is on rung %d of %d to %d, after rung %d", n, i, below+1, top, last)
		}
		if width := top - below; n <= exactRungs && width != 1 || width > 1 && width > below>>rungBits {
			t.Fatalf("rung %d of %d to %d is too wide", i, below+1, top)
		}
		last = i
	}
	if got := rungTop(last); got != maxLevel {
		t.Errorf("the last rung ends at %d, want %d", got, maxLevel)
	}
	if got := rungOf(-1); got != 0 {
		t.Errorf("n = -1 is on rung %d, want 0", got)
	}
}

// TestCurveBetweenRungs compares with what a table of every n would say: the
// bound is at most a 64th of an octave too careful, and the largest n that
// keeps a floor is the same.
func TestCurveBetweenRungs(t *testing.T) {
	steps := map[int]float64{}
	for i := range NumBins - 4 {
		_, hi := BinBounds(i)
		steps[hi] = 1000
	}
	s := sumsOf(Fit{A: 0.01, B: 0.002, C: 0.0005}, steps, flat)
	const margin = 0.1
	c := newCurve(&s, nil, margin)
	_, hi := c.Support()
	running := math.Inf(1)
	for n := 1; n <= c.top; n++ {
		v := c.TPS(n) * (1 - margin)
		if n > hi {
			v *= extrapolated
		}
		running = min(running, v)
		low := c.Low(n, 0)
		if !(low <= running*(1+1e-9)) || low < 0.98*running {
			t.Fatalf("low(%d) = %v, want 98 to 100 %% of %v", n, low, running)
		}
	}
	for n := 1; n <= c.top; n += 1 + n/50 {
		floor := c.TPS(n)
		want := 0
		for m := 1; m <= c.top; m++ {
			if c.TPS(m) >= floor {
				want = m
			}
		}
		if got := c.MaxConcurrency(floor); got != want {
			t.Errorf("%d streams keep %v tokens/s, want %d", got, floor, want)
		}
	}
	if got := c.MaxConcurrency(c.TPS(1) + 1); got != 0 {
		t.Errorf("%d streams are faster than one alone, want 0", got)
	}
}
