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
	generatePath = "/v1beta/models/chat:generateContent"
	flowPath     = "/v1beta/models/chat:streamGenerateContent"
	googleBody   = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":50}}`

	// geminiFlow is a stream of Google's.
	geminiFlow = `data: {"candidates":[{"content":{"parts":[{"text":"word "}],"role":"model"}}],"groundingMetadata":{"x":1}}` + "\r\n\r\n" +
		`data: {"candidates":[{"content":{"parts":[{"text":"word"}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":12}}` + "\r\n\r\n"
	geminiOne = `{"candidates":[{"content":{"parts":[{"text":"word"}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":12}}`
)

// atGoogle is a configuration whose backend a has Google's API.
func atGoogle(names ...string) *config.Config {
	c := foreign(map[string]string{"a": "gemini"}, names...)
	c.Backends[0].URL = "http://a/v1beta"
	return c
}

// googleStatus is what an answer in the shape of Google's errors says.
func googleStatus(t *testing.T, r reply) (status string, e googleError) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), &e); err != nil || e.Error.Code != r.status || e.Error.Message == "" {
		t.Errorf("got %d %s (%v), want an error of Google's shape", r.status, r.body, err)
	}
	return e.Error.Status, e
}

// Google's clients are served by an engine: as a document, as events and as an array.
func TestGooglesClientsOnAnEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: talk(12, 10*time.Millisecond)}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		h.believe("a", profiles.PriorPoint{N: 1, TPS: 100})
		for _, path := range []string{flowPath + "?alt=sse", flowPath, "/v1/models/chat:streamGenerateContent?%24alt=sse", "/v1/projects/p/locations/l/publishers/google/models/chat:streamGenerateContent?alt=sse"} {
			r := h.post(path, googleBody)
			isArray := path == flowPath
			if r.status != 200 || r.err != nil || strings.Count(r.body, `{"text":"word "}`) != 12 || !strings.Contains(r.body, `"candidatesTokenCount":12,`) || !strings.Contains(r.body, `"modelVersion":"chat"`) {
				t.Fatalf("%s: got %d %s (%v)", path, r.status, r.body, r.err)
			}
			if kind := r.header.Get("Content-Type"); isArray != strings.HasPrefix(kind, "application/json") || isArray != json.Valid([]byte(r.body)) {
				t.Errorf("%s: an answer of type %s: %s", path, kind, r.body)
			}
			if line := h.last(); line.Outcome != outcomeOK || line.Tokens != 12 || line.Source != "usage" || line.TTFTms == 0 {
				t.Errorf("log line %+v", line)
			}
			body := engine.bodies[len(engine.bodies)-1]
			want := `"model":"big","stream":true,"messages":[{"role":"user","content":"hi"}],"max_tokens":50}`
			if !strings.HasSuffix(body, want) || engine.paths[len(engine.paths)-1] != chat {
				t.Errorf("sent %s to %s, want %s", body, engine.paths, want)
			}
		}
		engine.answer = states(200, `{"id":"c1","choices":[{"message":{"role":"assistant","content":"word"},"finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}`)
		r := h.post(generatePath, googleBody)
		want := `{"candidates":[{"content":{"parts":[{"text":"word"}],"role":"model"},"finishReason":"MAX_TOKENS","index":0}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1,"totalTokenCount":4},"modelVersion":"chat","responseId":"c1"}`
		if r.status != 200 || r.body != want {
			t.Errorf("got %d %s, want %s", r.status, r.body, want)
		}
		h.idle()

		// Without its last event it is no answer.
		for _, path := range []string{flowPath, flowPath + "?alt=sse"} {
			engine.answer = flows(roleOnly+delta, 0)
			r = h.post(path, googleBody)
			if !isCut(r.err) || !strings.Contains(r.body, `{"error":{"code":502,"message":"The backend broke off the answer.","status":"UNAVAILABLE"}}`) || strings.Contains(r.body, "finishReason") {
				t.Errorf("got %q (%v), want an error and a cut", r.body, r.err)
			}
		}
	})
}

