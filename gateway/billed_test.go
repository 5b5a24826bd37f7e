package gateway

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
)

// Reasoning that the backend counts and does not show is on its bill: it is in
// the metrics, the cost and the limits, and in no speed.
func TestHiddenReasoningIsPaidFor(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		tps  bool
	}{
		"before an answer": {strings.Repeat(delta, 10), true},
		"and nothing else": {"", false},
	} {
		bubble(t, name, func(t *testing.T) {
			conf := settings("a")
			conf.Backends[0].Price = config.Price{Input: 0, Output: 1000}
			k := key("mobile", "sk-right")
			k.Limits = config.KeyLimits{TokensPerMinute: 6000}
			conf.Keys = []config.Key{k}
			h := open(t, conf, map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
				eventStream(w)
				say(w, roleOnly)
				for text := range strings.SplitAfterSeq(c.text, "\n\n") {
					pause(r, 20*time.Millisecond)
					say(w, text)
				}
				say(w, lastDelta+`data: {"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":1000,"completion_tokens_details":{"reasoning_tokens":990}}}`+"\n\n"+doneEvent)
			}}})
			if r := h.post(chat, streamBody, "Authorization", "Bearer sk-right"); r.err != nil {
				t.Fatal(r.err)
			}
			line := h.last()
			if line.Outcome != outcomeOK || line.Tokens != 1000 || line.Source != "usage" || (line.TPS > 0) != c.tps || line.TPS > 60 {
				t.Errorf("log line %+v, want 1000 tokens by usage, and a speed of the ten that were seen: %v", line, c.tps)
			}
			has(t, h.scrape(),
				`pacer_tokens_total{backend="a",direction="output",route="chat",source="usage"} 1000`,
				`pacer_cost_usd_total{backend="a",route="chat"} 1`+"\n",
			)
			if left := h.gateway.setup.Load().tenants[0].limits.State(time.Now()).Tokens.Remaining; left > 5050 {
				t.Errorf("%d tokens are left of 6000 after 1000 were paid for", left)
			}
		})
	}
}

// llama.cpp counts each of several choices by itself: all of them are paid for.
func TestEveryChoiceIsPaidFor(t *testing.T) {
	stream := must.Get(os.ReadFile("../providers/testdata/llamacpp-three.sse"))(t)
	for name, c := range map[string]struct {
		body, kind, answer string
		tokens             float64
	}{
		"stream": {`{"model":"chat","stream":true,"n":3}`, "text/event-stream", string(stream), 10},
		"document": {
			`{"model":"chat","n":2}`, "application/json",
			`{"choices":[{"index":0,"message":{"content":"eight tokens, four bytes each...."}},{"index":1,"message":{"content":"and four of them"}}],"usage":{"prompt_tokens":9,"completion_tokens":8},"timings":{"predicted_n":8}}`, 12,
		},
	} {
		bubble(t, name, func(t *testing.T) {
			conf := settings("a")
			conf.Backends[0].Kind = "llamacpp"
			h := open(t, conf, map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				say(w, c.answer)
			}}})
			if r := h.post(chat, c.body); r.status != 200 || r.err != nil || strings.Contains(r.body, `"choices":[],`) {
				t.Fatalf("got %d %s (%v), want the answer without the usage events", r.status, r.body, r.err)
			}
			if line := h.last(); line.Tokens != c.tokens || line.Source != "usage" {
				t.Errorf("log line %+v, want %v tokens by usage", line, c.tokens)
			}
			has(t, h.scrape(), fmt.Sprintf(`pacer_tokens_total{backend="a",direction="output",route="chat",source="usage"} %v`+"\n", c.tokens))
		})
	}
}

// A client of a vLLM, which has its fingerprint on the usage event, gets it
// although it gets no usage.
func TestTheFingerprintReachesTheClient(t *testing.T) {
	stream := must.Get(os.ReadFile("../providers/testdata/vllm-fingerprint.sse"))(t)
	for _, kind := range []string{"openai", "vllm"} {
		synctest.Test(t, func(t *testing.T) {
			conf := settings("a")
			conf.Backends[0].Kind = kind
			h := open(t, conf, map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
				eventStream(w)
				for event := range strings.SplitAfterSeq(string(stream), "\n\n") {
					say(w, event)
					pause(r, 20*time.Millisecond)
				}
			}}})
			r := h.post(chat, streamBody)
			if strings.Count(r.body, `"system_fingerprint":"vllm-0.32.0-tp1-5b3e9a11"}`) != 1 || strings.Contains(r.body, `"usage"`) || strings.Contains(r.body, `"choices":[]`) || r.err != nil {
				t.Errorf("kind %s: got %s (%v), want the fingerprint, and no usage", kind, r.body, r.err)
			}
		})
	}
}
