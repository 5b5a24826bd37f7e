package gateway

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
)

// echo is a backend that answers each of its paths with one document.
func echo(kind, body string) *script {
	return &script{answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	}}
}

// What does not decode is passed through as it is, with a lease and without a
// measurement.
func TestEndpointsThatDoNotDecode(t *testing.T) {
	jpeg := "\xff\xd8\xff\xe0" + strings.Repeat("\x00\x01", 40_000)
	for _, c := range []struct{ path, kind, body string }{
		{"/v1/embeddings", "application/json", `{"object":"list","data":[{"embedding":"AAAA"}],"usage":{"prompt_tokens":9,"total_tokens":9}}`},
		{"/v1/rerank", "application/json", `[{"index":0,"score":0.99}]`},
		{"/v1/rerank", "application/json", `{"results":[{"index":0,"relevance_score":0.99}]}`},
		{"/v1/moderations", "application/json; charset=utf-8", ` {"results":[]}`},
		{"/v1/images/generations", "application/json", `{"data":[{"b64_json":"` + strings.Repeat("A", 6<<20) + `"}]}`},
		{"/v1/images/generations", "text/event-stream", "event: image_generation.partial_image\ndata: {\"b64_json\":\"AAAA\"}\n\nevent: image_generation.completed\ndata: {}\n\n"},
		{"/v1/audio/speech", "audio/mpeg", jpeg},
		{"/v1/audio/speech", "text/event-stream", "data: {\"type\":\"speech.audio.delta\",\"audio\":\"AAAA\"}\n\ndata: {\"type\":\"speech.audio.done\"}\n\n"},
		{"/v1/audio/transcriptions", "text/plain; charset=utf-8", "1\n00:00 --> 00:01\nhello\n"},
	} {
		bubble(t, c.path+" "+c.kind, func(t *testing.T) {
			engine := echo(c.kind, c.body)
			h := open(t, settings("a"), map[string]http.Handler{"a": engine})
			body := `{"model":"chat","input":"secret-prompt","stream":true,"n":3}`
			r := h.post(c.path, body)
			if r.status != 200 || r.body != c.body || r.err != nil {
				t.Errorf("got %d, %d bytes (%v), want the answer as it was, %d bytes", r.status, len(r.body), r.err, len(c.body))
			}
			if got := r.header.Get("Content-Type"); got != c.kind {
				t.Errorf("content-type %q, want %q", got, c.kind)
			}
			if stream := c.kind == "text/event-stream"; stream != (r.header.Get("X-Accel-Buffering") == "no") {
				t.Errorf("X-Accel-Buffering %q for %s", r.header.Get("X-Accel-Buffering"), c.kind)
			}
			if want := strings.Replace(body, `"chat"`, `"big"`, 1); engine.bodies[0] != want || engine.paths[0] != c.path {
				t.Errorf("the backend got %s %q, want %s %q", engine.paths[0], engine.bodies[0], c.path, want)
			}
			if line := h.last(); line.Outcome != outcomeOK || line.Backend != "a" || line.Tokens != 0 {
				t.Errorf("log line %+v, want ok without tokens", line)
			}
			if s := h.metrics.Route("chat"); s.Unmeasured != 1 {
				t.Errorf("route counts %+v, want one unmeasured", s)
			}
		})
	}
}

