package profiles

import (
	"math"
	"testing"
)

// stillBin is a bin of n that was as fast as f in steps of quiet time, over so many
// windows that were each off by the share each; beside as many steps with prompts.
func stillBin(f Fit, n, steps, windows, each float64) binSums {
	t := f.tpot(n, 0)
	b := binSums{K: 2 * steps, T: 2 * steps * t, Y: 2 * steps * n, S: 2 * steps * t * n, W: windows}
	b.R, b.N = b.Y*math.Sqrt(n), b.Y*n
	b.Kq, b.Tq, b.Wq = steps, steps*t, windows
	off := each * b.Tq / windows
	b.Vq = windows * off * off
	// All time is told by its windows a tenth as well.
	b.SS, b.YY = b.S*b.S/windows*(1+100*each*each), b.Y*b.Y/windows
	b.SY = b.S * b.Y / windows
	return b
}

func TestQuietErrorByHand(t *testing.T) {
	b := stillBin(Fit{A: 0.01}, 4, 100, 10, 0.06)
	e, ok := b.quietError()
	if !ok {
		t.Fatal("ten windows tell nothing")
	}
	within(t, "error", e, 0.06/math.Sqrt(9), 1e-9) // 10/9 · 10·(0.006·T)²/T²
	b.Wq = 1
	if _, ok := b.quietError(); ok {
		t.Error("one window tells how far windows differ")
	}
}

// A bin of a few windows that agree by chance is as unsure as bins near it are.
func TestAThinBinIsAsUnsureAsThoseNearIt(t *testing.T) {
	f := Fit{A: 0.01, D: 30e-6}
	var s Sums
	s.bins[7] = stillBin(f, 8, 900, 10, 0.06)  // 2 % of 900 steps: 0.6 a step
	s.bins[19] = stillBin(f, 64, 900, 10, 0.6) // far away: 6 a step
	s.bins[8] = stillBin(f, 9, 36, 2, 0)
	still := s.quietNoise()
	thin := &s.bins[8]
	step := math.Sqrt(still.at(math.Log(9)))
	if step < 0.55 || step > 3 {
		t.Errorf("a step at 9 varies by %.2f, want 0.6 and something of the 6 that are three octaves away", step)
	}
	within(t, "error", thin.quietTime(f, still).e, step/6, 1e-9)
	thin.Vq = thin.Tq * thin.Tq / 2 // its two windows differ by all there is
	within(t, "error of windows that differ", thin.quietTime(f, still).e, 1, 1e-9)

	thin.Vq, thin.PN = 0, 0.2*thin.S/f.D // a fifth of the time went to prompts
	within(t, "error beside prompts", thin.quietTime(f, still).e, math.Hypot(step/6, promptDoubt/4), 1e-9)

	s.bins[7], s.bins[19] = binSums{}, binSums{}
	for name, change := range map[string]func(b *binSums){
		"a single window": func(b *binSums) { b.Wq = 1 },
		"few steps":       func(b *binSums) { b.Kq = quietSteps - 1 },
		"no time":         func(b *binSums) { b.Tq = 0 },
		"no steps":        func(b *binSums) { *b = binSums{} },
	} {
		b := *thin
		change(&b)
		if q := b.quietTime(f, still); q.says() {
			t.Errorf("%s: %+v, want nothing", name, q)
		}
	}
}

// Where nine tenths of a bin's time went to prompts, what is left is off by ten times
// what a prompt may cost otherwise there, however well its windows agree.
func TestAllTimeIsAsSureAsItsPrompts(t *testing.T) {
	f := Fit{A: 0.01, D: 1e-4}
	b := stillBin(Fit{A: 0.1}, 4, 1000, 100, 0)
	b.PN = 0.9 * b.S / f.D
	within(t, "what it says", b.allTime(f, 0).r, 0, 1e-9)
	within(t, "error", b.allTime(f, 0).e, 9*promptDoubt, 1e-6)
	b.PN = 0
	within(t, "error without prompts", b.allTime(f, 0).e, 0, 1e-6)
}

// Where prompts cost otherwise than the fit believes, quiet time says of every bin
// that it is faster than streams are. All time says no: quiet time is not believed.
func TestQuietTimeIsDoubtedWhereAllTimeDiffers(t *testing.T) {
	f := Fit{A: 0.01}
	for _, test := range []struct{ all, most, least float64 }{
		{1, -0.09, -0.11}, // quiet time alone is 10 % faster, and so is all
		{1.1, 0.02, -0.04},
	} {
		var s Sums
		for i := 3; i < 9; i++ {
			b := stillBin(Fit{A: 0.009}, float64(i+1), 100, 10, 0.01)
			b.S *= test.all
			b.SS *= test.all * test.all
			b.SY *= test.all
			s.bins[i] = b
		}
		for i, q := range s.against(f) {
			if q.says() && (q.r > test.most || q.r < test.least) {
				t.Errorf("all time %v times as slow as quiet time: bin %d says %.3f against the fit, want %v to %v", test.all, i, q.r, test.least, test.most)
			}
		}
	}
}

// A bin that says little is doubted as far as those near it differ from the fit.
func TestDoubtWhereTheFitIsOff(t *testing.T) {
	var s Sums
	var against residuals
	for i := range against {
		against[i] = nothing(math.Log(float64(i + 1)))
	}
	within(t, "nothing known", s.unexplained(&against, &knots{})[5], bend, 1e-9)
	for _, i := range []int{10, 11, 13, 14} {
		s.bins[i].K = 1000
		lo, hi := BinBounds(i)
		against[i] = residual{math.Log(float64(lo+hi) / 2), 0.2, 0.01}
	}
	off := s.unexplained(&against, &knots{})
	within(t, "between bins that are 20 % off", off[12], 0.2, 0.02)
	within(t, "at one of them", off[11], 0.01, 0.02)
	if off[0] > 0.2 || off[0] < bend {
		t.Errorf("far away %.3f is in doubt, want something between %v and 0.2", off[0], bend)
	}
	against[2] = residual{math.Log(3), 0, 0.01}
	if more := s.unexplained(&against, &knots{})[0]; !(more < off[0]) {
		t.Errorf("with a bin on the fit nearby %.3f is in doubt, as without: %.3f", more, off[0])
	}
}

// Where the levels above are a fifth slower than the fit, the bound at one of a few
// steps takes off as much as it may be off itself.
func TestTheBoundIsLowerWhereTheFitIsOff(t *testing.T) {
	for _, slower := range []float64{1, 1.2} {
		s := sumsOf(Fit{A: 0.01}, even(100_000, 1, 2, 4), flat)
		for n, steps := range map[int]float64{12: 9, 15: 2000, 18: 2000} {
			f := Fit{A: 0.01}
			if n > 12 {
				f.A *= slower
			}
			bin := sumsOf(f, even(steps, n), flat)
			bin.rows, bin.slow = fastRows{}, [numOctaves]rowSums{} // the fit does not know of them
			s.Add(Delta{Sums: bin}, 0)
		}
		s.bins[BinOf(12)].W = 1 // which may all be one stall
		c := newCurve(&s, nil, 0.02)
		ratio := c.Low(12, 0) / c.Low(4, 0)
		if slower == 1 && ratio < 0.98 {
			t.Errorf("on the fit the bound of 12 is %.3f of that of 4, want nearly all of it", ratio)
		}
		if slower > 1 && (ratio > 0.92 || ratio < 0.8) {
			t.Errorf("beside slow levels the bound of 12 is %.3f of that of 4, want a tenth less", ratio)
		}
	}
}
