package gateway

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/config"
)

// lastWrite is a client that acts when the last bytes of its answer are there,
// before the write that brings them has returned.
type lastWrite struct {
	*httptest.ResponseRecorder
	last []byte
	act  func()
}

func (w *lastWrite) Write(p []byte) (int, error) {
	if bytes.HasSuffix(p, w.last) {
		w.act()
	}
	return w.ResponseRecorder.Write(p)
}

// A client that has all of its answer may ask again at once: neither its key
// nor the backend has it among those who are there.
func TestPlacesAreFreeWhenTheAnswerIsThere(t *testing.T) {
	const document = `{"id":"c1","choices":[{"index":0,"message":{"content":"word"}}],"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}}`
	const refusal = `{"error":{"message":"too long"}}`
	for name, c := range map[string]struct {
		body, last string
		path       string
		status     int
	}{
		"stream":    {body: `{"model":"chat","stream":true}`, last: doneEvent, path: chat, status: 200},
		"document":  {body: `{"model":"chat"}`, last: document, path: chat, status: 200},
		"embedding": {body: `{"model":"chat","input":"x"}`, last: document, path: "/v1/embeddings", status: 200},
		"error":     {body: `{"model":"chat"}`, last: refusal, path: chat, status: 400},
	} {
		bubble(t, name, func(t *testing.T) {
			conf := keyed()
			conf.Keys[0].Limits = config.KeyLimits{Concurrency: 1, TokensPerMinute: 100000}
			conf.Backends[0].MaxConcurrency = 1
			conf.Routes[0].OnInfeasible = []config.Step{{Shed: true}}
			h := open(t, conf, map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
				if c.last == doneEvent {
					talk(3, 0)(w, r)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.last)
			}}})
			again := reply{}
			w := &lastWrite{ResponseRecorder: httptest.NewRecorder(), last: []byte(c.last)}
			w.act = func() { again = h.post(c.path, c.body, "x-api-key", "sk-right") }
			h.gateway.Handler().ServeHTTP(w, h.request("POST", c.path, c.body, "x-api-key", "sk-right"))
			if again.status != c.status || again.err != nil {
				t.Errorf("the second request: %d %s %v, want %d", again.status, again.body, again.err, c.status)
			}
			h.idle()
			if c.status != 200 {
				return
			}
			const used = 2 * 8
			if left := h.gateway.setup.Load().tenants[0].limits.State(time.Now()).Tokens.Remaining; left > 100000-used || left < 100000-2*used {
				t.Errorf("%d tokens left of 100000", left)
			}
		})
	}
}
