package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// refusing is a server that answers 400 to a body which has one of words, and
// else streams; say is what its 400 says.
func refusing(say func(word string, body string) string, words ...string) *script {
	s := &script{}
	s.answer = func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		body := s.bodies[len(s.bodies)-1]
		s.mu.Unlock()
		for _, word := range words {
			if strings.Contains(body, word) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, say(word, body))
				return
			}
		}
		talk(3, 20*time.Millisecond)(w, r)
	}
	return s
}

func unknownField(word, _ string) string {
	return fmt.Sprintf(`{"error":{"message":"Unknown parameter: '%s'.","type":"invalid_request_error","param":"%s","code":null}}`, word, word)
}

// A server that does not know what Pacer adds to a request is sent it without,
// at once and for some minutes.
func TestABackendThatRefusesToBeAskedForUsage(t *testing.T) {
	for name, c := range map[string]struct {
		usage   string
		words   []string
		first   int    // sends of the first request
		up      string // what every other one has
		instead string // what the log says is to be configured
	}{
		"old":                       {"inject", []string{"stream_options"}, 2, "", "usage: never"},
		"old, asked for more":       {"continuous", []string{"stream_options"}, 3, "", "usage: never"},
		"without continuous usage":  {"continuous", []string{"continuous_usage_stats"}, 2, `"stream_options":{"include_usage":true}`, "usage: inject"},
		"knows include_usage alone": {"continuous", []string{"continuous_usage_stats", "x"}, 2, `"stream_options":{"include_usage":true}`, "usage: inject"},
	} {
		bubble(t, name, func(t *testing.T) {
			conf := settings("a")
			conf.Backends[0].Usage, conf.Backends[0].Kind = c.usage, "vllm"
			engine := refusing(unknownField, c.words...)
			h := open(t, conf, map[string]http.Handler{"a": engine})
			body := `{"model":"chat","stream":true,"messages":[]}`
			for i := range 5 {
				if r := h.post(chat, body); r.status != 200 || r.err != nil {
					t.Fatalf("request %d: got %d %s (%v)", i, r.status, r.body, r.err)
				}
			}
			if got, want := engine.calls(), c.first+4; got != want {
				t.Errorf("5 requests went up %d times, want %d", got, want)
			}
			for _, up := range engine.bodies[c.first-1:] {
				if has := strings.Contains(up, "stream_options"); has != (c.up != "") || !strings.Contains(up, c.up) || strings.Contains(up, "continuous") {
					t.Errorf("the backend got %s, want %q in it", up, c.up)
				}
			}
			if line := h.last(); line.Outcome != outcomeOK || line.Attempts != 1 || line.Tokens != 3 {
				t.Errorf("log line %+v, want ok, 3 tokens, at the first attempt", line)
			}
			if n := strings.Count(h.log.String(), c.instead); n != 1 {
				t.Errorf("the log says %d times what to configure, want once: %s", n, h.log)
			}
			calls := engine.calls()
			<-time.After(11 * time.Minute)
			if r := h.post(chat, body); r.status != 200 || engine.calls() != calls+c.first {
				t.Errorf("some minutes later: %d after %d sends, want 200 after %d", r.status, engine.calls()-calls, c.first)
			}
		})
	}
}

// What the client asked for itself is its own affair, and so is a mistake in its
// request, though the answer repeats what Pacer added.
func TestA400ThatIsTheClientsOwn(t *testing.T) {
	echo := func(_, body string) string {
		return fmt.Sprintf(`{"detail":[{"type":"missing","loc":["body","messages"],"input":%s}]}`, body)
	}
	for name, c := range map[string]struct {
		engine *script
		body   string
		calls  int
	}{
		"asked":       {refusing(unknownField, "stream_options"), `{"model":"chat","stream":true,"stream_options":{"include_usage":true}}`, 1},
		"not asked":   {refusing(unknownField, `"n"`), `{"model":"chat","stream":true,"n":7}`, 1},
		"an echo":     {refusing(echo, "chat", "big"), `{"model":"chat","stream":true}`, 2},
		"no stream":   {refusing(unknownField, "big"), `{"model":"chat","metadata":"stream_options"}`, 1},
		"its own 400": {refusing(unknownField, "mistake"), `{"model":"chat","stream":true,"x":"mistake"}`, 1},
	} {
		bubble(t, name, func(t *testing.T) {
			h := open(t, settings("a"), map[string]http.Handler{"a": c.engine})
			for range 3 {
				before := c.engine.calls()
				r := h.post(chat, c.body)
				if r.status != 400 || c.engine.calls()-before != c.calls {
					t.Errorf("got %d after %d sends, want 400 after %d", r.status, c.engine.calls()-before, c.calls)
				}
				if strings.Contains(r.body, "include_usage") && name != "asked" {
					t.Errorf("the client is told of what it did not send: %s", r.body)
				}
			}
			if line := h.last(); line.Outcome != outcomeRejected {
				t.Errorf("log line %+v, want rejected", line)
			}
			if strings.Contains(h.log.String(), "configure usage") {
				t.Errorf("something was learned: %s", h.log)
			}
		})
	}
}

// Without a usage the client that asked for none sees the stream as it is.
func TestAStreamThatWasNotAskedForItsUsageIsUntouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1}}` + "\n\n" // told unasked
		inner := refusing(unknownField, "stream_options")
		talks := inner.answer
		inner.answer = func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(inner.bodies[len(inner.bodies)-1], "stream_options") {
				eventStream(w)
				say(w, delta+own+doneEvent)
				return
			}
			talks(w, r)
		}
		h := open(t, settings("a"), map[string]http.Handler{"a": inner})
		for range 2 {
			if r := h.post(chat, streamBody); r.body != delta+own+doneEvent {
				t.Errorf("got %q, want all of it", r.body)
			}
		}
	})
}
