package main

import (
	"context"
	"io"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

// steady is an engine without a curve: 50 tokens/s for everybody, 0.1 ms a
// prompt token.
var steady = sim.Model{A: 0.020, D: 0.0001}

// behaved is one house before an engine a with a behaviour, and without noise.
func behaved(t *testing.T, behaviour string, slots int, routes string) *house {
	return newHouse(t, []gpu{{name: "a", model: steady, opts: sim.Options{Behaviours: []string{behaviour}, MaxNumSeqs: slots, Noise: -1}}}, routes, options{})
}

// atOnce sends so many requests at the same time and returns what came of them.
func (h *house) atOnce(users int, req loadgen.Request) *results {
	var got results
	var wg sync.WaitGroup
	for range users {
		wg.Go(func() { got.add(h.client.Stream(context.Background(), req)) })
	}
	wg.Wait()
	return &got
}

// post sends a body of the test's own and returns the answer, read to its end.
func (h *house) post(body string) (status int, header http.Header, text string, err error) {
	h.t.Helper()
	resp, err := h.client.HTTP.Post(h.client.BaseURL+"/chat/completions", "application/json", strings.NewReader(body))
	must.Do(h.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(b), err
}

var requestsLine = regexp.MustCompile(`(?m)^pacer_requests_total\{.*outcome="(\w+)".*\} (\d+)`)

// outcomes are the requests counted so far, by what became of them.
func (h *house) outcomes() map[string]int {
	h.t.Helper()
	got := map[string]int{}
	for _, m := range requestsLine.FindAllStringSubmatch(h.page("/metrics"), -1) {
		if n, _ := strconv.Atoi(m[2]); n > 0 {
			got[m[1]] += n
		}
	}
	return got
}

// want checks what the requests became, that nothing is left of them, and
// whether the backend is still in service.
func (h *house) want(outcomes map[string]int, health router.Health) {
	h.t.Helper()
	synctest.Wait()
	if got := h.outcomes(); !maps.Equal(got, outcomes) {
		h.t.Errorf("requests ended as %v, want %v", got, outcomes)
	}
	h.idle()
	if got := h.program.router.Loads()[0].Health; got != health {
		h.t.Errorf("the backend is %v, want %v", got, health)
	}
}

// done checks that every stream came whole, at about so many tokens/s.
func done(t *testing.T, got *results, tokens int, tps float64) {
	t.Helper()
	for i, r := range got.list {
		speed, _ := r.TPS()
		if r.Outcome != loadgen.Done || r.Tokens != tokens || math.Abs(speed/tps-1) > 0.02 {
			t.Errorf("stream %d: %v (%v), %d tokens at %.1f tokens/s; want %d at %.1f", i, r.Outcome, r.Err, r.Tokens, speed, tokens, tps)
		}
	}
}

// within checks a figure.
func within(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if !(math.Abs(got/want-1) <= share) {
		t.Errorf("%s: %.3f, want %.3f", what, got, want)
	}
}

// learned checks the curve against what the engine recorded, at every level
// with at least 2 % of the exposure; low must never rise.
func (h *house) learned(levels int, share float64) {
	h.t.Helper()
	sleep(6 * time.Second) // a window, and the loop that folds it
	curve, truth := h.curve("a"), h.engines["a"].Truth()
	var seconds float64
	for _, p := range truth.Points {
		seconds += p.StreamSeconds
	}
	judged := 0
	for _, p := range truth.Points {
		if p.StreamSeconds >= 0.02*seconds {
			judged++
			within(h.t, "learned TPS at n = "+strconv.Itoa(p.N), curve.TPS(p.N), p.TPS, share)
		}
	}
	if judged < levels {
		h.t.Errorf("%d levels visited, want at least %d", judged, levels)
	}
	for n := 2; n <= 16; n++ {
		if curve.Low(n, 0) > curve.Low(n-1, 0) {
			h.t.Errorf("low rises from n = %d to %d", n-1, n)
		}
	}
}

const words = `"messages":[{"role":"user","content":"hello"}]`

// engineBehaviours are the habits of real engines, each with what the client,
// the breaker and the curve make of it.
var engineBehaviours = map[string]func(*testing.T){
	// Passed on with its status, and no failure of the backend.
	"429-on-full-queue": func(t *testing.T) {
		h := behaved(t, "429-on-full-queue", 2, oneRoute)
		got := h.atOnce(10, loadgen.Request{Model: "chat", MaxTokens: 50}) // 2 run, 4 wait
		refused := got.count(func(r loadgen.Result) bool { return r.Outcome == loadgen.Shed && r.Status == 429 })
		if served := got.count(func(r loadgen.Result) bool { return r.Outcome == loadgen.Done }); served != 6 || refused != 4 {
			t.Errorf("%d served and %d refused of 10, want 6 and 4", served, refused)
		}
		sleep(10 * time.Second)
		done(t, h.atOnce(2, loadgen.Request{Model: "chat", MaxTokens: 50}), 50, 50)
		h.want(map[string]int{"ok": 8, "upstream_error": 4}, router.Up)
	},

	// Answered by Pacer itself with 400; the engine never hears of it.
	"500-on-bad-json": func(t *testing.T) {
		h := behaved(t, "500-on-bad-json", 0, oneRoute)
		for range 20 {
			status, _, body, _ := h.post(`{"model":"chat","messages":[}`)
			if status != 400 || !strings.Contains(body, `"invalid_request_error"`) {
				t.Fatalf("got %d %s, want 400", status, body)
			}
		}
		for range 20 { // JSON, but not what the engine understands: its own 500, which is no verdict
			if status, _, body, _ := h.post(`{"model":"chat","messages":7}`); status != 500 || !strings.Contains(body, "parse_error") {
				t.Fatalf("got %d %s, want the engine's own 500", status, body)
			}
		}
		done(t, h.atOnce(1, loadgen.Request{Model: "chat", MaxTokens: 50}), 50, 50)
		h.want(map[string]int{"rejected": 20, "upstream_error": 20, "ok": 1}, router.Up)
	},

	"cliff-curve": func(t *testing.T) { curveOf(t, "cliff-curve", 100, 3) },
	"step-curve":  func(t *testing.T) { curveOf(t, "step-curve", 280, 4) },

	// Nobody notices.
	"closes-after-stream": func(t *testing.T) {
		h := behaved(t, "closes-after-stream", 0, oneRoute)
		for range 20 {
			done(t, h.atOnce(5, loadgen.Request{Model: "chat", MaxTokens: 20}), 20, 50)
		}
		h.want(map[string]int{"ok": 100}, router.Up)
	},

	// Never an end that looks good; a backend that does only this is taken out.
	"cut-without-done": func(t *testing.T) {
		h := behaved(t, "cut-without-done", 0, oneRoute)
		for range 5 { // that each began well does not speak for it
			status, _, body, err := h.post(`{"model":"chat","stream":true,"max_tokens":40,` + words + `}`)
			if status != 200 || err == nil || strings.Count(body, `"content":"`) != 21 || // with that of the role
				!strings.Contains(body, `{"error":{`) || strings.Contains(body, "[DONE]") {
				t.Errorf("got %d %q (%v), want half of the stream, an error event and a cut", status, body, err)
			}
		}
		h.want(map[string]int{"cut": 5}, router.Down)
	},

	// The wait for headers is the engine's queue: no failure, and part of the
	// time to the first token.
	"headers-after-queue": func(t *testing.T) {
		h := behaved(t, "headers-after-queue", 1, oneRoute)
		got := h.atOnce(3, loadgen.Request{Model: "chat", MaxTokens: 500}) // 10 s each
		done(t, got, 500, 50)
		last := time.Duration(0)
		for _, r := range got.list {
			last = max(last, r.TTFT)
		}
		if last < 20*time.Second || last > 21*time.Second {
			t.Errorf("the last of three had its first token after %v, want 20 s: the answers before it", last)
		}
		within(t, "p99 of the time to the first token", h.program.metrics.Route("chat").TTFTP99, last.Seconds(), 0.05)
		h.want(map[string]int{"ok": 3}, router.Up)
		h.learned(1, 0.01)
	},

	// Alive, but not ready: refused while it loads, served at once after it.
	"loading-503": func(t *testing.T) {
		h := behaved(t, "loading-503", 0, oneRoute)
		for range 20 {
			status, header, body, _ := h.post(`{"model":"chat",` + words + `}`)
			if status != 503 || !strings.Contains(body, "loading") {
				t.Fatalf("got %d %s (Retry-After %q), want 503", status, body, header.Get("Retry-After"))
			}
		}
		sleep(7 * time.Second) // 5 s, and up to 1.1 s until somebody looks again
		done(t, h.atOnce(2, loadgen.Request{Model: "chat", MaxTokens: 50}), 50, 50)
		h.want(map[string]int{"upstream_error": 20, "ok": 2}, router.Up)
	},

	// Several sequences are never evidence, whatever their usage says.
	"n2-usage-wrong": func(t *testing.T) {
		h := behaved(t, "n2-usage-wrong", 0, oneRoute)
		for range 5 {
			status, _, body, err := h.post(`{"model":"chat","stream":true,"n":2,"max_tokens":100,` + words + `}`)
			if status != 200 || err != nil || !strings.Contains(body, `"index":1`) || !strings.HasSuffix(body, "data: [DONE]\n\n") || strings.Contains(body, `"usage"`) {
				t.Fatalf("got %d %.300q (%v), want two choices, whole", status, body, err)
			}
		}
		sleep(6 * time.Second)
		if curve := h.curve("a"); curve.Tokens() != 0 || curve.Known() {
			t.Errorf("%.0f tokens of several sequences feed the curve, want none", curve.Tokens())
		}
		h.want(map[string]int{"ok": 5}, router.Up)
	},

	// Passed on; neither a token nor the first sign of one.
	"ping-comments": func(t *testing.T) {
		h := behaved(t, "ping-comments", 0, oneRoute)
		_, _, body, err := h.post(`{"model":"chat","stream":true,"max_tokens":48,"messages":[{"role":"user","content":"` + strings.Repeat("word", 10_000) + `"}]}`)
		if n := strings.Count(body, ": ping\n\n"); n != 4 || err != nil {
			t.Errorf("%d comments came (%v), want 4", n, err)
		}
		synctest.Wait()
		within(t, "time to the first token", h.program.metrics.Route("chat").TTFTP50, 1.02, 0.05) // 10,000 prompt tokens
		done(t, h.atOnce(1, loadgen.Request{Model: "chat", MaxTokens: 500}), 500, 50)
		h.want(map[string]int{"ok": 2}, router.Up)
		h.learned(1, 0.01)
	},

	// A gap of seconds is no dead stream, and counts in the speed.
	"prefill-stalls-decode": func(t *testing.T) {
		h := behaved(t, "prefill-stalls-decode", 0, oneRoute)
		var first loadgen.Result
		var wg sync.WaitGroup
		wg.Go(func() {
			first = h.client.Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: 400})
		})
		sleep(2 * time.Second)
		h.client.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 30_000, MaxTokens: 100})
		wg.Wait()
		if tps, _ := first.TPS(); first.Outcome != loadgen.Done || tps > 40 || tps < 34 {
			t.Errorf("%v (%v) at %.1f tokens/s; want it whole at about 36: 400 tokens in 8 s and a stall of 3 s", first.Outcome, first.Err, tps)
		}
		h.want(map[string]int{"ok": 2}, router.Up)
		sleep(6 * time.Second)
		if tokens := h.curve("a").Tokens(); math.Abs(tokens-498) > 1 {
			t.Errorf("%.0f tokens feed the curve, want 498: all but the first ones, those around the stall too", tokens)
		}
	},

	// The role is no token: the time to the first one and the speed are those of
	// the tokens.
	"role-and-first-token-in-one-write": func(t *testing.T) {
		h := behaved(t, "role-and-first-token-in-one-write", 0, oneRoute)
		for range 4 {
			got := h.atOnce(1, loadgen.Request{Model: "chat", PromptTokens: 1000, MaxTokens: 500})
			done(t, got, 500, 50)
			within(t, "time to the first token", got.list[0].TTFT.Seconds(), 0.12, 0.05) // 1000 prompt tokens
		}
		within(t, "its median", h.program.metrics.Route("chat").TTFTP50, 0.12, 0.05)
		within(t, "median of the speeds", h.program.metrics.Route("chat").TPSP50, 50, 0.03)
		h.want(map[string]int{"ok": 4}, router.Up)
		h.learned(1, 0.01)
	},

	// Nothing is refused, and those who wait in the engine are not taken for
	// streams that it decodes.
	"unbounded-queue": func(t *testing.T) {
		h := behaved(t, "unbounded-queue", 8, oneRoute)
		done(t, h.atOnce(64, loadgen.Request{Model: "chat", MaxTokens: 200}), 200, 50)
		h.want(map[string]int{"ok": 64}, router.Up)
		h.learned(1, 0.02)
		if lo, hi := h.curve("a").Support(); hi > 8 {
			t.Errorf("the curve rests on n = %d to %d, want at most the 8 slots", lo, hi)
		}
	},

	// The answer goes on as it is; what was asked for is what has the curve.
	"unknown-model-200": func(t *testing.T) {
		h := behaved(t, "unknown-model-200", 0, "routes:\n  - { model: chat, targets: [ { backend: a, model: no/such-model } ] }\n")
		_, _, body, err := h.post(`{"model":"chat","stream":true,"max_tokens":200,` + words + `}`)
		if err != nil || !strings.Contains(body, `"model":"m"`) || strings.Contains(body, "no/such-model") {
			t.Errorf("got %.200q (%v), want an answer by m", body, err)
		}
		h.want(map[string]int{"ok": 1}, router.Up)
		sleep(3 * time.Second)
		if got := h.program.book.Curve(profiles.Target{Backend: "a", Model: "no/such-model"}).TPS(1); math.Abs(got/50-1) > 0.02 {
			t.Errorf("learned %.1f tokens/s, want 50", got)
		}
	},
}

