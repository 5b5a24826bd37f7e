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
		{"speculation that fades, counted by the engine at every chunk", knownBy(setup{engine: fading(mixed), load: bursts(2.7, conversations), jitter: longJitter, leave: 0.02, tells: true}, truthTokens)},
		{"preemption at a full cache", knownBy(setup{engine: preempting(mixed, 40_000), load: bursts(2.7, conversations), jitter: longJitter, leave: 0.02}, truthTokens)},
	}
)

// A prompt in twenty takes ten seconds, in which those who decode go on at a third
// of their speed.
var (
	longPrefill  = sim.EngineOptions{Model: sim.Model{A: 0.03, B: 0.002, C: 0.0005, D: 160e-6}, Noise: 0.1, PrefillBatch: 512, SharedBudget: true}
	longPrefills = knownBy(setup{engine: longPrefill, load: sometimes(bursts(0.6, conversations), 20, 40_000), jitter: longJitter, leave: 0.02}, truthTokens)
)

// Two more, on which nothing was ever chosen: they say whether what helps the
// others helps an engine that nobody has seen.
var (
	slowPrefill = sim.EngineOptions{
		Model: sim.Model{Table: []sim.Point{{N: 1, TPS: 32}, {N: 4, TPS: 29}, {N: 8, TPS: 24}, {N: 12, TPS: 21}, {N: 16, TPS: 15}, {N: 24, TPS: 12}}, D: 250e-6},
		Noise: 0.1, PrefillBatch: 512, MaxNumSeqs: 24,
	}
	pairs = sim.EngineOptions{Model: sim.Model{A: 0.006, B: 0.002, C: 0.0002, D: 45e-6, E: 4e-8}, Noise: 0.1, PrefillBatch: 1024, SharedBudget: true}

	apart = []struct {
		name string
		*known
	}{
		{"slow prefill, 24 slots, kernels that change at 13", knownBy(setup{engine: slowPrefill, load: bursts(0.7, conversations), jitter: longJitter, leave: 0.02, seesFew: 24}, truthTokens/2)},
		{"two ranks that read their caches and share a budget", knownBy(setup{engine: pairs, ranks: 2, load: bursts(3, conversations), jitter: longJitter, leave: 0.02}, truthTokens)},
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

// verdict is how good one run's curve was as users see it: at the load that n
// streams bring by themselves.
type verdict struct {
	run    sight // that load as the requests of the run had it
	long   sight // as the long run had it, of which the run is a sample
	levels errs  // at each level's own load of the long run
	same   errs  // and asked at that load
}

// sight holds a curve against the truth at one mix of requests.
type sight struct {
	shown    errs
	above    float64   // the bound over the truth at the visited level where it is highest, %
	visited  int       // levels
	exceeded int       // those where the bound is above the truth
	ratio    []float64 // largest n at a floor over the true one
	exact    []float64 // the same of a curve that is the truth, less the margin of the run
	near     []float64 // and of one that is nearSpeed of that
}

// nearSpeed is what is left of the truth where a curve is 1 % too slow: about what bins
// of some hundred steps can tell.
const nearSpeed = 0.99

func judge(k *known, seed uint64, tokens float64) verdict {
	look := promised(time.Second)
	w := newWorld(k.setup, seed, look)
	w.run(tokens)
	w.fold()
	t, c, levels := k.truth(), look.book.Curve(target), w.visited()
	var v verdict
	v.run = see(levels, c, func(n int) float64 { return t.tpsAt(n, rhoOf(w.levels)*float64(n)) })
	v.long = see(levels, c, func(n int) float64 { return t.tpsAt(n, t.rho*float64(n)) })
	v.levels.median, v.levels.p90 = errorsOver(levels, c.TPS, t.tps)
	v.same.median, v.same.p90 = errorsOver(levels, t.asked(c), t.tps)
	return v
}

// rhoOf is how many prompt tokens were prefilled beside streams for each token
// that they put out.
func rhoOf(levels []level) float64 {
	var prompts, tokens float64
	for _, l := range levels {
		prompts, tokens = prompts+l.prompts, tokens+l.tokens
	}
	return prompts / tokens
}

func see(levels []int, c *profiles.Curve, truth func(n int) float64) sight {
	by := func(part float64) []float64 {
		return floorRatios(levels, func(n int) float64 { return part * (1 - c.Margin()) * truth(n) }, truth)
	}
	low := func(n int) float64 { return c.Low(n, 0) }
	s := sight{above: -100, visited: len(levels), ratio: floorRatios(levels, low, truth), exact: by(1), near: by(nearSpeed)}
	s.shown.median, s.shown.p90 = errorsOver(levels, c.TPS, truth)
	for _, n := range levels {
		off := 100 * (c.Low(n, 0)/truth(n) - 1)
		s.above = max(s.above, off)
		if off > 0 {
			s.exceeded++
		}
	}
	return s
}

// floorRatios holds the largest n that a bound allows at floors between two
// visited levels, from 10 streams on, against the true one.
func floorRatios(levels []int, bound, truth func(n int) float64) (ratios []float64) {
	for _, level := range levels {
		floor := (truth(level) + truth(level+1)) / 2
		if level < 10 || !(truth(level+1) < floor) {
			continue
		}
		n := level
		for m := n + 2; m <= maxN; m++ {
			if truth(m) >= floor {
				n = m
			}
		}
		low := 0
		for low < maxN && bound(low+1) >= floor {
			low++
		}
		ratios = append(ratios, float64(low)/float64(n))
	}
	return ratios
}

// within returns the percentage of ratios from 0.85 to 1.03.
func within(ratios []float64) float64 {
	in := 0.0
	for _, r := range ratios {
		if r >= 0.85 && r <= 1.03 {
			in++
		}
	}
	return 100 * in / float64(len(ratios))
}

// held are the gates of a form where a goal is out of reach; 0 = the goal.
type held struct{ shown, p90, spread, above, floor, same, same90 float64 }

// sampledGates hold what is reached at the mix of the long run, of which a run is
// a sample: no estimator can know it.
var sampledGates = held{shown: 9, p90: 25, spread: 16, above: 30, floor: 20}

// over sums up what was seen in many runs.
func over(list []verdict, of func(v *verdict) sight, g held) []figure {
	var medians, p90s, above, ratios []float64
	var visited, exceeded float64
	for i := range list {
		s := of(&list[i])
		medians, p90s, above = append(medians, s.shown.median), append(p90s, s.shown.p90), append(above, s.above)
		visited, exceeded = visited+float64(s.visited), exceeded+float64(s.exceeded)
		ratios = append(ratios, s.ratio...)
	}
	return []figure{
		{name: "shown median", got: median(medians), goal: 2.5, gate: g.shown},
		{name: "p90", got: median(p90s), goal: 6, gate: g.p90},
		{name: "p90 over runs of the median", got: quantile(medians, 0.9), goal: 4, gate: g.spread},
		{name: "worst run", got: slices.Max(medians)},
		{name: "bound above the truth at worst %", got: slices.Max(above), goal: 3, gate: g.above},
		{name: "levels where it is above %", got: 100 * exceeded / visited},
		{name: "largest n at a floor within 0.85–1.03, %", got: within(ratios), goal: 95, gate: g.floor, least: true},
		{name: "its 5 % quantile", got: quantile(ratios, 0.05)},
		{name: "95 %", got: quantile(ratios, 0.95)},
	}
}

// formRow judges the curves of an engine as users see them.
func formRow(name string, k *known, g held, why string) row {
	return sampledRow(name, k, g, sampledGates, why)
}

// sampledRow is formRow with other gates for the long run's mix.
func sampledRow(name string, k *known, g, sampledGates held, why string) row {
	return row{name: "as users see it, " + name, measure: func(t *testing.T) []line {
		var list []verdict
		var levels, same, same90, ratios, exact, near []float64
		for seed := range uint64(seeds()) {
			v := judge(k, seed, 100e3)
			list = append(list, v)
			levels, same, same90 = append(levels, v.levels.median), append(same, v.same.median), append(same90, v.same.p90)
			ratios, exact, near = append(ratios, v.run.ratio...), append(exact, v.run.exact...), append(near, v.run.near...)
		}
		run := over(list, func(v *verdict) sight { return v.run }, g)
		long := over(list, func(v *verdict) sight { return v.long }, sampledGates)
		return []line{{
			what: "as users see it, " + name + ", 100k, at the run's mix of requests",
			figures: append(run,
				figure{name: "true p median", got: median(same), goal: 1.5, gate: g.same},
				figure{name: "p90 ", got: median(same90), goal: 4, gate: g.same90},
				figure{name: "p90 over runs of the median ", got: quantile(same, 0.9)},
				figure{name: "floors that a curve 1 % below the truth has beyond those, %", got: within(near) - within(ratios), gate: 10},
			), why: why,
			controls: []string{fmt.Sprintf("floors within 0.85–1.03 by the truth less the run's margin %.3g %%, by one 1 %% too slow %.3g %%", within(exact), within(near))},
		}, {
			what:    "the same at the long run's mix",
			figures: long, why: sampled,
			controls: []string{fmt.Sprintf("against each level's own load in the long run, median %.3g", median(levels))},
		}}
	}}
}
