package arena

import (
	"flag"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/sim"
)

var (
	slotSeeds = flag.Int("slots", 3, "how many seeds TestFewSlotsBesideARoomyEngine plays")
	slotRate  = flag.Float64("slot-rate", 5.5, "requests per second there")
	slotFirst = flag.Int("slot-first", 1, "the first seed there")
)

// Of two engines the one with sixteen slots is the faster by its tokens however long its
// own line is. Nobody stands in that while the other one serves at once what the floor
// asks for.
func TestFewSlotsBesideARoomyEngine(t *testing.T) {
	skipUnderRace(t)
	engines := []Backend{
		{Name: "roomy", Engine: sim.EngineOptions{Model: sim.Model{A: 0.012, C: 0.0005, D: 1e-4}}},
		{Name: "slots", Engine: sim.EngineOptions{Model: sim.Model{A: 0.012, C: 0.0004, D: 5e-5}, MaxNumSeqs: 16}},
	}
	const minutes = 6
	for i := range *slotSeeds {
		seed := uint64(*slotFirst + i)
		r := play(t, Scenario{
			Backends: engines, Routes: []Route{chat("chat", 20, engines)}, Load: chatting(*slotRate, minutes*time.Minute)(seed),
			Policy: Pacer, Duration: minutes * time.Minute, Warmup: time.Minute, Seed: seed,
		})
		c := r.Routes[0]
		t.Logf("seed %d: met %.2f %%, missed %.2f %% of the served, first token p50 %v p99 %v", seed, 100*c.Attainment(), 100*c.MissedOfServed(), c.TTFTP50, c.TTFTP99)
		if *slotRate <= 5.5 && (c.TTFTP99 > 4*time.Second || c.Attainment() < 0.995 || c.MissedOfServed() > 0.001) {
			t.Errorf("seed %d: want all met, and first tokens within 4 s; they took 8 in the line of the slots", seed)
		}
	}
}
