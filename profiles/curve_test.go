package profiles

import (
	"math"
	"math/rand"
	"testing"
	"time"
)

// sumsOf makes the sums of an exact engine that was observed for so many steps
// at each level, beside prompts of p(n) tokens per step.
func sumsOf(f Fit, steps map[int]float64, p func(n int) float64) Sums {
	s := Sums{Updated: start}
	for n, k := range steps {
		load := p(n)
		t := f.tpot(float64(n), load)
		var e exposure
		e.book(n, k*t*float64(n), k*float64(n))
		b := &s.bins[BinOf(n)]
		b.take(&e, 1)
		b.P += load * k
		b.PN += load * k * float64(n)
		// Ten windows, each the same.
		w := row{T: e.T / 10, K: e.K / 10, Q: e.Q / 10, Y: e.Y / 10, P: load * k / 10}
		for range 10 {
			w.addTo(&s.rows.rowSums, t)
		}
		b.W, b.SS, b.YY, b.SY = 10, e.S*e.S/10, e.Y*e.Y/10, e.S*e.Y/10
	}
	return s
}

func flat(int) float64 { return 0 }

func even(steps float64, levels ...int) map[int]float64 {
	m := map[int]float64{}
	for _, n := range levels {
		m[n] = steps
	}
	return m
}

func within(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if !(math.Abs(got-want) <= share*math.Abs(want)) {
		t.Errorf("%s is %v, want %v within %v %%", what, got, want, 100*share)
	}
}

func TestFitFindsTheEngine(t *testing.T) {
	want := Fit{A: 0.01, B: 0.002, C: 0.0005, D: 3e-5}
	s := sumsOf(want, even(1e6, 1, 2, 4, 8, 16, 32), func(n int) float64 { return 10*float64(n) + 50*float64(n%3) })
	c := newCurve(&s, nil, 0.1)
	got, ok := c.Fit()
	if !ok {
		t.Fatal("no fit")
	}
	within(t, "A", got.A, want.A, 0.01)
	within(t, "B", got.B, want.B, 0.01)
	within(t, "C", got.C, want.C, 0.01)
	within(t, "D", got.D, want.D, 0.01)
	within(t, "TPS(8)", c.TPS(8), 1/want.tpot(8, 8*c.Rho()), 0.01)
	within(t, "TPS(6) without prompts", c.AtRho(6, 0).TPS, 1/want.tpot(6, 0), 0.01)
	within(t, "TPS(6) with 100 prompt tokens per output token", c.AtRho(6, 100).TPS, 1/want.tpot(6, 600), 0.01)
	if lo, hi := c.Support(); lo != 1 || hi != 32 {
		t.Errorf("support %d…%d, want 1…32", lo, hi)
	}
}

func TestBoundByHand(t *testing.T) {
	// TPOT = 10 + 1·n ms: TPS(4) = 71.43, TPS(8) = 55.56, TPS(16) = 38.46.
	s := sumsOf(Fit{A: 0.01, C: 0.001}, even(1e7, 4, 8, 16), flat)
	c := newCurve(&s, nil, 0.1)
	for _, test := range []struct {
		n        int
		tps, low float64
	}{
		{8, 55.56, 50.00},               // less the margin
		{16, 38.46, 34.62},              // the highest visited
		{17, 37.04, 0.85 * 0.9 * 37.04}, // beyond: 15 % more
		{32, 23.81, 0.85 * 0.9 * 23.81},
		{33, 23.26, 0}, // more than twice beyond
		{4, 71.43, 64.29},
		{3, 76.92, 64.29}, // below the visited: the greater of low(4) and 0.85·0.9·76.92 = 58.85
		{1, 90.91, 0.85 * 0.9 * 90.91},
	} {
		within(t, "TPS", c.TPS(test.n), test.tps, 0.001)
		if got := c.Low(test.n, 0); math.Abs(got-test.low) > 0.001*test.low {
			t.Errorf("low(%d) = %.3f tokens/s, want %.3f", test.n, got, test.low)
		}
	}
	if got := c.MaxConcurrency(38.4); got != 16 {
		t.Errorf("38.4 tokens/s are kept up to n = %d, want 16", got)
	}
	if got := c.MaxConcurrency(100); got != 0 {
		t.Errorf("100 tokens/s are kept up to n = %d, want none", got)
	}
}