// Where the backend speaks the client's dialect, no byte is changed in either
// direction, and all is measured.
func TestGooglesDialectPassesThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, ":generateContent") {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, geminiOne)
				return
			}
			eventStream(w)
			for event := range strings.SplitAfterSeq(geminiFlow, "\r\n\r\n") {
				pause(r, 10*time.Millisecond)
				say(w, event)
			}
		}}
		h := open(t, atGoogle("a"), map[string]http.Handler{"a": engine})
		body := `{ "contents" : [{"parts":[{"text":"h\u0069"}]}],"tools":[{"googleSearch":{}}], "generation_config":{"candidate_count":1.0e0} }`
		for path, want := range map[string]struct{ up, down string }{
			flowPath + "?alt=sse&key=x": {"/v1beta/models/big:streamGenerateContent?alt=sse", geminiFlow},
			generatePath:                {"/v1beta/models/big:generateContent", geminiOne},
			flowPath:                    {"/v1beta/models/big:streamGenerateContent?alt=sse", "[" + strings.TrimSuffix(strings.NewReplacer("data: ", "", "\r\n\r\n", ",\r\n").Replace(geminiFlow), ",\r\n") + "\n]"},
		} {
			r := h.post(path, body)
			if r.status != 200 || r.err != nil || r.body != want.down {
				t.Errorf("%s: got %d %q (%v), want %q", path, r.status, r.body, r.err, want.down)
			}
			i := len(engine.bodies) - 1
			if engine.bodies[i] != body || engine.paths[i] != want.up {
				t.Errorf("%s: sent %s to %s, want it as it came at %s", path, engine.bodies[i], engine.paths[i], want.up)
			}
			if line := h.last(); line.Outcome != outcomeOK || line.Tokens != 12 || line.Source != "usage" {
				t.Errorf("%s: log line %+v", path, line)
			}
			if path == flowPath && !json.Valid([]byte(r.body)) {
				t.Errorf("no array: %s", r.body)
			}
		}
		h.idle()

		one := strings.Index(geminiFlow, "\r\n\r\n") + 4
		engine.answer = flows(geminiFlow[:one+20], 0) // which ends within an event
		for _, path := range []string{flowPath, flowPath + "?alt=sse"} {
			r := h.post(path, body)
			if strings.Count(r.body, `"candidates"`) != 1 {
				t.Errorf("a part of an event is passed on: %q", r.body)
			}
			if !isCut(r.err) || !strings.Contains(r.body, `"status":"UNAVAILABLE"`) || path == flowPath && !json.Valid([]byte(r.body)) {
				t.Errorf("got %q (%v), want an error and a cut", r.body, r.err)
			}
		}
		engine.answer = flows(geminiFlow[:strings.Index(geminiFlow, "\r\n\r\n")+4], time.Hour)
		resp := must.Get(h.client.Do(h.request("POST", flowPath, body)))(t)
		must.Get(io.ReadFull(resp.Body, make([]byte, 20)))(t)
		_ = resp.Body.Close()
		h.idle()
		if engine.left() != 1 {
			t.Error("the backend's request was not cancelled")
		}
	})
}

// What is refused comes in Google's shape, on all of its addresses; keys come as
// its SDKs send them.
func TestRefusalsInGooglesShape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := settings("a")
		conf.Keys = []config.Key{key("mobile", "sk-right")}
		engine := &script{answer: talk(2, time.Millisecond)}
		h := open(t, conf, map[string]http.Handler{"a": engine})
		for name, c := range map[string]struct {
			r      reply
			status int
			word   string
			reason string
		}{
			"no key":        {h.post(generatePath, googleBody), 401, "UNAUTHENTICATED", "invalid_api_key"},
			"wrong key":     {h.post(generatePath+"?key=sk-wrong", googleBody), 401, "UNAUTHENTICATED", "invalid_api_key"},
			"model":         {h.post("/v1beta/models/none:generateContent?key=sk-right", googleBody), 404, "NOT_FOUND", "model_not_found"},
			"verb":          {h.post("/v1beta/models/chat:predict?key=sk-right", googleBody), 404, "NOT_FOUND", "unknown_url"},
			"no JSON":       {h.post(generatePath+"?key=sk-right", "{"), 400, "INVALID_ARGUMENT", ""},
			"not carried":   {h.post(generatePath+"?key=sk-right", `{"contents":[{"parts":[{"text":"hi"}]}],"tools":[{"googleSearch":{}}]}`), 400, "INVALID_ARGUMENT", "unsupported_parameter"},
			"wrong method":  {h.do(h.request("GET", generatePath+"?key=sk-right", "")), 405, "UNIMPLEMENTED", "method_not_allowed"},
			"Vertex AI":     {h.post("/v1/projects/p/locations/l/publishers/google/models/chat:generateContent", googleBody), 401, "UNAUTHENTICATED", "invalid_api_key"},
			"the version 1": {h.post("/v1/models/chat:generateContent", googleBody), 401, "UNAUTHENTICATED", "invalid_api_key"},
		} {
			status, e := googleStatus(t, c.r)
			if c.r.status != c.status || status != c.word || e.Error.Details[0].Reason != c.reason {
				t.Errorf("%s: got %d %s, want %d %s", name, c.r.status, c.r.body, c.status, c.reason)
			}
			if name == "not carried" && (len(e.Error.Details) < 2 || e.Error.Details[1].Violations[0].Field != "tools[0].googleSearch") {
				t.Errorf("%s: %s", name, c.r.body)
			}
		}
		if engine.calls() != 0 {
			t.Errorf("%d requests were sent", engine.calls())
		}
		if r := h.do(h.request("DELETE", "/v1/models/chat", "")); r.status != 405 || r.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("got %d, allow %s", r.status, r.header.Get("Allow"))
		}
		if r := h.post("/v1/chat/completions?key=sk-right", streamBody); r.status != 401 {
			t.Errorf("a key in the query of another API: %d", r.status)
		}
		for _, header := range []string{"x-goog-api-key", "Authorization"} {
			value := map[string]string{"x-goog-api-key": "sk-right", "Authorization": "Bearer sk-right"}[header]
			if r := h.post(flowPath, googleBody, header, value); r.status != 200 {
				t.Errorf("with %s: %d %s", header, r.status, r.body)
			}
		}
		r := h.do(h.request("GET", "/v1beta/models?key=sk-right", ""))
		if r.status != 200 || r.body != `{"models":[{"name":"models/chat","displayName":"chat","supportedGenerationMethods":["generateContent","countTokens"]}]}`+"\n" {
			t.Errorf("the models are %d %s", r.status, r.body)
		}
		if other := h.do(h.request("GET", "/v1/models", "", "x-goog-api-key", "sk-right", "x-goog-api-client", "google-genai-sdk/3.4.0")); other.body != r.body {
			t.Errorf("the models of version 1 are %d %s", other.status, other.body)
		}
		if r := h.do(h.request("GET", "/v1beta/models/none?key=sk-right", "")); r.status != 404 {
			t.Errorf("got %d %s", r.status, r.body)
		}
		for _, head := range engine.heads {
			if head.Get("X-Goog-Api-Key") != "" || strings.Contains(head.Get("Authorization"), "sk-right") {
				t.Errorf("the client's key went up: %v", head)
			}
		}
	})
}