// curveOf learns a measured curve, and then lets as many users at once on as
// keep floor, at most most.
func curveOf(t *testing.T, behaviour string, floor float64, most int) {
	if racetest.On {
		t.Skip("200 streams that teach a curve: make numbers runs it")
	}
	h := behaved(t, behaviour, 0, "routes:\n  - { model: chat, targets: [ { backend: a, model: m } ] }\n"+
		"  - { model: strict, targets: [ { backend: a, model: m } ], slo: { min_tps: "+strconv.Itoa(int(floor))+" }, on_infeasible: [ shed ] }\n")
	for users := 1; users <= 8; users++ {
		for range 6 {
			h.atOnce(users, loadgen.Request{Model: "chat", MaxTokens: 400})
		}
	}
	h.learned(6, 0.08)
	got := h.atOnce(12, loadgen.Request{Model: "strict", MaxTokens: 400})
	admitted := got.count(func(r loadgen.Result) bool { return r.Outcome == loadgen.Done })
	kept := got.count(func(r loadgen.Result) bool { return r.Outcome == loadgen.Done && r.Kept(floor, time.Second) })
	t.Logf("%d of 12 admitted at %.0f tokens/s, %d kept it", admitted, floor, kept)
	if admitted < 1 || admitted > most || kept != admitted {
		t.Errorf("%d admitted and %d kept the floor of %.0f tokens/s, want 1 to %d, all of them", admitted, kept, floor, most)
	}
	h.idle()
}

// Every behaviour of real engines that breaks proxies, through the gateway.
func TestEngineBehaviours(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(engineBehaviours)) {
		t.Run(name, func(t *testing.T) {
			if !slices.ContainsFunc(sim.Behaviours(), func(b sim.Named) bool { return b.Name == name }) {
				t.Fatal("sim does not know it")
			}
			synctest.Test(t, engineBehaviours[name])
		})
	}
}