func TestBoundChargesPrompts(t *testing.T) {
	s := sumsOf(Fit{A: 0.02, D: 2e-5}, even(1e7, 1, 2, 4, 8), func(n int) float64 { return 100 * float64(n%3) })
	c := newCurve(&s, nil, 0.1)
	low := c.Low(2, 0)
	// 500 tokens more per step take 10 ms more.
	within(t, "low(2) with 500 prompt tokens per step", c.Low(2, 500), 1/(1/low+0.01), 0.01)
	for _, extra := range []float64{-1, math.NaN(), 0} {
		if got := c.Low(2, extra); got != low {
			t.Errorf("low(2) with %v prompt tokens = %v, want %v", extra, got, low)
		}
	}
	if got := c.Low(2, math.Inf(1)); got != 0 {
		t.Errorf("low(2) with endless prompts = %v, want 0", got)
	}
}

// TestStepIsNotAveragedAway: three streams run at a third of the speed of
// their neighbours (a kernel that changes at 4), and the bound says so at 3 and
// above.
func TestStepIsNotAveragedAway(t *testing.T) {
	s := sumsOf(Fit{A: 0.01}, even(1000, 1, 2, 4, 5, 6, 8), flat)
	slow := sumsOf(Fit{A: 0.03}, even(1000, 3), flat)
	s.Add(Delta{Sums: slow}, 0)
	c := newCurve(&s, nil, 0.1)
	for n, want := range map[int]float64{2: 100, 3: 33.3, 4: 33.3, 8: 33.3} {
		if got := c.Low(n, 0); got > want || n >= 3 && got < 0.8*want {
			t.Errorf("low(%d) = %.1f tokens/s, want at most %.1f", n, got, want)
		}
	}
	within(t, "TPS(3)", c.TPS(3), 33.3, 0.1)
	within(t, "TPS(6)", c.TPS(6), 100, 0.1)
}

// TestTheBoundBelievesASlowBin: three streams run 20 % slower than the fit, by a
// bin whose error is 3 %. The curve goes half the way, or a little more; the bound does not wait,
// but for that error.
func TestTheBoundBelievesASlowBin(t *testing.T) {
	s := sumsOf(Fit{A: 0.01}, even(100_000, 1, 2, 4, 5, 6, 8), flat)
	slow := sumsOf(Fit{A: 0.012}, even(1000, 3), flat)
	b := &slow.bins[2]
	b.SS *= 1 + 0.09*0.09 // ten windows: 0.03·√9 = 0.09 apart
	s.Add(Delta{Sums: slow}, 0)
	c := newCurve(&s, nil, 0.1)
	within(t, "error of the bin", b.error(1), 0.03, 1e-6)
	within(t, "TPS(3)", c.TPS(3), 100/math.Sqrt(1.2), 0.02)
	for n, want := range map[int]float64{2: 90, 3: 0.9 / (0.012 * 0.97), 8: 0.9 / (0.012 * 0.97)} {
		within(t, "low", c.Low(n, 0), want, 0.005)
	}
}