// A floor that cannot be kept is 429, with the time to come back in Google's words.
func TestAFloorForGooglesClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := settings("a")
		conf.Routes[0].SLO.MinTPS = 30
		conf.Routes[0].OnInfeasible = []config.Step{{Shed: true}}
		h := open(t, conf, map[string]http.Handler{"a": &script{answer: talk(200, 25*time.Millisecond)}})
		h.believe("a", profiles.PriorPoint{N: 1, TPS: 40}, profiles.PriorPoint{N: 2, TPS: 20})
		resp := must.Get(h.client.Do(h.request("POST", flowPath, googleBody)))(t)
		r := h.post(flowPath, googleBody)
		status, e := googleStatus(t, r)
		last := e.Error.Details[len(e.Error.Details)-1]
		if r.status != 429 || status != "RESOURCE_EXHAUSTED" || e.Error.Details[0].Reason != router.ShedFloor.String() || !strings.HasSuffix(last.RetryDelay, "s") || r.header.Get("Retry-After") == "" {
			t.Errorf("got %d %s", r.status, r.body)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if line := h.last(); line.Outcome != outcomeOK || line.Tokens != 200 {
			t.Errorf("log line %+v, want that of the answer", line)
		}
	})
}

// Tokens are counted by who surely can, and else here.
func TestGooglesTokensAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		google := &script{answer: states(200, `{"totalTokens":42}`)}
		engine := &script{answer: talk(1, time.Millisecond)}
		h := open(t, atGoogle("a", "b"), map[string]http.Handler{"a": google, "b": engine})
		const body = `{"generateContentRequest":{"model":"models/chat","contents":[{"parts":[{"text":"hi"}]}]}}`
		r := h.post("/v1beta/models/chat:countTokens", body)
		if r.status != 200 || r.body != `{"totalTokens":42}` || google.paths[0] != "/v1beta/models/big:countTokens" || google.bodies[0] != strings.Replace(body, "models/chat", "models/big", 1) {
			t.Errorf("got %d %s, sent %s to %s", r.status, r.body, google.bodies, google.paths)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: talk(1, time.Millisecond)}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		r := h.post("/v1beta/models/chat:countTokens", `{"contents":[{"parts":[{"text":"one two three four"}]}]}`)
		var n struct{ TotalTokens int }
		if err := json.Unmarshal([]byte(r.body), &n); r.status != 200 || err != nil || n.TotalTokens < 4 || n.TotalTokens > 30 || engine.calls() != 0 {
			t.Errorf("got %d %s, and %d requests at the engine", r.status, r.body, engine.calls())
		}
	})
}

// Before its first byte an answer moves from Google to an engine, and back.
func TestGooglesClientsFailOver(t *testing.T) {
	for _, down := range []string{"a", "b"} {
		synctest.Test(t, func(t *testing.T) {
			engines := map[string]http.Handler{"a": &script{answer: slowly(strings.ReplaceAll(geminiFlow, "\r", ""))}, "b": &script{answer: talk(3, time.Millisecond)}}
			engines[down].(*script).answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }
			conf := atGoogle("a", "b")
			conf.Routes[0].Prefer = "order"
			if down == "b" {
				slices.Reverse(conf.Routes[0].Targets)
			}
			h := open(t, conf, engines)
			r := h.post(flowPath+"?alt=sse", googleBody)
			if r.status != 200 || r.err != nil || !strings.Contains(r.body, `"text":"word "`) || !strings.Contains(r.body, `"finishReason":"STOP"`) && !strings.Contains(r.body, `"finishReason":"MAX_TOKENS"`) {
				t.Errorf("without %s: got %d %s (%v)", down, r.status, r.body, r.err)
			}
			if line := h.last(); line.Backend == down || line.Outcome != outcomeOK {
				t.Errorf("log line %+v", line)
			}
		})
	}
}
