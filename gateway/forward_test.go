package gateway

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// Failures before the first byte: the client sees only the second backend.
func TestAFailureBeforeTheFirstByteMovesOn(t *testing.T) {
	for name, c := range map[string]struct {
		first func(http.ResponseWriter, *http.Request) // nil = nobody listens
		took  time.Duration
	}{
		"refused": {nil, 0},
		"reset":   {func(w http.ResponseWriter, _ *http.Request) { cutOff(w) }, 0},
		"502":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }, 0},
		"503": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "overloaded", http.StatusServiceUnavailable)
		}, 0},
		"504":            {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(504) }, 0},
		"loading":        {loading, 0},
		"no head":        {func(_ http.ResponseWriter, r *http.Request) { pause(r, time.Hour) }, 2 * time.Minute},
		"head, no byte":  {func(w http.ResponseWriter, r *http.Request) { eventStream(w); say(w, ""); pause(r, time.Hour) }, 2 * time.Minute},
		"head, then cut": {func(w http.ResponseWriter, _ *http.Request) { eventStream(w); say(w, ""); cutOff(w) }, 0},
		"empty answer":   {func(w http.ResponseWriter, _ *http.Request) { eventStream(w) }, 0},
		"web page":       {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>hello</html>") }, 0},
		"garbage stream": {func(w http.ResponseWriter, _ *http.Request) { eventStream(w); say(w, "data: {{{\n\n") }, 0},
		"not HTTP":       {notHTTP, 0},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere/", http.StatusTemporaryRedirect)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engines := map[string]http.Handler{}
				if c.first != nil {
					engines["a"] = &script{answer: c.first}
				}
				second := asker()
				engines["b"] = second
				h := open(t, settings("a", "b"), engines)
				start := time.Now()
				r := h.post(chat, streamBody)
				if r.status != 200 || r.err != nil || r.body != answered+doneEvent {
					t.Errorf("got %d (%v) %q, want the second backend's answer", r.status, r.err, r.body)
				}
				if got := r.header.Get("X-Pacer-Backend"); got != "b" {
					t.Errorf("x-pacer-backend %q, want b", got)
				}
				if got := time.Since(start); got < c.took || got > c.took+time.Second {
					t.Errorf("it took %v, want about %v", got, c.took)
				}
				if got := second.bodies[0]; !strings.Contains(got, "secret-prompt") {
					t.Errorf("the second backend got %q, want the whole body", got)
				}
				if line := h.last(); line.Backend != "b" || line.Outcome != outcomeOK {
					t.Errorf("log line %+v, want backend b, ok", line)
				}
			})
		})
	}
}

// Where the only other backend is full, a request that failed on the first one
// waits for its place there as one that comes a moment later does.
func TestAFailureMovesOnByWayOfTheLine(t *testing.T) {
	for name, c := range map[string]struct {
		queue, patience time.Duration // 0 = no line; how long the client stays
		status          int           // 0 = the client has left
		took            time.Duration
	}{
		"served":   {10 * time.Second, time.Hour, 200, 9 * time.Second}, // 4 s in line and 5 s of answer
		"too long": {2 * time.Second, time.Hour, 502, 2 * time.Second},
		"hangs up": {10 * time.Second, time.Second, 0, time.Second},
		"no line":  {0, time.Hour, 502, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conf := settings("a", "b") // nobody listens at a
				conf.Backends[1].MaxConcurrency = 1
				conf.Routes[0].OnInfeasible[0].Queue = c.queue
				if c.queue == 0 {
					conf.Routes[0].OnInfeasible = conf.Routes[0].OnInfeasible[1:]
				}
				h := open(t, conf, map[string]http.Handler{"b": &script{answer: talk(50, 100*time.Millisecond)}})
				first := make(chan reply, 1)
				go func() { first <- h.post(chat, streamBody) }()
				<-time.After(time.Second)
				start := time.Now()
				ctx, leave := context.WithTimeout(t.Context(), c.patience)
				defer leave()
				r := h.do(h.request(http.MethodPost, chat, streamBody).WithContext(ctx))
				if r.status != c.status || c.status == 200 && r.err != nil {
					t.Errorf("got %d (%v) %.200s, want %d", r.status, r.err, r.body, c.status)
				}
				if got := time.Since(start); got != c.took {
					t.Errorf("it took %v, want %v", got, c.took)
				}
				if r := <-first; r.err != nil || r.status != 200 {
					t.Errorf("the request that had the place: %d, %v", r.status, r.err)
				}
			})
		})
	}
}

// A backend that fails after three seconds has taken none of the two that its request may
// stand in line: not of the first time there, nor of the second.
func TestWhatFailsTakesNoTimeInLine(t *testing.T) {
	for name, c := range map[string]struct {
		busy   time.Duration // of b
		status int
		took   time.Duration
	}{
		"served":   {4 * time.Second, 200, 9 * time.Second}, // 3 s at a, 1 s in line and 5 s of answer
		"too long": {9 * time.Second, 504, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conf := settings("a", "b")
				conf.Backends[1].MaxConcurrency = 1
				conf.Routes[0].OnInfeasible[0].Queue = 2 * time.Second
				conf.Timeouts.FirstByte = 3 * time.Second
				silent := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					<-r.Context().Done()
				})
				h := open(t, conf, map[string]http.Handler{"a": silent, "b": &script{answer: talk(50, 100*time.Millisecond)}})
				d := h.router.Place(time.Now(), router.Request{Route: "chat", Stream: true, Exclude: []string{"a"}})
				time.AfterFunc(c.busy, func() { h.gateway.Deliver(d.Lease.Done(time.Now(), 0)) })
				start := time.Now()
				r := h.post(chat, streamBody)
				if r.status != c.status || c.status == 200 && r.err != nil {
					t.Errorf("got %d (%v) %.200s, want %d", r.status, r.err, r.body, c.status)
				}
				if got := time.Since(start); got != c.took {
					t.Errorf("it took %v, want %v", got, c.took)
				}
				<-time.After(c.busy)
			})
		})
	}
}

