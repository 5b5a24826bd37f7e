package accuracy

import (
	"math"
	"time"

	"github.com/pacer-dev/pacer/sim"
)

// Engines, and ways to the gateway, on which nothing was chosen: they ask whether
// what helps the others helps those that nobody has thought of.
var holdouts = []struct {
	name string
	*known
}{
	{"a cubic knee", knownBy(setup{engine: narrow(cubic(), 96), load: bursts(1.8, conversations), jitter: longJitter, leave: 0.02}, truthTokens)},
	{"an engine with moods", knownBy(setup{engine: mixed, load: bursts(2.2, conversations), jitter: longJitter, leave: 0.02, mood: mood{1.5, 3 * time.Second}}, truthTokens)},
	{"prompts that are free up to the roof", knownBy(setup{engine: roofed(), load: bursts(2.7, conversations), jitter: longJitter, leave: 0.02}, truthTokens)},
	{"prompts that another engine prefills", knownBy(setup{engine: sim.EngineOptions{Model: sim.Model{A: 0.008, B: 0.0012, C: 0.0001}, Noise: 0.1, PrefillBatch: 2048}, load: bursts(2.7, conversations), jitter: longJitter, leave: 0.02}, truthTokens)},
	{"tokens that are collected for 100 ms", knownBy(setup{engine: mixed, load: bursts(2.7, conversations), jitter: longJitter, leave: 0.02, collects: 100 * time.Millisecond}, truthTokens)},
	{"a proxy that holds each chunk for up to 60 ms", knownBy(setup{engine: mixed, load: bursts(2.7, conversations), jitter: 60 * time.Millisecond, leave: 0.02}, truthTokens)},
}

// cubic computes more than it reads from some twenty sequences on, and soon by far.
func cubic() sim.EngineOptions {
	o := sim.EngineOptions{Model: sim.Model{D: 30e-6}, Noise: 0.1, PrefillBatch: 2048}
	for n := 1; n <= maxN; n++ {
		o.Model.Table = append(o.Model.Table, sim.Point{N: n, TPS: 1 / (0.012 + 0.0001*float64(n) + 6e-8*math.Pow(float64(n), 3))})
	}
	return o
}

// roofed takes the longer of reading, which sequences share, and computing, which
// each token costs. So a few hundred prompt tokens a step cost nothing.
func roofed() sim.EngineOptions {
	o := sharing(mixed, 512)
	o.Model.D, o.Model.E = 12e-6, 0 // what it comes to under this load
	reads := o.Model
	o.Prefill = func(n, p int) float64 {
		return max(40e-6*float64(n+p)-reads.StepSeconds(max(n, 1), 0), 0)
	}
	return o
}
