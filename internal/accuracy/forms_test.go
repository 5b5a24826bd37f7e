package accuracy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/sim"
)

// Engines of other forms than the fit's. None of them is what a mechanism may
// lean on: they stand for those that nobody has thought of.
var (
	// Later tokens cost more: a step reads the KV cache of all that run.
	kvBound = sim.EngineOptions{Model: sim.Model{A: 0.008, B: 0.0012, C: 20e-6, D: 30e-6, E: 1e-7}, Noise: 0.1, PrefillBatch: 2048}

	forms = []struct {
		name string
		*known
	}{
		{"KV bandwidth", knownBy(setup{engine: kvBound, load: bursts(2.7, conversations), jitter: longJitter, leave: 0.02}, truthTokens)},
		{"chunked prefill in the step's budget", knownBy(setup{engine: sharing(mixed, 512), load: bursts(2.7, conversations), jitter: longJitter, leave: 0.02}, truthTokens)},
		{"speculation that fades with load", knownBy(setup{engine: fading(mixed), load: bursts(2.7, conversations), jitter: longJitter, leave: 0.02}, truthTokens)},
		{"four ranks behind one URL", knownBy(setup{engine: mixed, ranks: 4, load: bursts(4, conversations), jitter: longJitter, leave: 0.02}, truthTokens)},
		{"padded batches", knownBy(setup{engine: padded(), load: bursts(2.7, conversations), jitter: longJitter, leave: 0.02, seesFew: 16}, truthTokens)},
		{"preemption at a full cache", knownBy(setup{engine: preempting(mixed, 40_000), load: bursts(2.7, conversations), jitter: longJitter, leave: 0.02}, truthTokens)},
	}
)

func sharing(o sim.EngineOptions, budget int) sim.EngineOptions {
	o.PrefillBatch, o.SharedBudget = budget, true
	return o
}

func fading(o sim.EngineOptions) sim.EngineOptions {
	o.Draft = 3
	o.AcceptanceAt = func(n int) float64 { return max(0.8-0.02*float64(n), 0.05) }
	return o
}

func preempting(o sim.EngineOptions, tokens int) sim.EngineOptions {
	o.KVTokens, o.Preempt = tokens, true
	return o
}

// padded runs every batch at the next captured size.
func padded() sim.EngineOptions {
	o := sim.EngineOptions{Model: sim.Model{D: 30e-6}, Noise: 0.1, PrefillBatch: 2048}
	for n := 1; n <= maxN; n++ {
		size := (n + 7) / 8 * 8
		switch {
		case n <= 2:
			size = n
		case n <= 4:
			size = 4
		}
		o.Model.Table = append(o.Model.Table, sim.Point{N: n, TPS: 1 / (0.008 + 0.0003*float64(size))})
	}
	return o
}

// verdict is how good one run's curve was as users see it.
type verdict struct {
	shown, same errs
	above       float64 // the bound over the truth at the visited level where it is highest, %
	levels, bad int     // visited levels, and those where the bound is above the truth
	ratio       []float64
}

func judge(k *known, seed uint64, tokens float64) verdict {
	look := promised(time.Second)
	w := newWorld(k.setup, seed, look)
	w.run(tokens)
	w.fold()
	t, c, levels := k.truth(), look.book.Curve(target), w.visited()
	var v verdict
	v.shown.median, v.shown.p90 = errorsOver(levels, c.TPS, t.tps)
	v.same.median, v.same.p90 = errorsOver(levels, t.asked(c), t.tps)
	v.above = -100
	for _, n := range levels {
		off := 100 * (c.Low(n, 0)/t.tps(n) - 1)
		v.above = max(v.above, off)
		v.levels++
		if off > 0 {
			v.bad++
		}
	}
	v.ratio = floorRatios(levels, c, t)
	return v
}

// floorRatios holds the largest n that the bound allows at floors between two
// visited levels, from 10 streams on, against the true one.
func floorRatios(levels []int, c *profiles.Curve, t *truth) (ratios []float64) {
	for _, level := range levels {
		floor := (t.tps(level) + t.tps(level+1)) / 2
		if level < 10 || !(t.tps(level+1) < floor) {
			continue
		}
		n := level
		for m := n + 2; m <= maxN; m++ {
			if t.tps(m) >= floor {
				n = m
			}
		}
		low := 0
		for c.Low(low+1, 0) >= floor {
			low++
		}
		ratios = append(ratios, float64(low)/float64(n))
	}
	return ratios
}

// formRow judges the curves of an engine as users see them; above is what the
// bound may exceed the truth by.
func formRow(name string, k *known, above float64) row {
	return row{name: "as users see it, " + name, measure: func(t *testing.T) []line {
		var shown, same, shown90, same90, off, ratios []float64
		var levels, bad, runs, within float64
		for seed := range uint64(seeds()) {
			v := judge(k, seed, 100e3)
			shown, same = append(shown, v.shown.median), append(same, v.same.median)
			shown90, same90 = append(shown90, v.shown.p90), append(same90, v.same.p90)
			off = append(off, v.above)
			levels, bad = levels+float64(v.levels), bad+float64(v.bad)
			ratios = append(ratios, v.ratio...)
			for _, r := range v.ratio {
				runs++
				if r >= 0.85 && r <= 1.03 {
					within++
				}
			}
		}
		return []line{{
			what: "as users see it, " + name + ", 100k",
			figures: []figure{
				{name: "shown median", got: median(shown), goal: 2.5, gate: 9},
				{name: "p90", got: median(shown90), goal: 6, gate: 25},
				{name: "p90 over runs of the median", got: quantile(shown, 0.9), goal: 4, gate: 20},
				{name: "worst run", got: slices.Max(shown)},
				{name: "true p median", got: median(same), goal: 1.5, gate: 9},
				{name: "p90 ", got: median(same90), goal: 4, gate: 25},
				{name: "p90 over runs of the median ", got: quantile(same, 0.9)},
				{name: "bound above the truth at worst %", got: slices.Max(off), goal: 3, gate: above},
				{name: "levels where it is above %", got: 100 * bad / levels},
				{name: "largest n at a floor within 0.85–1.03, % (to be 95)", got: 100 * within / runs},
			},
			why:      sampled,
			controls: []string{fmt.Sprintf("ratio p5 %.2f p50 %.2f p95 %.2f", quantile(ratios, 0.05), median(ratios), quantile(ratios, 0.95))},
		}}
	}}
}