// TestThinBinPoisonsNothing: one unlucky reading at n = 1 leaves the bound
// above as it was.
func TestThinBinPoisonsNothing(t *testing.T) {
	s := sumsOf(Fit{A: 0.01, C: 0.0005}, even(5000, 4, 8, 16), flat)
	clean := newCurve(&s, nil, 0.1)
	thin := sumsOf(Fit{A: 0.5}, even(10, 1), flat)
	thin.rows = fastRows{}
	thin.bins[0].W, thin.bins[0].SS, thin.bins[0].YY, thin.bins[0].SY = 1, 25, 100, 50
	s.Add(Delta{Sums: thin}, 0)
	c := newCurve(&s, nil, 0.1)
	for _, n := range []int{4, 8, 16} {
		within(t, "low above a thin bin", c.Low(n, 0), clean.Low(n, 0), 0.02)
	}
}

// TestAStallPoisonsNothing: two seconds in which nothing came, once, at a level
// that is seldom visited, do not lower the bound of all levels above for good.
func TestAStallPoisonsNothing(t *testing.T) {
	s := sumsOf(Fit{A: 0.01, C: 0.0005}, map[int]float64{4: 60, 8: 5000, 16: 5000}, flat)
	clean := newCurve(&s, nil, 0.1)
	b := &s.bins[BinOf(4)] // ten windows of 6 steps, 24 tokens and 0.288 stream-seconds
	each := b.S / 10
	b.S += 4 * 2
	b.T += 2
	b.SS += (each+8)*(each+8) - each*each
	b.SY += 8 * b.Y / 10
	c := newCurve(&s, nil, 0.1)
	for _, n := range []int{4, 8, 16} {
		within(t, "low at and above a stall", c.Low(n, 0), clean.Low(n, 0), 0.1)
	}
}

func TestUnknownCurve(t *testing.T) {
	thin := sumsOf(Fit{A: 0.01}, even(29, 2), flat)
	for name, c := range map[string]*Curve{"zero": {}, "29 steps": newCurve(&thin, nil, 0.1)} {
		if c.Known() || !math.IsNaN(c.TPS(2)) || c.Low(2, 0) != 0 || c.MaxConcurrency(0) != 0 {
			t.Errorf("%s: known %v, TPS %v, low %v, max %d, want an unknown curve", name, c.Known(), c.TPS(2), c.Low(2, 0), c.MaxConcurrency(0))
		}
		if p := c.At(2); p.Source != Unknown || !math.IsNaN(p.TPS) || !math.IsNaN(p.Low) {
			t.Errorf("%s: point %+v, want unknown", name, p)
		}
		if _, ok := c.Fit(); ok {
			t.Errorf("%s: has a fit", name)
		}
	}
	enough := sumsOf(Fit{A: 0.01}, even(30, 2), flat)
	if c := newCurve(&enough, nil, 0.1); !c.Known() {
		t.Error("30 steps are not known")
	}
}

func TestPrior(t *testing.T) {
	pr := newPrior([]PriorPoint{{16, 25}, {4, 50}, {0, 9}, {8, -1}, {9, math.NaN()}, {4, 40}})
	empty := Sums{}
	c := newCurve(&empty, pr, 0.1)
	// TPOT doubles … ×1.6 over two octaves: at 8 it is √1.6 of that at 4.
	for n, want := range map[int]float64{4: 40, 8: 40 / math.Sqrt(1.6), 16: 25, 64: 25 / 1.6, 1: 40 * 1.6} {
		within(t, "TPS of the prior", c.TPS(n), want, 1e-9)
	}
	if p := c.At(8); p.Source != Prior || !near(p.Low, 0.9*p.TPS) {
		t.Errorf("point %+v, want a prior with 10 %% off", p)
	}
	within(t, "low beyond the points", c.Low(32, 0), 0.85*0.9*c.TPS(32), 1e-9)
	if c.Low(33, 0) != 0 {
		t.Errorf("low(33) = %v, want 0", c.Low(33, 0))
	}
	if got := len(c.Points()); got != 2 {
		t.Errorf("%d points, want the 2 of the prior", got)
	}
	if newPrior([]PriorPoint{{0, 1}, {3, 0}, {3, math.Inf(1)}}) != nil {
		t.Error("a prior of no valid point is one")
	}
}

