package accuracy

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/pacer-dev/pacer/internal/presets"
	"github.com/pacer-dev/pacer/sim"
)

const (
	networkJitter = 200 * time.Microsecond
	longJitter    = 2 * time.Millisecond

	// truthTokens is the length of the long runs.
	truthTokens = 6e6
)

// The engines of the scenarios. Noise is 10 %, resembling that of the step
// before; a step prefills 2,048 prompt tokens at most.
var (
	dense  = sim.EngineOptions{Model: sim.Model{A: 0.012, C: 0.00025}, Noise: 0.1, PrefillBatch: 2048}
	sparse = sim.EngineOptions{Model: sim.Model{A: 0.006, B: 0.0025, C: 0.00015}, Noise: 0.1, PrefillBatch: 2048} // mixture of experts
	mixed  = sim.EngineOptions{Model: sim.Model{A: 0.008, B: 0.0012, C: 0.0001, D: 30e-6, E: 2e-8}, Noise: 0.1, PrefillBatch: 2048}
)

// The scenarios, S1 to S8, and those made from them.
var (
	s1          = knownBy(setup{engine: dense, load: promptless(bursts(2.7, conversations)), jitter: longJitter}, truthTokens)
	s2          = knownBy(setup{engine: sparse, load: promptless(bursts(2.7, conversations)), jitter: longJitter}, truthTokens)
	s3          = knownBy(setup{engine: mixed, load: replay(conversations, 0.5), jitter: longJitter, leave: 0.02}, truthTokens)
	s4          = knownBy(setup{engine: mixed, load: bursts(2.7, conversations), jitter: longJitter, leave: 0.02}, truthTokens)
	s5          = knownBy(setup{engine: drafting(mixed), load: bursts(2.7, conversations), jitter: 5 * longJitter, leave: 0.02, chunk: 4}, truthTokens)
	s5late      = knownBy(setup{engine: drafting(mixed), load: bursts(2.7, conversations), jitter: 5 * longJitter, leave: 0.02, chunk: 4, late: true}, truthTokens)
	coalesced16 = knownBy(setup{engine: mixed, load: bursts(2.7, conversations), jitter: longJitter, leave: 0.02, chunk: 16, late: true}, truthTokens)
	coalesced50 = knownBy(setup{engine: mixed, load: bursts(2.7, conversations), jitter: longJitter, leave: 0.02, chunk: 50, late: true}, truthTokens)
	coalescing  = knownBy(setup{engine: mixed, load: bursts(2.7, conversations), jitter: longJitter, leave: 0.02, sizes: []int{1, 4, 16, 50, 1, 30}, late: true}, truthTokens)
	eachItsOwn  = knownBy(setup{engine: mixed, load: longer(bursts(2.7/6, conversations), 3, 6), jitter: longJitter, leave: 0.02, sizes: sizesTo(200), late: true}, truthTokens)
	opening50   = knownBy(setup{engine: mixed, load: bursts(2.7, conversations), jitter: longJitter, leave: 0.02, opens: 50}, truthTokens)
	told200     = knownBy(setup{engine: mixed, load: longer(bursts(2.7/6, conversations), 3, 6), jitter: longJitter, leave: 0.02, chunk: 200, late: true, tells: true}, truthTokens)
	s5told      = knownBy(setup{engine: drafting(mixed), load: bursts(2.7, conversations), jitter: 5 * longJitter, leave: 0.02, chunk: 4, late: true, tells: true}, truthTokens)
	s6          = knownBy(setup{engine: mixed, load: replay(completions, 1), jitter: longJitter}, truthTokens/4)
	s7          = knownBy(setup{engine: narrow(mixed, 24), load: bursts(2.7, conversations), jitter: longJitter, leave: 0.02, seesFew: 24}, truthTokens)
	s8          = knownBy(setup{engine: mixed, load: bursts(1.6, conversations), jitter: longJitter, leave: 0.02, hidden: 10}, truthTokens)
	s8Seen      = knownBy(counted(s8.setup), truthTokens)

	// The same with a tenant whose requests are like those that Pacer sees.
	s8Like     = knownBy(alike(s8.setup), truthTokens)
	s8LikeSeen = knownBy(counted(alike(s8.setup)), truthTokens)

	// Prompts that cost otherwise than the fit believes: as their 1.1th power,
	// and more beside more streams.
	wrongForm       = knownBy(setup{engine: crooked(), load: replay(conversations, 0.5), jitter: longJitter, leave: 0.02}, truthTokens)
	wrongFormBursts = knownBy(setup{engine: crooked(), load: bursts(2.7, conversations), jitter: longJitter, leave: 0.02}, truthTokens)

	longPrompts = knownBy(setup{engine: mixed, load: scaled(bursts(2.7, conversations), 3), jitter: longJitter, leave: 0.02}, truthTokens)

	// A server on a CPU whose kernel changes with the number of streams, and
	// one whose second stream costs most of the speed. Eight slots.
	stepsOf = uneven([]sim.Point{{N: 1, TPS: 835}, {N: 2, TPS: 420}, {N: 3, TPS: 296}, {N: 4, TPS: 387}, {N: 5, TPS: 264}, {N: 6, TPS: 201}, {N: 7, TPS: 158}, {N: 8, TPS: 179}})
	cliffOf = uneven([]sim.Point{{N: 1, TPS: 485}, {N: 2, TPS: 133}, {N: 3, TPS: 109}, {N: 4, TPS: 85}, {N: 6, TPS: 62}, {N: 8, TPS: 62}})
)

