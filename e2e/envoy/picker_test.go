package envoy

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// The main job: requests through Envoy go where the picker says, under the model's
// own name, and what streams by is counted as by the gateway.
func TestThroughEnvoy(t *testing.T) {
	for name, edits := range map[string][]string{"buffered": nil, "full duplex": fullDuplex} {
		t.Run(name, func(t *testing.T) { throughEnvoy(t, edits) })
	}
}

// fullDuplex are the edits that have Envoy stream the body of a request too.
var fullDuplex = []string{"request_body_mode: BUFFERED", "request_body_mode: FULL_DUPLEX_STREAMED\n                        request_trailer_mode: SEND"}

func throughEnvoy(t *testing.T, edits []string) {
	w := newWorld(t, "5", "", edits...)
	var wg sync.WaitGroup
	const users, each, tokens = 6, 3, 60
	for range users {
		wg.Go(func() {
			for range each {
				r := w.client.Stream(t.Context(), loadgen.Request{Model: "chat", PromptTokens: 50, MaxTokens: tokens})
				if r.Outcome != loadgen.Done || r.Tokens != tokens || r.Backend == "" || r.Counted != 0 {
					t.Errorf("%v with %d tokens from %q, usage %d (%v), want done with %d, and no usage that nobody asked for", r.Outcome, r.Tokens, r.Backend, r.Counted, r.Err, tokens)
				}
			}
		})
	}
	wg.Wait()
	if r := w.client.Stream(t.Context(), loadgen.Request{Model: "chat", PromptTokens: 50, MaxTokens: 20, Usage: true}); r.Counted != 20 {
		t.Errorf("usage of %d tokens, want the 20 that were asked for", r.Counted)
	}
	resp, text := w.post(t, "/v1/chat/completions", `{"model":"chat","max_tokens":7,"messages":[{"role":"user","content":"hello"}]}`)
	if resp.StatusCode != 200 || !strings.Contains(text, `"completion_tokens":7`) || !strings.Contains(text, `"model":"llama-3.1-70b"`) {
		t.Errorf("%d %s, want a document of 7 tokens", resp.StatusCode, text)
	}
	large := strings.Repeat("many words of a long prompt ", 15_000)
	if resp, text = w.post(t, "/v1/chat/completions", `{"model":"chat","max_tokens":3,"messages":[{"role":"user","content":"`+large+`"}]}`); resp.StatusCode != 200 || !strings.Contains(text, `"prompt_tokens":105000`) {
		t.Errorf("%d %.300s, want a prompt of 105000 tokens", resp.StatusCode, text)
	}
	w.idle(t)
	page := w.metrics(t)
	if got, want := proctest.Sum(page, `pacer_requests_total{`), float64(users*each+3); got != want {
		t.Errorf("%v requests counted, want %v", got, want)
	}
	if got, want := outputTokens(page), float64(users*each*tokens+20+7+3); got != want {
		t.Errorf("%v tokens counted by usage, want %v", got, want)
	}
}

// What the gateway refuses is refused by Envoy in the same words.
func TestRefusals(t *testing.T) {
	w := newWorld(t, "5", `
keys: [ { name: k, key: sk-test-1234567890, routes: [chat], limits: { requests_per_minute: 8 } } ]
`)
	const key, body = "sk-test-1234567890", `{"model":"chat","max_tokens":2,"messages":[{"role":"user","content":"hello"}]}`
	for _, c := range []struct {
		name, path, body string
		headers          []string
		status           int
		code             string
	}{
		{"no key", "/v1/chat/completions", body, nil, 401, "invalid_api_key"},
		{"another model", "/v1/chat/completions", strings.Replace(body, "chat", "none", 1), []string{"Authorization", "Bearer " + key}, 404, "model_not_found"},
		{"no JSON", "/v1/chat/completions", `{"model":`, []string{"Authorization", "Bearer " + key}, 400, "invalid"},
		{"no such path", "/v1/none", body, []string{"Authorization", "Bearer " + key}, 404, "unknown_url"},
		{"a wish that is none", "/v1/chat/completions", body, []string{"Authorization", "Bearer " + key, "X-Slo-Tpot-Ms", "fast"}, 400, "invalid_header"},
		{"a floor out of reach", "/v1/chat/completions", body, []string{"Authorization", "Bearer " + key, "X-Slo-Tpot-Ms", "0.001"}, 403, "permission_denied"},
		{"too large", "/v1/chat/completions", `{"model":"chat","messages":[{"role":"user","content":"` + strings.Repeat("x", 33<<20) + `"}]}`, []string{"Authorization", "Bearer " + key}, 413, "request_too_large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, text := w.post(t, c.path, c.body, c.headers...)
			if resp.StatusCode != c.status || !strings.Contains(text, c.code) || resp.Header.Get("X-Request-Id") == "" {
				t.Errorf("%d %.300s, want %d %s with an id", resp.StatusCode, text, c.status, c.code)
			}
		})
	}
	for range 10 {
		resp, text := w.post(t, "/v1/chat/completions", body, "Authorization", "Bearer "+key)
		if resp.StatusCode == 429 {
			if resp.Header.Get("Retry-After") == "" || !strings.Contains(text, "rate_limit_exceeded") {
				t.Errorf("429 without Retry-After, or with other words: %v %s", resp.Header, text)
			}
			return
		}
	}
	t.Error("the limit of the key was never reached")
}