// TestEvidenceOutweighsThePrior: the machine runs at half the speed of its
// prior. Sixty steps at one level move the curve half the way there, and
// thousands all the way, at other levels too.
func TestEvidenceOutweighsThePrior(t *testing.T) {
	pr := newPrior([]PriorPoint{{1, 100}, {8, 50}, {64, 20}})
	slow := Fit{A: 0.02} // 50 tokens/s at n = 1
	few := sumsOf(slow, even(60, 1), flat)
	many := sumsOf(slow, even(6000, 1), flat)
	c, d := newCurve(&few, pr, 0.1), newCurve(&many, pr, 0.1)
	if got := c.TPS(1); got < 49.9 || got > 75 {
		t.Errorf("TPS(1) after 60 steps = %.1f, want between 50 and 75", got)
	}
	within(t, "TPS(1) after 6000 steps", d.TPS(1), 50, 0.02)
	if got := d.TPS(64); got > 14 {
		t.Errorf("TPS(64) after 6000 steps at n = 1 = %.1f, want the prior's 20 scaled down to about 10", got)
	}
	within(t, "the prior itself, after 6000 steps", d.PriorTPS(64), 20, 1e-9)
	if none := newCurve(&many, nil, 0.1); !math.IsNaN(none.PriorTPS(64)) {
		t.Errorf("without a prior it says %v tokens/s, want nothing", none.PriorTPS(64))
	}
	if d.Low(60, 0) == 0 {
		t.Error("the range of the prior is lost once there is evidence at n = 1")
	}
	if _, hi := d.Support(); hi != 1 {
		t.Errorf("support up to %d, want 1: the rest is prior", hi)
	}
}

func TestRelativeErrorByHand(t *testing.T) {
	// Windows of (s, y) = (1, 9) and (1, 11), five of each: R = 10,
	// var = 10/9 · 10·1/100 = 1/9, se/R = 0.0333.
	b := binSums{K: 100, W: 10, S: 10, Y: 100, SS: 10, YY: 5*81 + 5*121, SY: 100}
	within(t, "error", b.error(1), 1.0/30, 1e-9)
	// Too thin to rely on its windows, as if they agreed by chance; or not.
	for _, thin := range []binSums{{K: 59, W: 10, S: 10, Y: 100}, {K: 100, W: 7, S: 10, Y: 100}} {
		within(t, "error of a thin bin", thin.error(0.25), 0.5/math.Sqrt(thin.K), 1e-9)
	}
	within(t, "error of a thin bin whose windows differ", (&binSums{K: 16, W: 10, S: 10, Y: 100, SS: 10, YY: 5*81 + 5*121, SY: 100}).error(0.01), 1.0/30, 1e-9)

	s := Sums{}
	within(t, "error of a step, where no bin can tell", s.stepNoise(), stepError*stepError, 1e-9)
	for i, steps := range []float64{900, 90, 9000} { // the same error from more steps: noisier ones
		s.bins[i] = b
		s.bins[i].K = steps
	}
	within(t, "variance of a step", s.stepNoise(), 900.0/900, 1e-9)
}

func TestPointsAreTheBins(t *testing.T) {
	s := sumsOf(Fit{A: 0.01}, map[int]float64{1: 100, 4: 4, 10: 50, 11: 50, 20: 0.5}, flat)
	s.Updated = start.Add(time.Minute)
	c := newCurve(&s, nil, 0.1)
	points := c.Points()
	want := []struct {
		n      int
		steps  float64
		source Provenance
	}{{1, 100, Learned}, {4, 4, Extrapolated}, {11, 100, Learned}}
	if len(points) != len(want) {
		t.Fatalf("%d points, want %d: %+v", len(points), len(want), points)
	}
	for i, p := range points {
		if p.N != want[i].n || !near(p.Steps, want[i].steps) || p.Source != want[i].source || !p.Updated.Equal(s.Updated) {
			t.Errorf("point %+v, want %+v", p, want[i])
		}
		within(t, "tokens per stream-second", p.Tokens/p.StreamSeconds, 100, 1e-6)
	}
}

