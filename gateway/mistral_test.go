package gateway

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"
)

// magistral is a stream of Mistral's: a thought in parts, a text, and two calls, each in
// one piece.
const magistral = `data: {"id":"m1","object":"chat.completion.chunk","created":1,"model":"magistral","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"id":"m1","object":"chat.completion.chunk","created":1,"model":"magistral","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]},"finish_reason":null}]}

data: {"id":"m1","object":"chat.completion.chunk","created":1,"model":"magistral","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}

data: {"id":"m1","object":"chat.completion.chunk","created":1,"model":"magistral","choices":[{"index":0,"delta":{"tool_calls":[{"id":"abcdefgh1","function":{"name":"f","arguments":"{}"}},{"id":"abcdefgh2","function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":7,"total_tokens":19,"completion_tokens":12}}

data: [DONE]

`

// Mistral's API refuses what OpenAI's clients write, and writes what they do not read:
// both are translated. Its own clients' bytes pass through.
func TestClientsOfMistral(t *testing.T) {
	const body = `{"model":"chat","stream":true,"messages":[{"role":"developer","content":"short"},{"role":"user","content":"hi"}],"seed":7,"user":"u","max_completion_tokens":50,"stream_options":{"include_usage":true}}`
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: slowly(magistral)}
		h := open(t, foreign(map[string]string{"a": "mistral"}, "a"), map[string]http.Handler{"a": engine})
		r := h.post(chat, body, "User-Agent", "OpenAI/Python 3.54.0")
		want := `{"model":"big","stream":true,"messages":[{"role":"system","content":"short"},{"role":"user","content":"hi"}],"max_tokens":50,"random_seed":7}`
		if r.status != 200 || r.err != nil || engine.bodies[0] != want {
			t.Errorf("got %d (%v), sent %s, want %s", r.status, r.err, engine.bodies[0], want)
		}
		has(t, r.body, `"reasoning_content":"hm"`, `"content":"word "`, `"index":1,"id":"abcdefgh2"`, `"finish_reason":"tool_calls"`, `"completion_tokens":12`, doneEvent)
		if line := h.last(); line.Outcome != outcomeOK || line.Tokens != 12 || line.Source != "usage" {
			t.Errorf("log line %+v", line)
		}
		own := `{"model":"chat","stream":true,"messages":[{"role":"user","content":"hi"}],"random_seed":7,"odd": 1.50}`
		for _, agent := range []string{"mistral-client-python/3.7.0", "speakeasy-sdk/typescript 2.7.0 2.8 1.0 @mistralai/mistralai", "ai/6.0 ai-sdk/mistral/4.0.87"} {
			r := h.post(chat, own, "User-Agent", agent)
			if sent := engine.bodies[len(engine.bodies)-1]; r.body != magistral || sent != strings.Replace(own, `"chat"`, `"big"`, 1) {
				t.Errorf("%s: sent %s, got %s", agent, sent, r.body)
			}
		}
	})
}

// A chat of OpenAI's moves on from an engine to Mistral, as Mistral has it.
func TestAChatMovesOnToMistral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := &script{answer: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) }}
		mistral := &script{answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			<-time.After(time.Millisecond)
			say(w, `{"id":"m1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","tool_calls":null,"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"so"}]},"finish_reason":"model_length"}],"usage":{"prompt_tokens":7,"total_tokens":9,"completion_tokens":2}}`)
		}}
		h := open(t, foreign(map[string]string{"b": "mistral"}, "a", "b"), map[string]http.Handler{"a": dead, "b": mistral})
		r := h.post(chat, `{"model":"chat","messages":[{"role":"user","content":"hi"}],"seed":7}`)
		message := gjson.Get(r.body, "choices.0.message")
		if r.status != 200 || message.Get("content").Str != "so" || message.Get("reasoning_content").Str != "hm" || gjson.Get(r.body, "choices.0.finish_reason").Str != "length" {
			t.Errorf("got %d %s", r.status, r.body)
		}
		if line := h.last(); line.Attempts != 2 || line.Backend != "b" || !strings.Contains(mistral.bodies[0], `"random_seed":7`) || !strings.Contains(dead.bodies[0], `"seed":7`) {
			t.Errorf("log line %+v, sent %s and %s", line, dead.bodies[0], mistral.bodies[0])
		}
	})
}
