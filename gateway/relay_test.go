package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
)

// answering streams two tokens, with usage only for those who ask, as engines
// do.
func answering(w http.ResponseWriter, body string) {
	eventStream(w)
	w.Header().Set("X-Engine", "yes")
	w.Header().Set("Connection", "X-Hop")
	w.Header().Set("X-Hop", "1")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("X-Request-Id", "of-the-engine")
	say(w, ": comment\n\n"+roleOnly)
	say(w, delta[:20])
	say(w, delta[20:]+delta)
	say(w, lastDelta)
	if strings.Contains(body, `"include_usage":true`) {
		say(w, usageEvent(7, 2)[:30])
		say(w, usageEvent(7, 2)[30:])
	}
	say(w, doneEvent)
}

const answered = ": comment\n\n" + roleOnly + delta + delta + lastDelta

// asker answers by the body that it was sent.
func asker() *script {
	s := &script{}
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		body := s.bodies[len(s.bodies)-1]
		s.mu.Unlock()
		answering(w, body)
	}
	return s
}

func TestUsageIsAskedForAndTakenOutAgain(t *testing.T) {
	for name, c := range map[string]struct {
		usage      string // of the backend
		body, sent string
		want       string
		tokens     float64
		source     string
	}{
		"client did not ask": {
			"inject", `{"model": "chat", "stream":true, "seed":9007199254740993, "x":[1.0, "\u00e9<>"]}`,
			`{"stream_options":{"include_usage":true},"model": "big", "stream":true, "seed":9007199254740993, "x":[1.0, "\u00e9<>"]}`,
			answered + doneEvent, 2, "usage",
		},
		"client asked": {
			"inject", `{"model":"chat","stream":true,"stream_options":{"include_usage":true}}`,
			`{"model":"big","stream":true,"stream_options":{"include_usage":true}}`,
			answered + usageEvent(7, 2) + doneEvent, 2, "usage",
		},
		"client said no": {
			"inject", `{"model":"chat","stream":true,"stream_options":{"include_usage":false,"other":1}}`,
			`{"model":"big","stream":true,"stream_options":{"include_usage":true,"other":1}}`,
			answered + doneEvent, 2, "usage",
		},
		"backend must not be asked": {
			"never", `{"model":"chat","stream":true}`, `{"model":"big","stream":true}`, answered + doneEvent, 3, "estimate",
		},
	} {
		bubble(t, name, func(t *testing.T) {
			conf := settings("a")
			conf.Backends[0].Usage = c.usage
			engine := asker()
			h := open(t, conf, map[string]http.Handler{"a": engine})
			r := h.post(chat, c.body)
			if r.err != nil || r.body != c.want {
				t.Errorf("the client got (%v)\n%s\nwant\n%s", r.err, r.body, c.want)
			}
			if got := engine.bodies[0]; !sameMembers(got, c.sent) {
				t.Errorf("the backend got\n%s\nwant\n%s", got, c.sent)
			}
			line := h.last()
			if line.Tokens != c.tokens || c.source != "" && line.Source != c.source || line.Outcome != outcomeOK {
				t.Errorf("log line: %v tokens by %s, %s; want %v by %s, ok", line.Tokens, line.Source, line.Outcome, c.tokens, c.source)
			}
		})
	}
}

// sameMembers compares two bodies byte for byte, wherever the injected member
// stands in the first.
func sameMembers(got, want string) bool {
	const member = `"stream_options":{"include_usage":true}`
	strip := func(s string) string {
		s = strings.Replace(s, member+",", "", 1)
		return strings.Replace(s, ","+member, "", 1)
	}
	return strings.Contains(got, member) == strings.Contains(want, member) && strip(got) == strip(want)
}

func TestHeadersOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := asker()
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		r := h.post(chat, streamBody, "Authorization", "Bearer of-the-client", "X-Pacer-Min-Tps", "5", "X-Custom", "kept", "X-Request-Id", "mine")
		for name, want := range map[string]string{
			"Content-Type": "text/event-stream; charset=utf-8", "X-Engine": "yes", "X-Hop": "", "X-Request-Id": "mine",
			"Cache-Control": "no-cache", "X-Accel-Buffering": "no", "Access-Control-Allow-Origin": "",
			"X-Pacer-Backend": "a", "X-Pacer-Predicted-Tps": "", "X-Pacer-Decision": "policy=order; n=0; m=0; floor=5; by=slow_start",
		} {
			if got := r.header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		up := engine.heads[0]
		if up.Get("Authorization") != "" || up.Get("X-Pacer-Min-Tps") != "" || up.Get("X-Custom") != "kept" || up.Get("X-Request-Id") != "mine" {
			t.Errorf("the backend got %v", up)
		}
	})
}

