package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

const (
	coherePath = "/v2/chat"
	cohereBody = `{"model":"chat","stream":true,"messages":[{"role":"user","content":"hi"}],"max_tokens":50}`

	// cohereHead and cohereWord begin a stream of Cohere's, and cohereTail ends it.
	cohereHead = "event: message-start\ndata: {\"id\":\"c-1\",\"type\":\"message-start\",\"delta\":{\"message\":{\"role\":\"assistant\",\"content\":[],\"tool_plan\":\"\",\"tool_calls\":[],\"citations\":[]}}}\n\n" +
		"event: content-start\ndata: {\"type\":\"content-start\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"type\":\"text\",\"text\":\"\"}}}}\n\n"
	cohereWord = "event: content-delta\ndata: {\"type\":\"content-delta\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"text\":\"word \"}}}}\n\n"
	cohereTail = "event: content-end\ndata: {\"type\":\"content-end\",\"index\":0}\n\n" +
		"event: message-end\ndata: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"COMPLETE\",\"usage\":{\"billed_units\":{\"input_tokens\":6.0,\"output_tokens\":12.0},\"tokens\":{\"input_tokens\":7.0,\"output_tokens\":12.0},\"cached_tokens\":3}}}\n\n"

	cohereOne = `{"id":"c-2","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text","text":"word"}],"citations":[{"start":0}]},"usage":{"tokens":{"input_tokens":7,"output_tokens":12}},"odd":1.50}`
)

// cohereFlow is a stream of Cohere's of 12 words.
var cohereFlow = cohereHead + strings.Repeat(cohereWord, 12) + cohereTail

// atCohere is a configuration whose backend a has Cohere's chat.
func atCohere(names ...string) *config.Config {
	c := foreign(map[string]string{"a": "cohere"}, names...)
	c.Backends[0].URL = "http://a/v2"
	return c
}

// cohereError is an error as Cohere's clients read it.
func cohereError(t *testing.T, r reply) (message, code, param string) {
	t.Helper()
	var e struct {
		Message string
		Error   struct{ Code, Param string }
	}
	if err := json.Unmarshal([]byte(r.body), &e); err != nil || e.Message == "" {
		t.Errorf("got %d %s (%v), want an error of Cohere's shape", r.status, r.body, err)
	}
	return e.Message, e.Error.Code, e.Error.Param
}

// Cohere's clients are served by an engine: as a stream and as a document.
func TestCoheresClientsOnAnEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: talk(12, 10*time.Millisecond)}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		h.believe("a", profiles.PriorPoint{N: 1, TPS: 100})
		r := h.post(coherePath, cohereBody)
		if r.status != 200 || r.err != nil || strings.Count(r.body, `{"content":{"text":"word "}}`) != 12 {
			t.Fatalf("got %d %s (%v)", r.status, r.body, r.err)
		}
		has(t, r.body,
			"event: message-start\n", "event: content-start\n", "event: content-end\n", `"finish_reason":"MAX_TOKENS"`, `"tokens":{"input_tokens":7,"output_tokens":12}`,
		)
		if line := h.last(); line.Outcome != outcomeOK || line.Tokens != 12 || line.Source != "usage" || line.TTFTms == 0 {
			t.Errorf("log line %+v", line)
		}
		want := `"model":"big","stream":true,"messages":[{"role":"user","content":"hi"}],"max_tokens":50}`
		if !strings.HasSuffix(engine.bodies[0], want) || engine.paths[0] != chat {
			t.Errorf("sent %s to %s, want %s", engine.bodies, engine.paths, want)
		}
		engine.answer = states(200, `{"id":"c1","choices":[{"message":{"role":"assistant","content":"word"},"finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}`)
		r = h.post(coherePath, `{"model":"chat","messages":[{"role":"user","content":"hi"}]}`)
		want = `{"id":"c1","finish_reason":"MAX_TOKENS","message":{"role":"assistant","content":[{"type":"text","text":"word"}]},"usage":{"billed_units":{"input_tokens":3,"output_tokens":1},"tokens":{"input_tokens":3,"output_tokens":1},"cached_tokens":0}}`
		if r.status != 200 || r.body != want {
			t.Errorf("got %d %s, want %s", r.status, r.body, want)
		}
		h.idle()

		// Without its last event it is no answer.
		engine.answer = flows(roleOnly+delta, 0)
		r = h.post(coherePath, cohereBody)
		if !isCut(r.err) || !strings.Contains(r.body, `"delta":{"error":"The backend broke off the answer.","finish_reason":"ERROR"}`) || strings.Contains(r.body, "COMPLETE") {
			t.Errorf("got %q (%v), want an error and a cut", r.body, r.err)
		}
		if line := h.last(); line.Outcome != outcomeCut {
			t.Errorf("log line %+v, want cut", line)
		}
	})
}