// Their failures move on, and their places count for the cap of a backend.
func TestWhatDoesNotDecodeHasFailoverAndCaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a", "b")
		c.Backends[1].MaxConcurrency = 1
		c.Routes[0].OnInfeasible = []config.Step{{Shed: true}}
		h := open(t, c, map[string]http.Handler{"b": &script{answer: func(w http.ResponseWriter, r *http.Request) {
			pause(r, time.Second)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"data":[]}`)
		}}})
		first := make(chan reply)
		go func() { first <- h.post("/v1/embeddings", `{"model":"chat","input":"x"}`) }()
		<-time.After(500 * time.Millisecond)
		if r := h.post("/v1/embeddings", `{"model":"chat","input":"x"}`); r.status < 429 {
			t.Errorf("got %d beyond the cap of the only backend that works, want a refusal", r.status)
		}
		if r := <-first; r.status != 200 || r.header.Get("X-Pacer-Backend") != "b" {
			t.Errorf("got %d from %q, want the second backend's answer", r.status, r.header.Get("X-Pacer-Backend"))
		}
	})
}

// What a key may use in tokens is settled with what an embedding cost.
func TestAnEmbeddingIsSettledWithItsUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		k := key("mobile", "sk-right")
		k.Limits = config.KeyLimits{TokensPerMinute: 6000, RequestsPerMinute: 60}
		c.Keys = []config.Key{k}
		h := open(t, c, map[string]http.Handler{"a": echo("application/json", `{"data":[],"usage":{"prompt_tokens":900,"total_tokens":900}}`)})
		h.post("/v1/embeddings", `{"model":"chat","input":"x"}`, "Authorization", "Bearer sk-right")
		r := h.post("/v1/embeddings", `{"model":"chat","input":"x"}`, "Authorization", "Bearer sk-right")
		for name, want := range map[string]string{
			"X-Ratelimit-Limit-Requests": "60", "X-Ratelimit-Remaining-Requests": "58", "X-Ratelimit-Reset-Requests": "2s",
			"X-Ratelimit-Limit-Tokens": "6000", "X-Ratelimit-Remaining-Tokens": "5099", "X-Ratelimit-Reset-Tokens": "9.01s",
		} {
			if got := r.header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	})
}

// transcription is a form as the official SDKs send it: the file first.
func transcription(tb testing.TB, size int, fields ...string) (body, contentType string) {
	tb.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	file := must.Get(w.CreateFormFile("file", "speech.mp3"))(tb)
	_, _ = file.Write(make([]byte, size))
	for i := 0; i < len(fields); i += 2 {
		_ = w.WriteField(fields[i], fields[i+1])
	}
	_ = w.Close()
	return b.String(), w.FormDataContentType()
}

func TestTheModelBehindA25MBFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := echo("application/json", `{"text":"hello"}`)
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		body, kind := transcription(t, 25<<20, "model", "chat", "language", "de")
		r := h.post("/v1/audio/transcriptions", body, "Content-Type", kind)
		if r.status != 200 || r.body != `{"text":"hello"}` {
			t.Fatalf("got %d %q", r.status, r.body)
		}
		if engine.bodies[0] != strings.Replace(body, "\r\n\r\nchat\r\n", "\r\n\r\nbig\r\n", 1) {
			t.Error("the form went up with more than its model changed")
		}
		if got := engine.heads[0].Get("Content-Type"); got != kind {
			t.Errorf("content-type %q went up, want %q", got, kind)
		}
	})
}

func TestFormsThatCannotBeServed(t *testing.T) {
	for name, c := range map[string]struct {
		size   int
		fields []string
		path   string
		status int
		code   string
	}{
		"too large":     {3 << 20, []string{"model", "chat"}, "/v1/audio/transcriptions", 413, "request_too_large"},
		"no model":      {10, []string{"language", "de"}, "/v1/audio/transcriptions", 400, ""},
		"two models":    {10, []string{"model", "chat", "model", "big"}, "/v1/audio/transcriptions", 400, ""},
		"unknown model": {10, []string{"model", "nobody"}, "/v1/audio/transcriptions", 404, "model_not_found"},
		"not a form":    {10, []string{"model", "chat"}, "/v1/embeddings", 400, ""},
	} {
		bubble(t, name, func(t *testing.T) {
			engine, conf := echo("application/json", `{}`), settings("a")
			conf.Limits.Body = 1 << 20
			h := open(t, conf, map[string]http.Handler{"a": engine})
			body, kind := transcription(t, c.size, c.fields...)
			r := h.post(c.path, body, "Content-Type", kind)
			if code := r.code(t); r.status != c.status || code != c.code {
				t.Errorf("got %d %s, want %d %s", r.status, code, c.status, c.code)
			}
			if engine.calls() != 0 {
				t.Error("the backend was asked")
			}
			<-time.After(time.Second) // the server holds on to a body that it did not read to its end
		})
	}
}

// zipped returns text compressed.
func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

func TestACompressedRequestIsReadAndGoesUpPlain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := asker()
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		r := h.post(chat, zipped(streamBody), "Content-Encoding", "gzip")
		if r.status != 200 || r.body != answered+doneEvent {
			t.Errorf("got %d %q", r.status, r.body)
		}
		if got := engine.heads[0]; got.Get("Content-Encoding") != "" || got.Get("Content-Length") != fmt.Sprint(len(engine.bodies[0])) {
			t.Errorf("content-encoding %q, content-length %q went up with %d bytes", got.Get("Content-Encoding"), got.Get("Content-Length"), len(engine.bodies[0]))
		}
		if !strings.Contains(engine.bodies[0], "secret-prompt") {
			t.Errorf("the backend got %q", engine.bodies[0])
		}
	})
}

// What unpacks to nothing ends at the limit, too: else a client has the gateway read
// for ever.
func TestACompressedBodyIsReadUpToTheLimit(t *testing.T) {
	var blocks bytes.Buffer
	w := gzip.NewWriter(&blocks)
	for range 1 << 20 {
		_ = w.Flush() // an empty block of 5 bytes
	}
	_ = w.Close()
	const limit = 1 << 20
	random := make([]byte, limit) // gzip makes it a little larger
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	for name, body := range map[string]string{
		"empty members":         strings.Repeat(zipped(""), 1<<18),
		"empty members, then a": strings.Repeat(zipped(""), 1<<18) + zipped(streamBody),
		"empty blocks":          blocks.String(),
		"what does not pack":    zipped(string(random)),
	} {
		bubble(t, name, func(t *testing.T) {
			engine, conf := asker(), settings("a")
			conf.Limits.Body = limit
			h := open(t, conf, map[string]http.Handler{"a": engine})
			sent := &countedReader{from: strings.NewReader(body)}
			req := h.request("POST", chat, "", "Content-Encoding", "gzip")
			req.Body, req.ContentLength = io.NopCloser(sent), -1 // in chunks
			r := h.do(req)
			if code := r.code(t); r.status != 413 || code != "request_too_large" {
				t.Errorf("got %d %s, want 413 request_too_large", r.status, code)
			}
			if engine.calls() != 0 {
				t.Error("the backend was asked")
			}
			<-time.After(time.Second) // the server holds on to a body that it did not read to its end
			if taken := sent.n.Load(); taken > 2*limit {
				t.Errorf("%d bytes of %d were taken, want about %d", taken, len(body), limit)
			}
			if held := h.gateway.buffered.used.Load(); held != 0 {
				t.Errorf("%d bytes are held of a body that was refused", held)
			}
		})
	}
}

// countedReader counts what is read of a body.
type countedReader struct {
	from io.Reader
	n    atomic.Int64
}

// Read implements io.Reader.
func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.n.Add(int64(n))
	return n, err
}

func TestCompressedRequestsThatAreRefused(t *testing.T) {
	bomb := zipped(`{"model":"chat","x":"` + strings.Repeat("x", 16<<20) + `"}`)
	good := zipped(streamBody)
	for name, c := range map[string]struct {
		body, encoding string
		status         int
		code           string
	}{
		"bomb":           {bomb, "gzip", 413, "request_too_large"},
		"cut":            {good[:len(good)-9], "gzip", 400, "unreadable_body"},
		"checksum":       {good[:len(good)-8] + "12345678", "gzip", 400, "unreadable_body"},
		"no gzip":        {streamBody, "gzip", 400, "unreadable_body"},
		"corrupt":        {good[:len(good)/2] + strings.Repeat("\xff", len(good)/2), "gzip", 400, "unreadable_body"},
		"head alone":     {good[:5], "gzip", 400, "unreadable_body"},
		"other encoding": {good, "zstd", 415, "unsupported_encoding"},
		"twice":          {good, "gzip, gzip", 415, "unsupported_encoding"},
	} {
		bubble(t, name, func(t *testing.T) {
			engine, conf := asker(), settings("a")
			conf.Limits.Body = 1 << 20
			h := open(t, conf, map[string]http.Handler{"a": engine})
			r := h.post(chat, c.body, "Content-Encoding", c.encoding)
			if code := r.code(t); r.status != c.status || code != c.code {
				t.Errorf("got %d %s, want %d %s", r.status, code, c.status, c.code)
			}
			if r.status == 400 && !strings.Contains(r.body, "no whole gzip") {
				t.Errorf("got %s, want what is wrong with it", r.body)
			}
			if r.status == 415 && r.header.Get("Accept-Encoding") != "gzip" {
				t.Error("415 does not say what is accepted")
			}
			if engine.calls() != 0 {
				t.Error("the backend was asked")
			}
		})
	}
}

// A client's query goes up, and what Pacer makes of a header's name does not.
func TestTheQueryGoesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := asker()
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		if r := h.post(chat+"?api-version=2026-01-01&x=%20y", streamBody); r.status != 200 {
			t.Fatalf("got %d", r.status)
		}
		if got := engine.paths[0]; got != chat+"?api-version=2026-01-01&x=%20y" {
			t.Errorf("%s went up", got)
		}
		if strings.Contains(h.log.String(), "api-version") {
			t.Error("the query is in the log: it may hold a key")
		}
	})
}

func TestRefusalsOfTheMessagesEndpointAreInItsDialect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, keyed(), nil)
		r := h.post("/v1/messages", `{"model":"chat"}`)
		want := `{"type":"error","error":{"message":"No API key provided. Send it as Authorization: Bearer KEY.","type":"authentication_error","param":null,"code":"invalid_api_key"},"request_id":"` + r.header.Get("X-Request-Id") + `"}`
		if r.status != 401 || r.body != want {
			t.Errorf("got %d %s, want %s", r.status, r.body, want)
		}
		if code := r.code(t); code != "invalid_api_key" {
			t.Errorf("as OpenAI reads it the code is %q", code)
		}
	})
}

// Coding agents count before they send. Anthropic's own API is asked where the
// route has it, and else the engine.
func TestCountTokens(t *testing.T) {
	const path = "/v1/messages/count_tokens"
	synctest.Test(t, func(t *testing.T) {
		c := settings("a", "b")
		c.Backends[1].Kind, c.Backends[1].MaxConcurrency = "anthropic", 1
		c.Routes[0].SLO.MinTPS = 1e6 // which nobody keeps, and a count need not
		mixed := c.Routes[0]
		plain := mixed
		plain.Models, plain.Targets = []string{"plain"}, mixed.Targets[:1]
		c.Routes = append(c.Routes, plain)
		k := key("mobile", "sk-right")
		k.Limits = config.KeyLimits{TokensPerMinute: 6000}
		c.Keys = []config.Key{k}
		engine, claude := asker(), echo("application/json", `{"input_tokens":2095}`)
		h := open(t, c, map[string]http.Handler{"a": engine, "b": claude})
		body := `{"model":"chat","messages":[{"role":"user","content":"` + strings.Repeat("word ", 1000) + `"}],"stream":true}`
		for range 2 {
			r := h.post(path+"?beta=true", body, "X-Api-Key", "sk-right", "Anthropic-Beta", "token-counting-2024-11-01")
			if r.status != 200 || r.body != `{"input_tokens":2095}` {
				t.Errorf("got %d %s", r.status, r.body)
			}
		}
		if claude.paths[0] != path+"?beta=true" || claude.heads[0].Get("Anthropic-Beta") == "" || !strings.HasPrefix(claude.bodies[0], `{"model":"big","messages"`) {
			t.Errorf("%s %.40s went up with %v", claude.paths[0], claude.bodies[0], claude.heads[0])
		}
		if line := h.last(); line.Outcome != outcomeOK || line.Backend != "b" || line.Tokens != 0 {
			t.Errorf("log line %+v, want ok by b and no tokens", line)
		}
		if left := h.gateway.setup.Load().tenants[0].limits.State(time.Now()).Tokens.Remaining; left < 5990 {
			t.Errorf("%d tokens of 6000 are left after none was used", left)
		}
		if engine.calls() != 0 {
			t.Error("an engine was asked that may not count, beside Anthropic's own API")
		}
		// vLLM and llama.cpp count; an engine that does not says so itself.
		if r := h.post(path, `{"model":"plain","messages":[]}`, "X-Api-Key", "sk-right"); r.status != 200 || engine.calls() != 1 || engine.paths[0] != path {
			t.Errorf("got %d from an engine that was asked %d times", r.status, engine.calls())
		}
		if r := h.do(h.request("GET", path, "")); r.status != 405 || r.header.Get("Allow") != "POST" {
			t.Errorf("GET: %d, Allow %q", r.status, r.header.Get("Allow"))
		}
	})
}

// Whatever kind a backend is of, its prompts can be counted: where it cannot do it
// itself the gateway does, and asks nobody.
func TestTokensAreCountedForEveryKind(t *testing.T) {
	long := strings.Repeat("word ", 1000)
	for _, kind := range []string{"openai", "vllm", "sglang", "llamacpp", "tgi", "ollama", "anthropic", "gemini", "mistral", "cohere", "groq"} {
		bubble(t, kind, func(t *testing.T) {
			c := settings("a")
			c.Backends[0].Kind = kind
			engine := &script{answer: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(404)
				say(w, `{"detail":"Not Found"}`)
			}}
			if kind == "anthropic" {
				engine = echo("application/json", `{"input_tokens":1008}`)
			}
			h := open(t, c, map[string]http.Handler{"a": engine})
			var m, r struct {
				Object      string `json:"object"`
				InputTokens int    `json:"input_tokens"`
			}
			for path, to := range map[string]any{"/v1/messages/count_tokens": &m, "/v1/responses/input_tokens": &r} {
				body := `{"model":"chat","messages":[{"role":"user","content":"` + long + `"}]}`
				if to == any(&r) {
					body = `{"model":"chat","input":"` + long + `"}`
				}
				for range 2 { // the second time it is known what the engine lacks
					got := h.post(path, body)
					if err := json.Unmarshal([]byte(got.body), to); err != nil || got.status != 200 {
						t.Fatalf("%s: got %d %s", path, got.status, got.body)
					}
				}
			}
			if m.InputTokens < 950 || m.InputTokens > 1100 || r.InputTokens < 950 || r.InputTokens > 1100 || m.Object != "" || r.Object != "response.input_tokens" {
				t.Errorf("a prompt of 1000 words: %+v, %+v", m, r)
			}
			if n := engine.calls(); n > 2 || kind == "gemini" && n > 0 {
				t.Errorf("the backend was asked %d times", n)
			}
		})
	}
}

// A compaction goes to the backend that keeps the answer it goes on from.
func TestResponsesAreCompacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := `{"id":"resp_c","object":"response.compaction","output":[{"type":"compaction","encrypted_content":"x"}],"usage":{"input_tokens":9,"output_tokens":4}}`
		a, b := echo("application/json", `{"id":"resp_a","object":"response"}`), echo("application/json", answer)
		c := settings("a", "b")
		h := open(t, c, map[string]http.Handler{"a": a, "b": b})
		h.post("/v1/responses", `{"model":"chat","input":"x"}`, "X-Pacer-Target", "b")
		b.answer = states(200, answer)
		r := h.post("/v1/responses/compact", `{"model":"chat","previous_response_id":"resp_c"}`)
		if r.status != 200 || r.body != answer || b.calls() != 2 || b.paths[1] != "/v1/responses/compact" || b.bodies[1] != `{"model":"big","previous_response_id":"resp_c"}` {
			t.Errorf("got %d %s; the backend %q", r.status, r.body, b.bodies)
		}
		if r := h.do(h.request("GET", "/v1/responses/compact", "")); r.status != 405 {
			t.Errorf("GET: %d", r.status)
		}
	})
}

// Comments without end are no tokens, and cost no memory.
func TestEndlessComments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		c.Timeouts.FirstByte = 10 * time.Minute
		h := open(t, c, map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
			eventStream(w)
			for pause(r, 11*time.Millisecond) { // none in the instant of the end, which would be found a second later
				say(w, ": OPENROUTER PROCESSING\n\n")
			}
		}}})
		start := time.Now()
		resp := must.Get(h.client.Do(h.request("POST", chat, streamBody)))(t)
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !isCut(err) || time.Since(start).Round(time.Second) != 10*time.Minute {
			t.Errorf("ended with %v after %v, want a cut after 10m", err, time.Since(start))
		}
		if n := strings.Count(string(got), ": OPENROUTER PROCESSING\n\n"); n < 54_000 {
			t.Errorf("%d comments came, want about 54545", n)
		}
		if line := h.last(); line.TTFTms != 0 || line.Tokens != 0 {
			t.Errorf("log line %+v: comments were taken for tokens", line)
		}
	})
}

// Engines in Python take a truth or a number as a string, and a body that begins
// with a byte order mark; so what works in front of them works here.
func TestWhatPythonReadsIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: talk(3, 10*time.Millisecond)}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		for _, c := range []struct{ body, up string }{
			{
				`{"model":"chat","messages":[],"stream":"true","max_tokens":"7","n":"1"}`,
				`{"stream_options":{"include_usage":true},"model":"big","messages":[],"stream":"true","max_tokens":"7","n":"1"}`,
			},
			{"\xEF\xBB\xBF" + `{"model":"chat","stream":1}`, `{"stream_options":{"include_usage":true},"model":"big","stream":1}`},
		} {
			r := h.post(chat, c.body)
			if r.status != 200 || !strings.HasSuffix(r.body, doneEvent) || strings.Contains(r.body, `"usage"`) {
				t.Errorf("%s: got %d %q, want the stream without its usage", c.body, r.status, r.body)
			}
			if up := engine.bodies[len(engine.bodies)-1]; up != c.up {
				t.Errorf("the backend got\n%s\nwant\n%s", up, c.up)
			}
		}
	})
}

// In Azure's API with a version the model is a step of the path. What a client
// names must not lead to another one.
func TestAModelThatIsAStepOfAPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a", "b")
		c.Backends[0].Kind, c.Backends[0].URL = "azure", "http://a/openai?api-version=2024-10-21"
		azure, others := config.Target{Backend: "a"}, config.Target{Backend: "b"}
		c.Routes[0].Models, c.Routes[0].Targets = []string{"*"}, []config.Target{azure}
		c.Routes = append(c.Routes, c.Routes[0], c.Routes[0])
		c.Routes[1].Models, c.Routes[1].Targets = []string{"named"}, []config.Target{{Backend: "a", Model: "gpt-4o"}}
		c.Routes[2].Models, c.Routes[2].Targets = []string{"any/model"}, []config.Target{azure, others}
		answer := asker()
		h := open(t, c, map[string]http.Handler{"a": answer, "b": asker()})
		for _, model := range []string{"..", ".", "...", "../../admin", "gpt-4o/../x", "gpt-4o/chat", `..\\x`, "%2e%2e", "a?api-version=1", "a#b", "a;b", "a b", "ä", "a\\u0000b", strings.Repeat("x", 65)} {
			r := h.post(chat, `{"model":"`+model+`","stream":true}`)
			if r.status != 404 || !strings.Contains(r.body, `"model_not_found"`) {
				t.Errorf("model %q: got %d %s, want 404", model, r.status, r.body)
			}
		}
		if n := answer.calls(); n > 0 {
			t.Fatalf("%d requests went up to %v", n, answer.paths)
		}
		for model, want := range map[string]string{"gpt-4o_1.x": "gpt-4o_1.x", "..a": "..a", "named": "gpt-4o"} {
			r := h.post(chat, `{"model":"`+model+`","stream":true}`)
			if got := answer.paths[len(answer.paths)-1]; r.status != 200 || got != "/openai/deployments/"+want+"/chat/completions?api-version=2024-10-21" {
				t.Errorf("model %q: got %d from %s", model, r.status, got)
			}
		}
		// Who has another backend for it is served there.
		if r := h.post(chat, `{"model":"any/model","stream":true}`); r.status != 200 || h.last().Backend != "b" {
			t.Errorf("got %d from %q, want 200 from b", r.status, h.last().Backend)
		}
	})
}