func TestDecisionsAreHiddenFromKeys(t *testing.T) {
	for _, expose := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := keyed()
			c.ExposeDecision = expose
			h := open(t, c, map[string]http.Handler{"a": asker()})
			r := h.post(chat, streamBody, "x-api-key", "sk-right")
			if shown := r.header.Get("X-Pacer-Backend") != "" && r.header.Get("X-Pacer-Decision") != ""; shown != expose {
				t.Errorf("expose_decision %v: headers %v", expose, r.header)
			}
		})
	}
}

func TestADocumentIsPassedOn(t *testing.T) {
	const document = "\n\n" + `{"id":"c1","choices":[{"message":{"role":"assistant","content":"hello"}}],"usage":{"prompt_tokens":4,"completion_tokens":9,"total_tokens":13}}`
	for name, body := range map[string]string{
		"not asked to stream": `{"model":"chat"}`,
		"asked to stream":     streamBody,
	} {
		bubble(t, name, func(t *testing.T) {
			h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Length", fmt.Sprint(len(document)))
				pause(r, time.Second)
				_, _ = io.WriteString(w, document)
			}}})
			r := h.post(chat, body)
			if r.status != 200 || r.body != document || r.header.Get("Content-Length") != fmt.Sprint(len(document)) {
				t.Errorf("got %d %q with length %s", r.status, r.body, r.header.Get("Content-Length"))
			}
			if line := h.last(); line.Tokens != 9 || line.Source != "usage" || line.Outcome != outcomeOK || line.TPS != 0 {
				t.Errorf("log line %+v, want 9 tokens by usage, and no speed", line)
			}
			if s := h.metrics.Route("chat"); s.Unmeasured != 1 || s.Offered != 1 {
				t.Errorf("route counts %+v, want one unmeasured", s)
			}
		})
	}
}

// A backend with a wrong key refuses everything at once and is always empty:
// it must not draw every request while another serves.
func TestABackendThatRefusesEverythingIsNoBlackHole(t *testing.T) {
	for _, status := range []int{401, 403, 404, 429, 500} {
		synctest.Test(t, func(t *testing.T) {
			h := open(t, settings("a", "b"), map[string]http.Handler{"a": &script{answer: states(status, `{"error":{"message":"no"}}`)}, "b": &script{answer: talk(10, 10*time.Millisecond)}})
			refused := 0
			for range 40 {
				if h.post(chat, streamBody).status == status {
					refused++
				}
			}
			if refused > 8 {
				t.Errorf("%d of 40 requests were refused with %d by the backend that refuses everything, want 8 at most", refused, status)
			}
		})
	}
}

// On a route that sends the client's own model name up, a 404 is about that
// name: it belongs to no SLO and says nothing against the backend.
func TestATypoOnTheCatchAllIsTheClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		c.Routes[0].Models, c.Routes[0].Targets[0].Model = []string{"*"}, ""
		h := open(t, c, map[string]http.Handler{"a": &script{answer: states(http.StatusNotFound, `{"error":{"message":"no such model"}}`)}})
		if r := h.post(chat, streamBody); r.status != 404 {
			t.Fatalf("got %d, want the backend's 404", r.status)
		}
		if line := h.last(); line.Outcome != outcomeRejected {
			t.Errorf("outcome %s, want %s", line.Outcome, outcomeRejected)
		}
		if s := h.metrics.Route("*"); s.Offered != 0 || s.Failed != 0 {
			t.Errorf("route counts %+v, want nothing offered", s)
		}
	})
}

func TestErrorsOfTheBackendArePassedOn(t *testing.T) {
	const body = `{"error":{"message":"too long","type":"BadRequestError","param":null,"code":400}}`
	for status, want := range map[int]string{400: outcomeRejected, 422: outcomeRejected} {
		synctest.Test(t, func(t *testing.T) {
			second := &script{answer: talk(1, time.Millisecond)}
			h := open(t, settings("a", "b"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			}}, "b": second})
			for range 20 { // no number of them takes the backend out of service
				<-time.After(10 * time.Second) // else the router tries the other first
				r := h.post(chat, streamBody)
				if r.status != status || r.body != body || r.header.Get("Retry-After") != "7" {
					t.Fatalf("status %d came down as %d %q, Retry-After %q", status, r.status, r.body, r.header.Get("Retry-After"))
				}
			}
			if second.calls() != 0 {
				t.Errorf("status %d moved on to another backend", status)
			}
			if line := h.last(); line.Outcome != want || line.Status != status {
				t.Errorf("status %d: outcome %s of status %d, want %s", status, line.Outcome, line.Status, want)
			}
		})
	}
}

