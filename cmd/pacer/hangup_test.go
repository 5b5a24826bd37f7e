package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

// Clients that hang up, 10,000 of them and whenever they like: in line, in the
// engine's queue, while it prefills, in the middle. Nothing of them stays, and
// nothing of it is held against the backend.
func TestTenThousandHangUpsLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []gpu{{
			name: "a", model: sim.Model{A: 0.020, C: 0.001, D: 0.0001}, seed: 9, conf: ", max_concurrency: 24",
			opts: sim.Options{MaxNumSeqs: 16, Behaviours: []string{"headers-after-queue"}},
		}}, "routes:\n  - { model: chat, targets: [ { backend: a, model: m } ], on_infeasible: [ { queue: 1m }, shed ] }\n", options{})
		transport := &http.Transport{DialContext: h.network.Dial, DisableKeepAlives: true}
		client := &loadgen.Client{BaseURL: h.client.BaseURL, HTTP: &http.Client{Transport: transport}}
		left := often()
		var mu sync.Mutex
		next := func() bool {
			mu.Lock()
			defer mu.Unlock()
			left--
			return left >= 0
		}
		var users sync.WaitGroup
		var waited, decoded results
		for i := range 32 {
			users.Go(func() {
				rng := rand.New(rand.NewPCG(7, uint64(i)))
				for next() {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.ExpFloat64()*float64(2*time.Second)))
					r := client.Stream(ctx, loadgen.Request{Model: "chat", PromptTokens: 100 + rng.IntN(3000), MaxTokens: 100_000})
					cancel()
					if r.Outcome != loadgen.Aborted {
						t.Errorf("%v (%v) before its client hung up", r.Outcome, r.Err)
					}
					if r.Tokens > 0 {
						decoded.add(r)
					} else {
						waited.add(r)
					}
				}
			})
		}
		users.Wait()
		synctest.Wait()
		truth := h.engines["a"].Truth()
		t.Logf("%d hung up before their first token, %d after it; %d of them cancelled in the engine", len(waited.list), len(decoded.list), truth.Cancelled)
		if len(waited.list) < often()/10 || len(decoded.list) < often()/10 || truth.Cancelled > often()*95/100 {
			t.Error("want hang-ups in every phase")
		}
		if truth.Running+truth.Waiting != 0 {
			t.Errorf("the engine still has %d running and %d waiting", truth.Running, truth.Waiting)
		}
		h.want(map[string]int{"client_gone": often()}, router.Up)
		if s := h.program.metrics.Route("chat"); s.Failed+s.Shed != 0 {
			t.Errorf("route counts %+v, want none failed or shed", s)
		}
		for _, r := range h.program.router.Routes(time.Now()) {
			if r.Waiting != 0 {
				t.Errorf("%d still in line", r.Waiting)
			}
		}
		done(t, h.atOnce(1, loadgen.Request{Model: "chat", MaxTokens: 500}), 500, 1/0.021)
	})
}
