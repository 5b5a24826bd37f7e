package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/sim"
)

// An engine goes down and comes back 1.5 times slower: the breaker opens and
// closes, and the curve says so 12 s after the engine is back. Without being
// told of the restart it takes three times as long.
func TestAnEngineThatComesBackSlowerIsBelievedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const down, up = 180 * time.Second, 200 * time.Second
		start := time.Now()
		h := newHouse(t, []gpu{{name: "a", model: carries64, seed: 5, opts: sim.Options{Faults: []string{
			"status:502@180s", "cut:1@180s", "status:0@200s", "cut:0@200s", "drift:1.5@200s",
		}}}}, oneRoute, options{})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var clients sync.WaitGroup
		for i := range 8 {
			clients.Go(func() {
				rng := rand.New(rand.NewPCG(9, uint64(i)))
				for ctx.Err() == nil {
					h.client.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 20, MaxTokens: 50 + rng.IntN(200)})
					loadgen.Wait(ctx, time.Duration(rng.ExpFloat64()*float64(time.Second)))
				}
			})
		}
		sleep(down - time.Since(start))
		if g := h.curve("a").Scale(); g != 1 {
			t.Fatalf("before: g = %.3f, want 1", g)
		}
		sleep(up - time.Since(start))
		for h.curve("a").Scale() > 0.73 && time.Since(start) < up+2*time.Minute {
			sleep(time.Second)
		}
		took := time.Since(start) - up
		t.Logf("g = %.3f after %v", h.curve("a").Scale(), took)
		if took > 12*time.Second {
			t.Errorf("1.5 times slower is believed %v after the engine is back, want 12s at most", took)
		}
		cancel()
		clients.Wait()
	})
}