// What comes in one write arrives at once: nothing waits for more.
func TestEveryTokenIsFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: talk(20, 50*time.Millisecond)}})
		start := time.Now()
		resp := must.Get(h.client.Do(h.request("POST", chat, streamBody)))(t)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		for i := 0; lines.Scan(); {
			if !strings.Contains(lines.Text(), `"content":"word "`) {
				continue
			}
			i++
			if got, want := time.Since(start), time.Duration(i)*50*time.Millisecond; got != want {
				t.Fatalf("token %d came after %v, want %v", i, got, want)
			}
		}
		if line := h.last(); line.TTFTms != 50 || line.TPS != 20 {
			t.Errorf("log line says ttft %v ms and %v tokens/s, want 50 and 20", line.TTFTms, line.TPS)
		}
	})
}

func TestTheFloorIsJudged(t *testing.T) {
	for name, c := range map[string]struct {
		floor    string
		gap      time.Duration
		met      uint64
		missed   uint64
		deadline string
	}{
		"kept":                 {"20", 50 * time.Millisecond, 1, 0, "10000"},
		"within grace":         {"21", 50 * time.Millisecond, 1, 0, "10000"},
		"missed":               {"25", 80 * time.Millisecond, 0, 1, "10000"},
		"first token too late": {"0", 50 * time.Millisecond, 0, 1, "49"},
		"no floor":             {"0", 80 * time.Millisecond, 1, 0, "81"},
	} {
		bubble(t, name, func(t *testing.T) {
			h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: talk(101, c.gap)}})
			r := h.post(chat, streamBody, "x-pacer-min-tps", c.floor, "x-pacer-max-ttft-ms", c.deadline)
			if r.status != 200 || r.err != nil {
				t.Fatalf("%d %v %s", r.status, r.err, r.body)
			}
			h.idle()
			if s := h.metrics.Route("chat"); s.Met != c.met || s.Missed != c.missed {
				t.Errorf("met %d, missed %d; want %d, %d", s.Met, s.Missed, c.met, c.missed)
			}
		})
	}
}

func TestTheLogHoldsNoTextAndNoKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := keyed()
		c.Backends[0].APIKey = config.Secret("sk-of-the-backend")
		h := open(t, c, map[string]http.Handler{"a": asker()})
		h.post(chat, streamBody, "x-api-key", "sk-right")
		h.idle()
		for _, secret := range []string{"secret-prompt", "sk-right", "sk-of-the-backend", "word"} {
			if strings.Contains(h.log.String(), secret) {
				t.Errorf("the log holds %q", secret)
			}
		}
		if n := len(h.log.requests()); n != 1 {
			t.Errorf("%d access-log lines for one request, want 1", n)
		}
	})
}

// panicker is a client whose connection makes the server panic.
type panicker struct{ http.ResponseWriter }

func (panicker) WriteHeader(int) { panic("boom") }

func TestAPanicInAStepGivesEverythingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := asker()
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		func() {
			defer func() {
				if p := recover(); p != nil && p != "boom" && p != http.ErrAbortHandler {
					panic(p)
				}
			}()
			w := panicker{&discardWriter{header: http.Header{}}}
			req := h.request("POST", chat, streamBody)
			h.gateway.Handler().ServeHTTP(w, req)
		}()
		h.idle()
		if !strings.Contains(h.log.String(), "boom") || !strings.Contains(h.log.String(), "stack") {
			t.Error("the panic is not in the log")
		}
		if got := engine.calls(); got != 1 {
			t.Fatalf("the backend was called %d times, want 1: the panic came too early", got)
		}
		if r := h.post(chat, streamBody); r.status != 200 {
			t.Errorf("the next request: %d, want 200", r.status)
		}
	})
}

// discardWriter is a client that takes everything at once.
type discardWriter struct {
	header http.Header
	bytes  int64
}

func (d *discardWriter) Header() http.Header         { return d.header }
func (d *discardWriter) WriteHeader(int)             {}
func (d *discardWriter) Flush()                      {}
func (d *discardWriter) Write(p []byte) (int, error) { d.bytes += int64(len(p)); return len(p), nil }
