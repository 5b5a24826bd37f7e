package sim_test

import (
	"fmt"
	"time"

	"github.com/pacer-dev/pacer/sim"
)

// An engine under virtual time: whoever drives it jumps from step to step.
func ExampleEngine() {
	engine, err := sim.NewEngine(sim.EngineOptions{
		Model: sim.Model{A: 0.020, C: 0.005, D: 0.0001}, // 20 ms, 5 ms for each sequence, 0.1 ms for a prompt token
		Noise: -1,
	})
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"a", "b"} {
		if _, err := engine.Submit(100, 3, name); err != nil {
			panic(err)
		}
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for now, busy := start, true; busy; now, busy = engine.Next() {
		for _, o := range engine.Step(now).Outputs {
			fmt.Println(now.Sub(start), o.Sequence.Tag, "first:", o.First, "last:", o.Last)
		}
	}
	for _, p := range engine.Truth().Points {
		fmt.Printf("n=%d: %.1f tokens/s\n", p.N, p.TPS)
	}
	// Output:
	// 45ms a first: true last: false
	// 45ms b first: true last: false
	// 75ms a first: false last: false
	// 75ms b first: false last: false
	// 105ms a first: false last: true
	// 105ms b first: false last: true
	// n=2: 33.3 tokens/s
}