// A dozen short prompts say next to nothing about what a prompt token costs:
// the fit must not make it up from the noise, or a long prompt would seem to
// stop the backend.
func TestFewPromptsDoNotInventTheirCost(t *testing.T) {
	for seed := range int64(40) {
		b := NewBook(Options{})
		e := newEngine(seed, b)
		e.prompts = func(*rand.Rand) int { return 5 }
		e.run(2000)
		e.drain()
		if d := b.Curve(e.target).SecondsPerPromptToken(); d > 500e-6 {
			t.Errorf("seed %d: after a few prompts of 5 tokens, one costs %.0f µs a token; want what is usual, 500 at most", seed, 1e6*d)
		}
	}
}

// What was seen is the bins' own.
func TestSeen(t *testing.T) {
	s := sumsOf(Fit{A: 0.01, C: 0.01}, map[int]float64{1: 10, 3: 40, 8: 40}, flat) // at 1 too few steps
	c := newCurve(&s, nil, 0.1)
	for n, want := range map[int]float64{1: 25, 3: 25, 4: 100.0 / 9, 8: 100.0 / 9, 9: 0} {
		if got := c.Seen(n); !near(got, want) {
			t.Errorf("%v tokens/s seen with %d or more, want %v", got, n, want)
		}
	}
	prior := newCurve(&Sums{}, newPrior([]PriorPoint{{1, 100}}), 0.1)
	if got := prior.Seen(1); got != 0 {
		t.Errorf("a prior has seen %v tokens/s, want none", got)
	}
}

// At a ramp one prompt falls into the eight steps that were decoded at n = 7: that
// says nothing of the load of seven streams, and holds back nothing at 8 and above.
func TestAThinBinsPromptIsChance(t *testing.T) {
	f := Fit{A: 0.008, C: 0.0001, D: 100e-6}
	usual := func(n int) float64 { return 0.5 * float64(n) }
	s := sumsOf(f, map[int]float64{4: 2000, 5: 2000, 6: 2000, 7: 8, 8: 2000, 16: 2000}, func(n int) float64 {
		if n == 7 {
			return 35
		}
		return usual(n)
	})
	c := newCurve(&s, nil, 0.1)
	for _, n := range []int{7, 8, 16} {
		within(t, "prompt load", c.At(n).P, usual(n), 0.05)
		want := 0.9 / f.tpot(float64(n), usual(n))
		if low := c.Low(n, 0); low < 0.97*want {
			t.Errorf("low(%d) = %.1f, want %.1f", n, low, want)
		}
	}
}

// Thirty steps at n = 2 that are half as fast as what the steps at 8 to 20 make of it are
// hardly believed against these: what is shown at 2 is not learned there.
func TestWhatABinContradictsIsNotLearned(t *testing.T) {
	f := Fit{A: 0.01, C: 0.001}
	s := sumsOf(f, even(500, 8, 10, 12, 16, 20), func(int) float64 { return 0 })
	unseen := 1 / newCurve(&s, nil, startMargin).TPS(2)
	for _, test := range []struct {
		slower float64
		want   Provenance
	}{{1, Learned}, {2, Extrapolated}} {
		s.bins[BinOf(2)] = stillBin(Fit{A: test.slower * unseen}, 2, 15, 3, 0.3)
		c := newCurve(&s, nil, startMargin)
		if got := c.At(2).Source; got != test.want {
			t.Errorf("n = 2, %v times slower than the rest says: %v (%.0f tokens/s), want %v", test.slower, got, c.TPS(2), test.want)
		}
		if got := c.At(12).Source; got != Learned {
			t.Errorf("n = 12 is %v, want learned", got)
		}
	}
}
