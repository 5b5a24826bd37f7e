package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/sim"
)

// scorecard asks the admin port of h for the route chat at n.
func (h *house) scorecard(n int) api.ScoredRoute {
	h.t.Helper()
	resp := must.Get(h.client.HTTP.Get(fmt.Sprintf("http://127.0.0.1:9090/api/v1/scorecard?model=chat&n=%d", n)))(h.t)
	defer resp.Body.Close()
	var card api.Scorecard
	if err := json.NewDecoder(resp.Body).Decode(&card); err != nil || resp.StatusCode != http.StatusOK || len(card.Routes) != 1 {
		h.t.Fatalf("%s: %+v, %v", resp.Status, card, err)
	}
	return card.Routes[0]
}

// The scorecard of two engines, one of which has half as many tokens for the same text,
// is within 3 % of what the engines say that they gave, and of what clients saw: at each
// level that they were at. Time is virtual: no other process can make it slower.
func TestScorecardIsTrue(t *testing.T) {
	levels, seeds, each := []int{1, 4, 8, 16}, []uint64{1, 2, 3}, 90*time.Second
	if racetest.On { // make numbers runs it whole
		levels, seeds, each = levels[:2], seeds[:1], 40*time.Second
	}
	for _, seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t, []gpu{
				{name: "slow", model: sim.Model{A: 0.018, B: 0.001, C: 0.0008, D: 0.00002}, seed: seed, conf: ", price: { input: 1, output: 3 }"},
				{name: "fast", model: sim.Model{A: 0.008, C: 0.0004, D: 0.00001}, seed: seed + 10, opts: sim.Options{Behaviours: []string{"two-words"}}},
			}, `routes:
  - { model: chat, slo: { min_tps: 10 }, targets: [ { backend: slow, model: m }, { backend: fast, model: m } ] }
  - { model: slow, targets: [ { backend: slow, model: m } ] }
  - { model: fast, targets: [ { backend: fast, model: m } ] }
`, options{})
			seen := map[string]*results{"slow": {}, "fast": {}}
			for _, n := range levels {
				ctx, stop := context.WithTimeout(t.Context(), each)
				var running sync.WaitGroup
				for range n {
					for name, r := range seen {
						running.Go(func() {
							for ctx.Err() == nil {
								r.add(h.client.Stream(ctx, loadgen.Request{Model: name, PromptTokens: 200, MaxTokens: 300}))
							}
						})
					}
				}
				running.Wait()
				stop()
				sleep(5 * time.Second)
			}
			text := map[string]int{}
			for name, tokens := range map[string]int{"slow": 200, "fast": 100} {
				text[name] = len(h.said(name, tokens))
			}
			if text["slow"] != text["fast"] {
				t.Fatalf("the same text has %d bytes from one and %d from the other", text["slow"], text["fast"])
			}
			sleep(5 * time.Second)
			within := func(what string, got, want float64) {
				t.Helper()
				if off := got/want - 1; !(math.Abs(off) <= 0.03) {
					t.Errorf("seed %d: %s is %.4g, want %.4g within 3 %% (%+.1f %%)", seed, what, got, want, 100*off)
				} else {
					t.Logf("seed %d: %s is %.4g, want %.4g (%+.1f %%)", seed, what, got, want, 100*off)
				}
			}
			for _, n := range levels {
				r := h.scorecard(n)
				if r.Targets[0].Backend != "fast" || r.RankedBy != "text" || r.N != n {
					t.Errorf("at n = %d %s is first by %s, want fast by text", r.N, r.Targets[0].Backend, r.RankedBy)
				}
				for _, s := range r.Targets {
					truth := h.engines[s.Backend].Truth()
					i := slices.IndexFunc(truth.Points, func(p sim.TruthPoint) bool { return p.N == n })
					within(fmt.Sprintf("%s at n = %d", s.Backend, n), float64(s.AtN.TPS), truth.Points[i].TPS)
				}
			}
			perByte := map[string]float64{"slow": 200 / float64(text["slow"]), "fast": 100 / float64(text["fast"])}
			for _, s := range h.scorecard(4).Targets {
				var tps, ttft []float64
				for _, x := range seen[s.Backend].list {
					if v, ok := x.TPS(); ok {
						tps = append(tps, v)
					}
					if x.TTFT > 0 {
						ttft = append(ttft, x.TTFT.Seconds())
					}
				}
				within(s.Backend+", tokens per byte", float64(s.TokensPerByte), perByte[s.Backend])
				within(s.Backend+", text", float64(s.TextBytesPerS), float64(s.AtN.TPS)/perByte[s.Backend])
				if racetest.On { // too few streams for quantiles
					continue
				}
				// The gateway counts some that no user sent, and a median may lie where few are. So
				// a quantile that lies as many ranks further, and one more, is as true.
				ranked := func(what string, got float64, seen []float64, streams uint64, q float64) {
					t.Helper()
					ranks := (math.Abs(float64(streams)-float64(len(seen))) + 1) / float64(len(seen))
					if ranks > 0.03 {
						t.Fatalf("seed %d: %s of %d streams, clients saw %d", seed, what, streams, len(seen))
					}
					within(s.Backend+", "+what, got, min(max(got, quantile(seen, q-ranks)), quantile(seen, q+ranks)))
				}
				ranked("p10 of TPS", float64(s.Window.TPS.P10), tps, s.Window.TPSStreams, 0.1)
				ranked("p50 of TPS", float64(s.Window.TPS.P50), tps, s.Window.TPSStreams, 0.5)
				ranked("p50 of TTFT", float64(s.Window.TTFTS.P50), ttft, s.Window.TTFTStreams, 0.5)
				ranked("p99 of TTFT", float64(s.Window.TTFTS.P99), ttft, s.Window.TTFTStreams, 0.99)
			}
			h.idle()
		})
	}
}

// said is what the engine says as a document of so many tokens.
func (h *house) said(model string, tokens int) string {
	h.t.Helper()
	resp := must.Get(h.client.HTTP.Post("http://127.0.0.1:8080/v1/chat/completions", "application/json",
		strings.NewReader(fmt.Sprintf(`{"model":%q,"max_tokens":%d,"messages":[{"role":"user","content":"x"}]}`, model, tokens))))(h.t)
	defer resp.Body.Close()
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || len(answer.Choices) != 1 {
		h.t.Fatalf("%s %v", resp.Status, err)
	}
	return answer.Choices[0].Message.Content
}
