package gateway

import (
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
)

// upload opens a request whose body of so many bytes does not come.
func (h *house) upload(key string, length int) net.Conn {
	h.t.Helper()
	return h.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Length: %d\r\n\r\n", chat, key, length))
}

// send dials, sends text, and returns when all has been done that it lets do.
func (h *house) send(text string) net.Conn {
	h.t.Helper()
	c := must.Get(h.net.Dial(h.t.Context(), "tcp", "gateway:80"))(h.t)
	h.t.Cleanup(func() { c.Close() })
	must.Get(io.WriteString(c, text))(h.t)
	synctest.Wait()
	return c
}

// A key that is over its rate, or at its concurrency, is told so by the head of
// its request: nothing of the body is read, and nothing is held for it.
func TestAKeyOverItsLimitsIsRefusedAtTheHead(t *testing.T) {
	for name, c := range map[string]struct {
		limits config.KeyLimits
		before func(h *house)
	}{
		"requests": {config.KeyLimits{RequestsPerMinute: 1}, func(h *house) { h.post(chat, streamBody, "x-api-key", "sk-right") }},
		"tokens":   {config.KeyLimits{TokensPerMinute: 50}, func(h *house) { h.post(chat, streamBody, "x-api-key", "sk-right") }},
		"concurrency, by a stream": {config.KeyLimits{Concurrency: 1}, func(h *house) {
			go h.post(chat, streamBody, "x-api-key", "sk-right")
			synctest.Wait()
		}},
		"concurrency, by a body": {config.KeyLimits{Concurrency: 1}, func(h *house) { h.upload("sk-right", 900) }},
	} {
		bubble(t, name, func(t *testing.T) {
			conf := keyed()
			conf.Limits.Body = 32 << 20
			conf.Keys[0].Limits = c.limits
			engine := &script{answer: talk(100, time.Millisecond)}
			h := open(t, conf, map[string]http.Handler{"a": engine})
			c.before(h)
			calls, held := engine.calls(), h.gateway.buffered.used.Load()
			began := time.Now()
			throttled := h.upload("sk-right", 1<<20)
			answer, err := http.ReadResponse(newResponseReader(throttled).r, nil)
			if err != nil {
				t.Fatalf("no answer: %v", err)
			}
			body, _ := io.ReadAll(answer.Body)
			r := reply{status: answer.StatusCode, header: answer.Header, body: string(body)}
			if code := r.code(t); r.status != 429 || code != "rate_limit_exceeded" || r.header.Get("Retry-After") == "" || time.Since(began) > 0 {
				t.Errorf("got %d %s after %v, want 429 rate_limit_exceeded at once", r.status, code, time.Since(began))
			}
			if got := h.gateway.buffered.used.Load(); got != held {
				t.Errorf("%d bytes held for the refused request", got-held)
			}
			if got := engine.calls(); got != calls {
				t.Errorf("the backend was called %d times more", got-calls)
			}
			<-time.After(time.Minute)
		})
	}
}

// What is refused for something else was no request of the minute, as long as
// nothing was placed.
func TestWhatIsRefusedForItsBodyDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := keyed()
		conf.Keys[0].Limits = config.KeyLimits{RequestsPerMinute: 1, Concurrency: 1}
		h := open(t, conf, map[string]http.Handler{"a": &script{answer: talk(1, time.Millisecond)}})
		for body, want := range map[string]int{
			`{`: 400, `{"model":"nobody"}`: 404, string(make([]byte, 2000)): 413,
		} {
			if r := h.post(chat, body, "x-api-key", "sk-right"); r.status != want {
				t.Errorf("%.20q: got %d, want %d", body, r.status, want)
			}
		}
		c := h.upload("sk-right", 900) // a client that leaves
		c.Close()
		synctest.Wait()
		if r := h.post(chat, streamBody, "x-api-key", "sk-right"); r.status != 200 {
			t.Errorf("the one request of this minute: got %d %s", r.status, r.body)
		}
	})
}

