package profiles

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/pacer-dev/pacer/internal/racetest"
)

// errorsOver returns the median and the 90th percentile, in percent, of the
// relative error of a speed over the levels with at least 1 % of the exposure.
// The truth is the engine's closed form at the same n and the given prompt
// load.
func (e *engine) errorsOver(speed, load func(n int) float64) (median, p90 float64) {
	var all float64
	for _, l := range e.truth {
		all += l.streamSeconds
	}
	var errs []float64
	for n, l := range e.truth {
		if l.streamSeconds < 0.01*all {
			continue
		}
		want := 1 / e.fit.tpot(float64(n), load(n))
		if got := speed(n); !math.IsNaN(got) && got != 0 {
			errs = append(errs, 100*math.Abs(got/want-1))
		}
	}
	slices.Sort(errs)
	return errs[len(errs)/2], errs[len(errs)*9/10]
}

// longRun returns the prompt load that n streams bring, in prompt tokens per
// step, by long runs of the same engine.
func longRun(build func(seed int64) *engine) func(n int) float64 {
	var tokens, prompts float64
	for seed := range int64(4) {
		e := build(1000 + seed)
		e.books = nil
		e.run(2e6)
		for n, l := range e.truth {
			tokens += l.steps * float64(n)
			prompts += l.prompts
		}
	}
	return func(n int) float64 { return float64(n) * prompts / tokens }
}

func decodeOnly(e *engine) { e.prompts = func(*rand.Rand) int { return 4 } }

func shortAnswers(e *engine) {
	e.outputs = func(r *rand.Rand) int { return lognormal(r, 13, 0.9, 300) }
	e.rate = 4
}

// TestAccuracy is the promise of the package: under bursts, after so many
// tokens, the curve is right at every level that was visited for 1 % of the
// time. Twice: at the prompt load that the curve itself states (is the model of
// a step right), and at that of the long run (is the load right as well, which
// one run of a few minutes is too short to tell well). The usual estimator,
// the average of a request put down at the concurrency it arrived at, runs on
// the same streams as a control.
func TestAccuracy(t *testing.T) {
	if racetest.On {
		t.Skip("six engines with nine seeds each on one goroutine: make numbers runs it")
	}
	type goal struct{ median, p90 float64 }
	engineOf := func(change func(*engine)) func(seed int64) *engine {
		return func(seed int64) *engine {
			e := newEngine(seed, NewBook(Options{}))
			change(e)
			return e
		}
	}
	noPrompts := func(int) float64 { return 0 }
	mix := longRun(engineOf(func(*engine) {}))
	short := longRun(engineOf(shortAnswers))
	for _, test := range []struct {
		name      string
		tokens    float64
		own, long goal
		load      func(n int) float64
		change    func(*engine)
	}{
		{"decode only", 10e3, goal{2, 4}, goal{3, 6}, noPrompts, decodeOnly},
		{"decode only", 100e3, goal{1.5, 3}, goal{2, 4}, noPrompts, decodeOnly},
		{"prefill mix", 30e3, goal{3, 6}, goal{5, 12}, mix, func(*engine) {}},
		{"prefill mix", 100e3, goal{2, 5}, goal{5, 12}, mix, func(*engine) {}},
		{"chunks of four", 100e3, goal{3, 6}, goal{5, 12}, mix, func(e *engine) { e.chunk = 4 }},
		{"short answers", 100e3, goal{3, 6}, goal{5, 12}, short, shortAnswers},
	} {
		t.Run(fmt.Sprintf("%s %.0fk", test.name, test.tokens/1e3), func(t *testing.T) {
			const seeds = 9
			var own, long, control [2][]float64
			keep := func(to *[2][]float64, median, p90 float64) {
				to[0], to[1] = append(to[0], median), append(to[1], p90)
			}
			for seed := range int64(seeds) {
				e := engineOf(test.change)(seed)
				e.run(test.tokens)
				e.drain()
				c := e.books[0].Curve(e.target)
				m, p := e.errorsOver(c.TPS, func(n int) float64 { return c.At(n).P })
				keep(&own, m, p)
				m, p = e.errorsOver(c.TPS, test.load)
				keep(&long, m, p)
				m, p = e.errorsOver(func(n int) float64 { return e.control[n] }, test.load)
				keep(&control, m, p)
			}
			for _, errs := range [...]*[2][]float64{&own, &long, &control} {
				slices.Sort(errs[0])
				slices.Sort(errs[1])
			}
			mid := seeds / 2
			t.Logf("median/p90: %.2f/%.2f %% at the stated load, %.2f/%.2f %% at that of the long run; request average at arrival %.1f/%.1f %%",
				own[0][mid], own[1][mid], long[0][mid], long[1][mid], control[0][mid], control[1][mid])
			if own[0][mid] > test.own.median || own[1][mid] > test.own.p90 {
				t.Errorf("%.2f/%.2f %% at the stated load, want at most %v", own[0][mid], own[1][mid], test.own)
			}
			if long[0][mid] > test.long.median || long[1][mid] > test.long.p90 {
				t.Errorf("%.2f/%.2f %% at the load of the long run, want at most %v", long[0][mid], long[1][mid], test.long)
			}
			if control[0][mid] <= long[0][mid] {
				t.Errorf("the control is at %.2f %%, which should be worse than %.2f %%", control[0][mid], long[0][mid])
			}
		})
	}
}