// An engine that is not there any more: who comes to it goes to the next one that
// the picker named, and counts there.
func TestAnEngineThatIsGone(t *testing.T) {
	w := newWorld(t, "5", "")
	var wg sync.WaitGroup
	var cut atomic.Int64
	began := make(chan struct{}, 100)
	for range 12 {
		wg.Go(func() {
			began <- struct{}{}
			r := w.client.Stream(t.Context(), loadgen.Request{Model: "chat", PromptTokens: 20, MaxTokens: 400})
			switch {
			case r.Outcome == loadgen.Done && r.Tokens == 400:
			case r.Outcome == loadgen.Failed && r.Err != nil:
				cut.Add(1) // it streamed from the engine that died, and its client was told
			default:
				t.Errorf("%v with %d tokens (%v)", r.Outcome, r.Tokens, r.Err)
			}
		})
	}
	for range 12 {
		<-began
	}
	proctest.Until(t, "streams on every engine", func() bool {
		for _, target := range targets(t, w.picker) {
			if target.Model == "llama-3.1-70b" && target.InFlight.Decoding == 0 {
				return false
			}
		}
		return true
	})
	kill(w.engines[0])
	const users, each = 4, 10
	for range users {
		wg.Go(func() {
			for range each {
				r := w.client.Stream(t.Context(), loadgen.Request{Model: "chat", PromptTokens: 20, MaxTokens: 10})
				if r.Outcome != loadgen.Done || r.Tokens != 10 {
					t.Errorf("behind the kill: %v with %d tokens, status %d (%v)", r.Outcome, r.Tokens, r.Status, r.Err)
				}
			}
		})
	}
	wg.Wait()
	if n := cut.Load(); n < 1 || n > 8 {
		t.Errorf("%d streams broke, want those of one engine", n)
	}
	w.idle(t)
	t.Logf("%d streams of the dead engine broke off; of %d requests behind it none failed", cut.Load(), users*each)
}

// A picker that dies while streams run: no client takes what it got for a whole
// answer.
func TestAPickerThatDies(t *testing.T) {
	w := newWorld(t, "1", "")
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			r := w.client.Stream(t.Context(), loadgen.Request{Model: "chat", PromptTokens: 20, MaxTokens: 2000})
			if r.Outcome == loadgen.Done && r.Tokens != 2000 || r.Outcome == loadgen.Failed && r.Status == 200 && strings.Contains(r.Err.Error(), "without [DONE]") {
				t.Errorf("%v with %d of 2000 tokens (%v), want a connection that breaks off", r.Outcome, r.Tokens, r.Err)
			}
		})
	}
	proctest.Until(t, "the streams run", func() bool {
		n := 0
		for _, target := range targets(t, w.picker) {
			n += target.InFlight.Decoding
		}
		return n >= 12
	})
	kill(w.picker)
	wg.Wait()
}

// Clients that hang up in every phase: nothing is left of them.
func TestClientsThatHangUp(t *testing.T) {
	w := newWorld(t, "2", "")
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for range 8 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(400))*time.Millisecond)
				r := w.client.Stream(ctx, loadgen.Request{Model: "chat", PromptTokens: 1 + random.IntN(2000), MaxTokens: 1 + random.IntN(300)})
				cancel()
				if r.Outcome == loadgen.Failed {
					t.Errorf("status %d, %v", r.Status, r.Err)
				}
			}
		})
	}
	wg.Wait()
	w.idle(t)
	for _, e := range w.engines {
		proctest.Until(t, "the engine is idle", func() bool {
			truth := string(proctest.Get(t, e.Ready["url"]+"/sim/truth"))
			return strings.Contains(truth, `"running":0`) && strings.Contains(truth, `"waiting":0`)
		})
	}
	r := w.client.Stream(t.Context(), loadgen.Request{Model: "chat", PromptTokens: 20, MaxTokens: 10})
	if r.Outcome != loadgen.Done {
		t.Errorf("afterwards %v (%v), want done", r.Outcome, r.Err)
	}
}

// Without the picker Envoy goes by its failure_mode_allow.
func TestWithoutThePicker(t *testing.T) {
	for _, c := range []struct {
		allow  string
		status int
	}{{"true", 200}, {"false", 500}} {
		t.Run("failure_mode_allow: "+c.allow, func(t *testing.T) {
			w := newWorld(t, "5", "", "failure_mode_allow: true", "failure_mode_allow: "+c.allow)
			kill(w.picker)
			resp, text := w.post(t, "/v1/chat/completions", `{"model":"llama-3.1-70b","max_tokens":2,"messages":[{"role":"user","content":"hello"}]}`)
			if got := resp.StatusCode; got != c.status && !(c.status == 500 && got >= 500) {
				t.Errorf("%d %s, want %d", got, text, c.status)
			}
		})
	}
}

// outputTokens are those that engines counted themselves.
func outputTokens(page string) (sum float64) {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "pacer_tokens_total{") && strings.Contains(line, `direction="output"`) && strings.Contains(line, `source="usage"`) {
			sum += proctest.Sum(line, "pacer_tokens_total{")
		}
	}
	return sum
}
