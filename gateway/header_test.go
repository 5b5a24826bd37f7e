package gateway

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/router"
)

// What passes in each direction, header by header.
func TestHeadersThatPass(t *testing.T) {
	const passes, stays = true, false
	up := map[string]bool{
		"Openai-Organization": passes, "Openai-Project": passes, "Idempotency-Key": passes, "Traceparent": passes,
		"Anthropic-Version": passes, "Anthropic-Beta": passes, "X-Stainless-Retry-Count": passes, "X-Custom": passes,
		"User-Agent": passes, "Accept": passes,
		"Authorization": stays, "X-Api-Key": stays, "Api-Key": stays, "Cookie": stays, "Proxy-Authorization": stays,
		"X-Pacer-Class": stays, "X-Named": stays, "Te": stays, "Keep-Alive": stays, "Proxy-Connection": stays,
	}
	down := map[string]bool{
		"X-Ratelimit-Remaining-Requests": passes, "X-Ratelimit-Reset-Tokens": passes, "Openai-Processing-Ms": passes,
		"Openai-Organization": passes, "Retry-After": passes, "Retry-After-Ms": passes, "X-Should-Retry": passes,
		"Anthropic-Ratelimit-Requests-Remaining": passes, "Etag": passes, "X-Custom": passes,
		"X-Pacer-Anything": stays, "Set-Cookie": stays, "Strict-Transport-Security": stays, "X-Named": stays,
		"Keep-Alive": stays, "Proxy-Authenticate": stays, "Access-Control-Allow-Headers": stays,
	}
	synctest.Test(t, func(t *testing.T) {
		engine := &script{}
		engine.answer = func(w http.ResponseWriter, _ *http.Request) {
			for name := range down {
				w.Header().Set(name, "sent")
			}
			w.Header().Set("Connection", "X-Named")
			answering(w, `"include_usage":true`)
		}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		req := h.request("POST", chat, streamBody)
		for name := range up {
			req.Header.Set(name, "sent")
		}
		req.Header.Set("X-Pacer-Class", "batch")
		req.Header.Set("Connection", "X-Named")
		r := h.do(req)
		if r.status != 200 {
			t.Fatalf("got %d %s", r.status, r.body)
		}
		for name, want := range up {
			if got := engine.heads[0].Get(name) != ""; got != want {
				t.Errorf("%s goes up: %v, want %v", name, got, want)
			}
		}
		for name, want := range down {
			if name == "X-Named" { // answering names another one
				continue
			}
			if got := r.header.Get(name) != ""; got != want {
				t.Errorf("%s comes down: %v, want %v", name, got, want)
			}
		}
		if got := engine.heads[0].Get("Accept-Encoding"); got != "identity" {
			t.Errorf("Accept-Encoding %q goes up, want identity: a stream that is compressed cannot be measured", got)
		}
	})
}

// What does not decode has no speed, so no floor either.
func TestNoFloorWhereNothingDecodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		c.Routes[0].SLO.MinTPS = 30
		h := open(t, c, map[string]http.Handler{"a": asker()})
		for path, want := range map[string]string{
			"/v1/embeddings": "policy=order; n=0; m=0; floor=0", "/v1/audio/speech": "policy=order; n=0; m=0; floor=0",
			chat: "policy=order; n=0; m=0; floor=30; by=slow_start",
		} {
			body := `{"model":"chat"}`
			if path == chat {
				body = streamBody
			}
			if got := h.post(path, body).header.Get("X-Pacer-Decision"); got != want {
				t.Errorf("%s: decided by %q, want %q", path, got, want)
			}
		}
	})
}

func TestBytesPerTokenAreLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings("a"), map[string]http.Handler{"a": asker()})
		target := router.Target{Backend: "a", Model: "big"}
		if got := h.gateway.TextFacts(target).BytesPerToken; !math.IsNaN(got) {
			t.Errorf("%v before the first answer, want NaN", got)
		}
		h.post(chat, streamBody)
		if got := h.gateway.TextFacts(target).BytesPerToken; got != 5 { // "word "
			t.Errorf("%v bytes per token, want 5", got)
		}
		if line := h.last(); line.PerToken != 5 {
			t.Errorf("log line says %v, want 5", line.PerToken)
		}
		c := settings("a")
		must.Do(t, h.gateway.Configure(c, h.backends, nil))
		if got := h.gateway.TextFacts(target).BytesPerToken; got != 5 {
			t.Errorf("%v after a reload, want what was learned", got)
		}
		if got := h.gateway.TextFacts(router.Target{Backend: "b"}).BytesPerToken; !math.IsNaN(got) {
			t.Errorf("%v for a target that is not there, want NaN", got)
		}
	})
}

func TestTextScale(t *testing.T) {
	var s textScale
	for range 3 {
		s.learn(400, 100)
	}
	for _, c := range [][2]int{{0, 10}, {10, 0}, {1, 100}, {10_000, 10}} {
		if got := s.learn(c[0], c[1]); !math.IsNaN(got) {
			t.Errorf("%d bytes in %d tokens: %v, want NaN", c[0], c[1], got)
		}
	}
	if got := s.bytesPerToken(); got != 4 {
		t.Errorf("%v, want 4", got)
	}
	for range 100 {
		s.learn(2*textMemory/10, textMemory/10)
	}
	if got := s.bytesPerToken(); math.Abs(got-2) > 0.01 {
		t.Errorf("%v after many answers of 2 bytes a token, want about 2", got)
	}
}

// A backend that repeats what it was sent tells the client neither its key nor
// the values of its headers, whatever it answers.
func TestNoHeaderTellsASecret(t *testing.T) {
	for status, body := range map[int]string{200: `{"choices":[]}`, 400: `{"error":{"message":"no"}}`, 404: "no", 429: `{"error":{"message":"slow"}}`, 503: "no"} {
		synctest.Test(t, func(t *testing.T) {
			conf := settings("a")
			conf.Backends[0].APIKey = "sk-of-the-backend"
			conf.Backends[0].Headers = map[string]config.Secret{"X-Pass": "Basic of-the-proxy"}
			h := open(t, conf, map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				for name, value := range map[string]string{
					"X-Sent-Authorization": r.Header.Get("Authorization"), "X-Sent-Pass": r.Header.Get("X-Pass"),
					"Retry-After": "sk-of-the-backend", "Www-Authenticate": `Basic realm="of-the-proxy"`, "X-Kept": "kept",
				} {
					w.Header().Set(name, value)
				}
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			}}})
			r := h.post(chat, `{"model":"chat"}`)
			if all := fmt.Sprint(r.header); strings.Contains(all, "of-the-") {
				t.Errorf("%d: headers %v", status, all)
			}
			if status == 200 && r.header.Get("X-Kept") != "kept" {
				t.Errorf("headers %v, want X-Kept", r.header)
			}
		})
	}
}