// Who failed over and waited in vain is told how it failed, and not to come back:
// nobody else is told to come back behind it.
func TestAFailureInLineIsPromisedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := settings("a", "b") // nobody listens at a
		conf.Backends[1].MaxConcurrency = 1
		conf.Routes[0].OnInfeasible[0].Queue = 2 * time.Second
		h := open(t, conf, map[string]http.Handler{"b": &script{answer: talk(200, 100*time.Millisecond)}})
		h.book.Prior(router.Target{Backend: "b", Model: "big"}, []profiles.PriorPoint{{N: 1, TPS: 60}, {N: 8, TPS: 50}}, 0)
		first := make(chan reply, 1)
		go func() { first <- h.post(chat, streamBody) }()
		<-time.After(3 * time.Second)
		told := func() time.Duration {
			now := time.Now()
			d := h.router.Place(now, router.Request{Route: "chat", Stream: true, Arrived: now, Exclude: []string{"a"}, NoQueue: true})
			if d.Refusal == nil {
				t.Fatalf("got %+v, want a refusal", d)
			}
			return d.Refusal.RetryAfter
		}
		before := told()
		for range 4 {
			if r := h.post(chat, streamBody); r.status != 502 {
				t.Errorf("got %d %.200s, want the failure of a", r.status, r.body)
			}
		}
		if after := told(); after > 2*before {
			t.Errorf("the next one is told to come back in %v, and in %v before 4 had failed over in vain", after, before)
		}
		<-first
	})
}

func notHTTP(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.2\r\n\r\n")
		_ = conn.Close()
	}
}

func loading(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(503)
	_, _ = io.WriteString(w, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`)
}

func TestWhenEveryBackendFailsTheClientIsToldHow(t *testing.T) {
	status := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(code)
		}
	}
	for name, c := range map[string]struct {
		answer     func(http.ResponseWriter, *http.Request)
		status     int
		code       string
		retryAfter string
	}{
		"refused":  {nil, 502, "upstream_failed", ""},
		"502":      {status(502), 502, "upstream_failed", "3"},
		"503":      {status(503), 503, "upstream_unavailable", "3"},
		"504":      {status(504), 504, "upstream_timeout", "3"},
		"loading":  {loading, 503, "upstream_unavailable", "6"},
		"silent":   {func(_ http.ResponseWriter, r *http.Request) { pause(r, time.Hour) }, 504, "upstream_timeout", ""},
		"web page": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, 502, "upstream_failed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conf := settings("a", "b", "c")
				engines := map[string]http.Handler{}
				var scripts []*script
				if c.answer != nil {
					for _, name := range []string{"a", "b", "c"} {
						s := &script{answer: c.answer}
						scripts, engines[name] = append(scripts, s), s
					}
				}
				h := open(t, conf, engines)
				r := h.post(chat, streamBody)
				if code := r.code(t); r.status != c.status || code != c.code || r.header.Get("Retry-After") != c.retryAfter {
					t.Errorf("got %d %s, Retry-After %q; want %d %s, %q", r.status, code, r.header.Get("Retry-After"), c.status, c.code, c.retryAfter)
				}
				if strings.Contains(r.body, "http://") || strings.Contains(r.body, "\"a\"") {
					t.Errorf("the answer names the fleet: %s", r.body)
				}
				calls := 0
				for _, s := range scripts {
					calls += s.calls()
				}
				if c.answer != nil && calls != maxSends {
					t.Errorf("%d backends were asked, want %d", calls, maxSends)
				}
				if line := h.last(); line.Outcome != outcomeUpstream || line.Status != c.status || line.Error == "" {
					t.Errorf("log line %+v, want upstream_error", line)
				}
				if s := h.metrics.Route("chat"); s.Failed != 1 {
					t.Errorf("route counts %+v, want one failed", s)
				}
			})
		})
	}
}

func TestAfterTheFirstByteNothingMovesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := asker()
		h := open(t, settings("a", "b"), map[string]http.Handler{
			"a": &script{answer: func(w http.ResponseWriter, _ *http.Request) {
				eventStream(w)
				say(w, roleOnly)
				cutOff(w)
			}},
			"b": second,
		})
		if r := h.post(chat, streamBody); r.status != 200 || !isCut(r.err) {
			t.Errorf("got %d, %v; want 200 and a broken stream", r.status, r.err)
		}
		if second.calls() != 0 {
			t.Error("a second backend was asked after the first byte")
		}
	})
}

func TestNoBackendIsNotLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings("a"), nil)
		for range 30 { // until its breaker has opened
			h.post(chat, streamBody)
		}
		r := h.post(chat, streamBody)
		if code := r.code(t); r.status != 503 || code != "no_backend" || r.header.Get("Retry-After") == "" {
			t.Errorf("got %d %s, Retry-After %q; want 503 no_backend and a time", r.status, code, r.header.Get("Retry-After"))
		}
		if r := h.do(h.request("GET", "/readyz", "")); r.status != 503 {
			t.Errorf("GET /readyz: %d, want 503", r.status)
		}
	})
}