// sizesTo are sizes of chunks from 1 to most, one for each request in turn.
func sizesTo(most int) (sizes []int) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 997 {
		sizes = append(sizes, 1+r.IntN(most))
	}
	return sizes
}

// counted reads the engine's own count of its sequences.
func counted(s setup) setup {
	s.signal = true
	return s
}

func alike(s setup) setup {
	s.alike = true
	return s
}

// drafting proposes three tokens a step.
func drafting(o sim.EngineOptions) sim.EngineOptions {
	o.Draft = 3
	return o
}

func narrow(o sim.EngineOptions, slots int) sim.EngineOptions {
	o.MaxNumSeqs = slots
	return o
}

// crooked has a published curve and a prefill of another form than the fit's.
func crooked() sim.EngineOptions {
	p, ok := presets.Lookup("llama-3.1-70b/h200/vllm")
	if !ok {
		panic("no such preset")
	}
	return sim.EngineOptions{
		Model: tableOf(p), Noise: 0.1, PrefillBatch: 2048,
		Prefill: func(n, p int) float64 { return 15e-6 * math.Pow(float64(p), 1.1) * (1 + float64(n)/40) },
	}
}

func tableOf(p presets.Preset) sim.Model {
	m := sim.Model{D: p.SecondsPerPromptToken}
	for _, q := range p.Points {
		m.Table = append(m.Table, sim.Point{N: q.N, TPS: q.TPS})
	}
	return m
}

// uneven makes, for a jitter, an engine of eight slots with the given table.
func uneven(table []sim.Point) func(jitter time.Duration) *known {
	return func(jitter time.Duration) *known {
		o := sim.EngineOptions{Model: sim.Model{Table: table}, Noise: 0.1, MaxNumSeqs: 8}
		rate := 0.35 * 8 * table[len(table)-1].TPS / 211 // a third of what it can do
		return knownBy(setup{engine: o, load: promptless(bursts(rate, conversations)), jitter: jitter, seesFew: 8}, truthTokens/10)
	}
}

// published is a published curve under bursts that hold it at about ten
// streams on average, and at some tens at times: within the table, as far as it
// goes. Prompts take a tenth of its time, whatever one costs.
func published(p presets.Preset) *known {
	const usual, prefill = 10, 0.1
	o := sim.EngineOptions{Model: tableOf(p), Noise: 0.1, PrefillBatch: 2048}
	rate := usual * (1 - prefill) / (211 * o.Model.StepSeconds(usual, 0))
	prompts := prefill / (rate * 1155 * o.Model.D)
	return knownBy(setup{engine: o, load: scaled(bursts(rate, conversations), min(prompts, 3)), jitter: networkJitter, leave: 0.02}, truthTokens/4)
}