// TestBoundHoldsOnUnevenCurves learns curves that the fit cannot draw: a slow
// kernel at 3 and 5 streams, and a wall at 27, where a bin begins
// (one within a bin is averaged over the bin). The bound must not promise more
// than the engine gives at any level visited for 1 % of the time, and not be so
// low that nobody is admitted.
func TestBoundHoldsOnUnevenCurves(t *testing.T) {
	if racetest.On {
		t.Skip("minutes of tokens on one goroutine: make numbers runs it")
	}
	steps := func(n int) float64 {
		if n == 3 || n == 5 {
			return 1.4
		}
		return 1
	}
	wall := func(n int) float64 {
		if n >= 27 {
			return 1.6
		}
		return 1
	}
	for name, uneven := range map[string]func(int) float64{"smooth": nil, "steps": steps, "wall": wall} {
		var high []float64 // bound against the lowest truth at or below n
		for seed := range int64(6) {
			e := newEngine(seed, NewBook(Options{}))
			decodeOnly(e)
			e.uneven = uneven
			e.rate = 4
			e.run(100e3)
			e.drain()
			c := e.books[0].Curve(e.target)
			var all float64
			for _, l := range e.truth {
				all += l.streamSeconds
			}
			for n, l := range e.truth {
				if l.streamSeconds < 0.01*all {
					continue
				}
				lowest := math.Inf(1)
				for m := 1; m <= n; m++ {
					factor := 1.0
					if uneven != nil {
						factor = uneven(m)
					}
					lowest = min(lowest, 1/e.fit.tpot(float64(m), c.At(m).P)/factor)
				}
				ratio := c.Low(n, 0) / lowest
				high = append(high, ratio)
			}
		}
		slices.Sort(high)
		t.Logf("%s: bound over truth %.3f (lowest), %.3f (median), %.3f (highest) of %d levels", name, high[0], high[len(high)/2], high[len(high)-1], len(high))
		if worst := high[len(high)-1]; worst > 1.03 {
			t.Errorf("%s: the bound is %.1f %% above what the engine gives, want at most 3", name, 100*(worst-1))
		}
		if median := high[len(high)/2]; median < 0.8 {
			t.Errorf("%s: the bound is at %.0f %% of what the engine gives, want at least 80", name, 100*median)
		}
	}
}

// TestTwoReplicasLearnOneCurve lets two books see every other request of one
// engine: each alone, and both merged through a store, must tell the truth.
func TestTwoReplicasLearnOneCurve(t *testing.T) {
	a, b := NewBook(Options{}), NewBook(Options{})
	e := newEngine(3, a, b)
	e.run(200e3)
	e.drain()
	for i, book := range []*Book{a, b} {
		c := book.Curve(e.target)
		if m, p := e.errorsOver(c.TPS, func(n int) float64 { return c.At(n).P }); m > 4 || p > 9 {
			t.Errorf("replica %d alone: %.2f/%.2f %% wrong, want at most 4/9", i, m, p)
		}
	}
	sums := a.profile(e.target).known
	sums.Add(Delta{Target: e.target, Sums: b.profile(e.target).known}, 0)
	c := newCurve(&sums, nil, startMargin)
	m, p := e.errorsOver(c.TPS, func(n int) float64 { return c.At(n).P })
	if m > 3 || p > 7 {
		t.Errorf("merged: %.2f/%.2f %% wrong, want at most 3/7", m, p)
	}
	if got, want := c.Tokens(), a.Curve(e.target).Tokens()+b.Curve(e.target).Tokens(); math.Abs(got-want) > 1e-6*want {
		t.Errorf("merged curve rests on %.1f tokens, want %.1f", got, want)
	}
}

// TestPromptLoadChanges triples the prompts after the curve was learned: at the
// new load the prompt term must tell the speed that was never seen.
func TestPromptLoadChanges(t *testing.T) {
	e := newEngine(5, NewBook(Options{}))
	e.run(100e3)
	e.drain()
	c := e.books[0].Curve(e.target)
	rho := 3 * c.Rho()
	var blind float64
	for _, n := range []int{2, 4, 8, 16, 32} {
		got := c.AtRho(n, rho)
		want := 1 / e.fit.tpot(float64(n), float64(n)*rho)
		if off := 100 * math.Abs(got.TPS/want-1); off > 6 {
			t.Errorf("%d streams at %.1f prompt tokens per output token: %.2f tokens/s, want %.2f", n, rho, got.TPS, want)
		}
		blind = max(blind, 100*math.Abs(c.TPS(n)/want-1))
	}
	if blind < 12 {
		t.Errorf("without the prompt term the curve is only %.1f %% wrong: the test shows nothing", blind)
	}
}