// One of several keys may send half of the bodies that there may be at once.
func TestOneKeyDoesNotSendAllBodies(t *testing.T) {
	for name, set := range map[string]func(c *config.Config, g *Gateway){
		"streams":     func(c *config.Config, _ *Gateway) { c.Limits.Streams = 4 },
		"connections": func(_ *config.Config, g *Gateway) { g.clients = 4 },
	} {
		bubble(t, name, func(t *testing.T) {
			conf := keyed()
			conf.Keys = append(conf.Keys, key("web", "sk-web"))
			h := open(t, conf, map[string]http.Handler{"a": &script{answer: talk(1, time.Millisecond)}})
			set(conf, h.gateway)
			first := h.upload("sk-right", 900)
			h.upload("sk-right", 900)
			if r := h.post(chat, streamBody, "x-api-key", "sk-right"); r.status != 503 || r.code(t) != "gateway_overloaded" {
				t.Errorf("a third body of four: got %d %s, want 503 gateway_overloaded", r.status, r.body)
			}
			if r := h.post(chat, streamBody, "x-api-key", "sk-web"); r.status != 200 {
				t.Errorf("another key: got %d %s", r.status, r.body)
			}
			first.Close()
			synctest.Wait()
			if r := h.post(chat, streamBody, "x-api-key", "sk-right"); r.status != 200 {
				t.Errorf("when one has gone: got %d %s", r.status, r.body)
			}
			<-time.After(time.Minute)
		})
	}
}

// A key that is alone has all bodies and buffers, also while its old secret is taken.
func TestALoneKeyInRotationHasAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := keyed()
		conf.Keys = append(conf.Keys, key(conf.Keys[0].Name, "sk-old"))
		h := open(t, conf, map[string]http.Handler{"a": &script{answer: talk(1, time.Millisecond)}})
		conf.Limits.Streams = 4
		h.upload("sk-right", 900)
		h.upload("sk-old", 900)
		if r := h.post(chat, streamBody, "x-api-key", "sk-right"); r.status != 200 {
			t.Errorf("a third body of four: got %d %s", r.status, r.body)
		}
		if limit := h.gateway.setup.Load().tenants[0].held.limit.Load(); limit != math.MaxInt64 {
			t.Errorf("it may hold %d bytes, want all", limit)
		}
		<-time.After(time.Minute)
	})
}

// A key's concurrency is that of its sequences: a hundred in one request are a hundred.
func TestSequencesCountForTheConcurrencyOfAKey(t *testing.T) {
	const served, busy, never = "", "come back", "no time helps"
	for name, c := range map[string]struct{ path, body, want string }{
		"one":             {chat, `{"model":"chat","stream":true,"n":1,"messages":[]}`, served},
		"as many":         {chat, `{"model":"chat","stream":true,"n":3,"messages":[]}`, served},
		"too many now":    {chat, `{"model":"chat","stream":true,"n":4,"messages":[]}`, busy},
		"never":           {chat, `{"model":"chat","stream":true,"n":128,"messages":[]}`, never},
		"best_of":         {"/v1/completions", `{"model":"chat","stream":true,"best_of":5,"prompt":"a"}`, never},
		"prompts":         {"/v1/completions", `{"model":"chat","stream":true,"prompt":["a","b","c","d"]}`, busy},
		"nothing decodes": {"/v1/embeddings", `{"model":"chat","n":128,"input":["a","b","c","d","e","f"]}`, served},
	} {
		bubble(t, name, func(t *testing.T) {
			conf := keyed()
			conf.Keys[0].Limits = config.KeyLimits{Concurrency: 4}
			h := open(t, conf, map[string]http.Handler{"a": &script{answer: talk(100, time.Millisecond)}})
			go h.post(chat, streamBody, "x-api-key", "sk-right")
			synctest.Wait()
			ask := func(body string) string {
				r := h.post(c.path, body, "x-api-key", "sk-right")
				switch {
				case r.status != 429:
					return served
				case r.header.Get("Retry-After") != "":
					return busy
				case r.header.Get("X-Should-Retry") == "false" && strings.Contains(string(r.body), "may have 4 at once"):
					return never
				}
				return "a refusal that says nothing"
			}
			if got := ask(c.body); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			<-time.After(time.Minute)
			if got := ask(c.body); c.want == busy && got != served {
				t.Errorf("got %q once the others had ended", got)
			}
		})
	}
}
