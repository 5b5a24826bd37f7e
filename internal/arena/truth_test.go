package arena

import (
	"iter"
	"math"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/sim"
)

// What the oracle is told is what the engine does, at every level that has a
// bin, and what a prompt costs it.
func TestTheOracleIsToldTheTruth(t *testing.T) {
	skipUnderRace(t)
	spec := engineOf("llama-3.1-70b/h200/vllm")
	spec.Draft, spec.Speed = 3, 0.5
	list := append(mixed(), Backend{Name: "drafts", Engine: spec},
		Backend{Name: "law", Engine: sim.EngineOptions{Model: sim.Model{A: 0.01, B: 0.001, C: 0.0003, D: 2e-5}}})
	s := Scenario{
		Backends: list, Routes: []Route{chat("chat", 30, list)}, Load: steady(10)(1),
		Policy: Oracle, Duration: length300, Seed: 1,
	}
	must.Do(t, s.complete())
	more, stop := iter.Pull(s.Load)
	defer stop()
	w := newWorld(s, more)
	must.Do(t, w.build())
	for _, drift := range []float64{1, 1.5} {
		for _, e := range w.engines {
			e.slow(drift)
			c := e.truth().curve(profiles.Target{Backend: e.conf.Name, Model: "m"}, noMargin)
			for bin := range profiles.NumBins {
				_, n := profiles.BinBounds(bin)
				want := e.trueTPS(n)
				if n > e.slots() || n > 8 && want < 15 {
					break
				}
				if got := c.TPS(n); math.Abs(got/want-1) > 0.04 {
					t.Errorf("%s ×%.1f: %.1f tokens/s at n = %d, want %.1f", e.conf.Name, drift, got, n, want)
				}
				if low := c.Low(n, 0); low < 0.9*want || low > 1.05*want {
					t.Errorf("%s ×%.1f: a bound of %.1f at n = %d without a margin, want about %.1f", e.conf.Name, drift, low, n, want)
				}
			}
			// A step gives several tokens where drafts are taken.
			prompt := e.stepSeconds(1, 1) - e.stepSeconds(1, 0)
			if got := c.SecondsPerPromptToken(); math.Abs(got/prompt-1) > 0.05 {
				t.Errorf("%s ×%.1f: a prompt token costs %.3g s, want %.3g", e.conf.Name, drift, got, prompt)
			}
			if got := c.TTFT().PerToken; math.Abs(got/prompt-1) > 0.05 {
				t.Errorf("%s ×%.1f: a first token waits %.3g s for each of its prompt, want %.3g", e.conf.Name, drift, got, prompt)
			}
		}
	}
}
