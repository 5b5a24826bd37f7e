package accuracy

import (
	"math"
	"sync"

	"github.com/pacer-dev/pacer/profiles"
)

// truth is what an engine does at each n under one load, in the long run.
type truth struct {
	step []float64 // seconds of a step, without noise
	load []float64 // prompt tokens of a step
	each []float64 // tokens for one sequence and step
	d    float64   // seconds that a prompt token adds
	rho  float64   // prompt tokens for each token of a stream, over all n
}

// longRuns is how many runs, and of how many tokens each, make a truth.
const longRuns = 8

// longRun measures the truth of s over the given number of tokens in all.
// What a step costs beside its decoding (prompts, context, another tenant)
// changes slowly with n and is noisy, so it is averaged over the levels within
// an eighth of n; the decoding itself, which may have steps, is not. Up to
// s.seesFew nothing is averaged over levels.
func longRun(s setup, tokens float64) *truth {
	sum := make([]level, maxN+1)
	for run := range uint64(longRuns) {
		w := newWorld(s, 1_000_000+run)
		w.run(tokens / longRuns)
		for n := range sum {
			l := &w.levels[n]
			sum[n].steps += l.steps
			sum[n].seconds += l.seconds
			sum[n].prompts += l.prompts
			sum[n].tokens += l.tokens
		}
	}
	t := &truth{d: s.engine.Model.D / float64(max(s.ranks, 1)), step: make([]float64, len(sum)), load: make([]float64, len(sum)), each: make([]float64, len(sum))}
	base := make([]float64, len(sum))
	var brought, out float64
	for n := range base {
		brought, out = brought+sum[n].prompts, out+sum[n].tokens
		ranks := max(s.ranks, 1)
		base[n] = s.engine.Model.StepSeconds(max((n+ranks-1)/ranks, 1), 0)
	}
	t.rho = brought / out
	for n := 1; n < len(sum); n++ {
		reach := n / 8
		if n <= s.seesFew {
			reach = 0
		}
		var steps, beside, prompts, sequences, made float64
		for m := n - reach; m <= min(n+reach, len(sum)-1); m++ {
			l := &sum[m]
			steps += l.steps
			beside += l.seconds - l.steps*base[m]
			prompts += l.prompts
			sequences += l.steps * float64(m)
			made += l.tokens
		}
		if steps == 0 {
			t.step[n], t.load[n], t.each[n] = math.NaN(), math.NaN(), math.NaN()
			continue
		}
		t.step[n] = base[n] + beside/steps
		t.load[n] = prompts / steps
		t.each[n] = made / sequences
		if s.engine.Draft == 0 {
			t.each[n] = 1 // but for clients that leave
		}
	}
	return t
}

// tps is the speed of one of n streams at the load of the long run.
func (t *truth) tps(n int) float64 { return t.each[n] / t.step[n] }

// p is the load of the long run, in prompt tokens for each token of a stream:
// what profiles call a step is a token of every stream.
func (t *truth) p(n int) float64 { return t.load[n] / t.each[n] }

// mix is the speed of one of n streams at the load that n streams bring by
// themselves, in the long run: as many prompt tokens for each token as over all
// n together.
func (t *truth) mix(n int) float64 { return t.tpsAt(n, t.rho*float64(n)) }

// tpsAt is the speed at another load p.
func (t *truth) tpsAt(n int, p float64) float64 {
	return t.each[n] / (t.step[n] + t.d*(p-t.p(n))*t.each[n])
}

// known is a setup with its truth, measured once.
type known struct {
	setup
	truth func() *truth
}

func knownBy(s setup, tokens float64) *known {
	return &known{s, sync.OnceValue(func() *truth { return longRun(s, tokens) })}
}

// asked is what a curve says at n and the load of the truth.
func (t *truth) asked(c *profiles.Curve) func(n int) float64 {
	return func(n int) float64 { return c.AtRho(n, t.p(n)/float64(n)).TPS }
}

// errorsOver returns the median and the 90th percentile of the relative error
// of got over the levels, in percent. A level for which there is no answer, or
// no truth, does not count: only the usual estimator has such levels.
func errorsOver(levels []int, got, want func(n int) float64) (median, p90 float64) {
	var errs []float64
	for _, n := range levels {
		if e := 100 * math.Abs(got(n)/want(n)-1); !math.IsNaN(e) {
			errs = append(errs, e)
		}
	}
	return quantile(errs, 0.5), quantile(errs, 0.9)
}