// Where the backend speaks Cohere's dialect, nothing but the name of the model is
// changed on the way up and nothing on the way down, and all is measured.
func TestCoheresDialectPassesThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cohere := &script{answer: slowly(cohereFlow)}
		h := open(t, atCohere("a"), map[string]http.Handler{"a": cohere})
		const body = `{ "messages" : [{"content":"h\u0069","role":"user"}],"model":"chat", "documents":[{"data":{"a":1.50}}],"odd":1e3,"stream":%s}`
		for stream, answer := range map[string]string{"true": cohereFlow, "false": cohereOne} {
			cohere.answer = slowly(answer)
			if stream == "false" {
				cohere.answer = func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					say(w, answer[:50])
					say(w, answer[50:])
				}
			}
			sent := strings.Replace(body, "%s", stream, 1)
			r := h.post(coherePath, sent)
			if r.status != 200 || r.err != nil || r.body != answer {
				t.Errorf("stream %s: got %d %q (%v), want %q", stream, r.status, r.body, r.err, answer)
			}
			i := len(cohere.bodies) - 1
			if want := strings.Replace(sent, `"model":"chat"`, `"model":"big"`, 1); cohere.bodies[i] != want || cohere.paths[i] != coherePath {
				t.Errorf("stream %s: sent %s to %s, want %s", stream, cohere.bodies[i], cohere.paths[i], want)
			}
			if line := h.last(); line.Outcome != outcomeOK || line.Tokens != 12 || line.Source != "usage" {
				t.Errorf("stream %s: log line %+v", stream, line)
			}
		}
		h.idle()

		cohere.answer = slowly(cohereHead + cohereWord)
		r := h.post(coherePath, cohereBody)
		if !isCut(r.err) || !strings.HasPrefix(r.body, cohereHead+cohereWord) || !strings.Contains(r.body, `"finish_reason":"ERROR"`) {
			t.Errorf("got %q (%v), want an error and a cut", r.body, r.err)
		}
		cohere.answer = flows(cohereHead+cohereWord, time.Hour)
		resp := must.Get(h.client.Do(h.request("POST", coherePath, cohereBody)))(t)
		must.Get(io.ReadFull(resp.Body, make([]byte, 20)))(t)
		_ = resp.Body.Close()
		h.idle()
		if cohere.left() != 1 {
			t.Error("the backend's request was not cancelled")
		}
	})
}

// Its own errors, and ours, come in Cohere's shape.
func TestErrorsForCoheresClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := atCohere("a", "b")
		conf.Keys = []config.Key{key("mobile", "sk-right")}
		conf.Routes = append(conf.Routes, conf.Routes[0])
		conf.Routes[0].Targets, conf.Routes[1].Targets = conf.Routes[0].Targets[:1], conf.Routes[0].Targets[1:]
		conf.Routes[1].Models = []string{"engine"}
		cohere := &script{answer: states(422, `{"id":"e-1","message":"no such tool"}`)}
		engine := &script{answer: talk(1, time.Millisecond)}
		h := open(t, conf, map[string]http.Handler{"a": cohere, "b": engine})
		const right = "Bearer sk-right"
		r := h.post(coherePath, cohereBody, "Authorization", right)
		if r.status != 422 || r.body != `{"id":"e-1","message":"no such tool"}` {
			t.Errorf("an error of its own came as %d %s", r.status, r.body)
		}
		for name, c := range map[string]struct {
			r           reply
			status      int
			code, param string
		}{
			"no key":      {h.post(coherePath, cohereBody), 401, "invalid_api_key", ""},
			"model":       {h.post(coherePath, strings.Replace(cohereBody, `"chat"`, `"none"`, 1), "Authorization", right), 404, "model_not_found", "model"},
			"no JSON":     {h.post(coherePath, "{", "Authorization", right), 400, "", ""},
			"not carried": {h.post(coherePath, `{"model":"engine","messages":[{"role":"user","content":"hi"}],"documents":[{"data":{"a":"b"}}]}`, "Authorization", right), 400, "unsupported_parameter", "documents"},
			"method":      {h.do(h.request("GET", coherePath, "", "Authorization", right)), 405, "method_not_allowed", ""},
		} {
			if _, code, param := cohereError(t, c.r); c.r.status != c.status || code != c.code || param != c.param {
				t.Errorf("%s: got %d %s, want %d %s %s", name, c.r.status, c.r.body, c.status, c.code, c.param)
			}
		}
		if engine.calls() != 0 || cohere.calls() != 1 {
			t.Errorf("%d and %d requests were sent", cohere.calls(), engine.calls())
		}
		cohere.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }
		r = h.post(coherePath, cohereBody, "Authorization", right)
		if message, _, _ := cohereError(t, r); r.status < 500 || !strings.Contains(message, "503") {
			t.Errorf("got %d %s", r.status, r.body)
		}
	})
}

// A floor that cannot be kept is 429 with the time to come back.
func TestAFloorForCoheresClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := atCohere("a")
		conf.Routes[0].SLO.MinTPS = 30
		conf.Routes[0].OnInfeasible = []config.Step{{Shed: true}}
		flow := cohereHead + strings.Repeat(cohereWord, 200) + cohereTail
		h := open(t, conf, map[string]http.Handler{"a": &script{answer: slowly(flow)}})
		h.believe("a", profiles.PriorPoint{N: 1, TPS: 40}, profiles.PriorPoint{N: 2, TPS: 20})
		resp := must.Get(h.client.Do(h.request("POST", coherePath, cohereBody)))(t)
		r := h.post(coherePath, cohereBody)
		if _, code, _ := cohereError(t, r); r.status != 429 || code != router.ShedFloor.String() || r.header.Get("Retry-After") == "" {
			t.Errorf("got %d %s", r.status, r.body)
		}
		if text, err := io.ReadAll(resp.Body); err != nil || string(text) != flow {
			t.Errorf("the one that was placed read %d bytes of %d (%v)", len(text), len(flow), err)
		}
		_ = resp.Body.Close()
	})
}

// Before its first byte an answer moves from Cohere to an engine, and back, whoever
// asks.
func TestCoheresChatFailsOver(t *testing.T) {
	for _, down := range []string{"a", "b"} {
		for path, word := range map[string]string{coherePath: `{"content":{"text":"word "}}`, chat: `"content":"word "`} {
			synctest.Test(t, func(t *testing.T) {
				engines := map[string]http.Handler{"a": &script{answer: slowly(cohereFlow)}, "b": &script{answer: talk(12, time.Millisecond)}}
				engines[down].(*script).answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }
				conf := atCohere("a", "b")
				if down == "b" {
					slices.Reverse(conf.Routes[0].Targets)
				}
				h := open(t, conf, engines)
				r := h.post(path, cohereBody)
				if r.status != 200 || r.err != nil || strings.Count(r.body, word) != 12 {
					t.Errorf("%s without %s: got %d %s (%v)", path, down, r.status, r.body, r.err)
				}
				if line := h.last(); line.Backend == down || line.Outcome != outcomeOK || line.Attempts != 2 || line.Tokens != 12 {
					t.Errorf("log line %+v", line)
				}
			})
		}
	}
}
