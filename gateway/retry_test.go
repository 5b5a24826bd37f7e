package gateway

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/router"
)

// tooMany answers 429 as OpenAI does.
func tooMany(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Retry-After", "7")
	h.Set("Retry-After-Ms", "6500")
	h.Set("X-Should-Retry", "true")
	h.Set("X-Ratelimit-Remaining-Tokens", "0")
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = io.WriteString(w, tooManyBody)
}

const tooManyBody = `{"error":{"message":"slow down","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`

func TestABusyBackendMovesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings("a", "b"), map[string]http.Handler{"a": &script{answer: tooMany}, "b": asker()})
		r := h.post(chat, streamBody)
		if r.status != 200 || r.body != answered+doneEvent || r.header.Get("X-Pacer-Backend") != "b" {
			t.Errorf("got %d from %q, want the second backend's answer", r.status, r.header.Get("X-Pacer-Backend"))
		}
		if got := r.header.Get("Retry-After"); got != "" {
			t.Errorf("the 429's Retry-After %q came with the answer", got)
		}
		if line := h.last(); line.Outcome != outcomeOK || line.Backend != "b" || line.Attempts != 2 {
			t.Errorf("log line %+v, want ok by b at the second attempt", line)
		}
	})
}

const brokenBody = `{"error":{"message":"CUDA error: an illegal memory access was encountered","type":"InternalServerError","code":500}}`

func breaks(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = io.WriteString(w, brokenBody)
}

// A 500 may be the client's doing (llama.cpp) or the end of an engine (vLLM).
// Another backend shows which: where it answers, so does Pacer, and the first
// one's breaker opens after five; where it fails as well, the client hears what
// was said, and nobody is blamed.
func TestWhoseFaultA500Is(t *testing.T) {
	for name, c := range map[string]struct {
		b      func(http.ResponseWriter, *http.Request)
		status int
		body   string
		blamed bool
	}{
		"the backend's":                     {talk(1, time.Millisecond), 200, "", true},
		"the client's":                      {breaks, 500, brokenBody, false},
		"the client's, as another one says": {states(400, `{"error":{}}`), 400, `{"error":{}}`, false},
	} {
		bubble(t, name, func(t *testing.T) {
			a := &script{answer: breaks}
			h := open(t, settings("a", "b"), map[string]http.Handler{"a": a, "b": &script{answer: c.b}})
			for range 5 {
				<-time.After(10 * time.Second) // else the router tries the other first
				r := h.post(chat, streamBody)
				if r.status != c.status || c.body != "" && r.body != c.body {
					t.Errorf("got %d %s, want %d %s", r.status, r.body, c.status, c.body)
				}
			}
			synctest.Wait()
			if a.calls() != 5 {
				t.Errorf("the broken backend was asked %d times, want 5", a.calls())
			}
			if down := h.router.Loads()[0].Health == router.Down; down != c.blamed {
				t.Errorf("out of service after five: %v, want %v", down, c.blamed)
			}
		})
	}
}

// A backend dies with 60 requests that have no byte yet, on a gateway whose
// retry budget is at its floor: they are not load on top, and all of them move.
func TestAllThatADyingBackendHadMoveOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dies := make(chan struct{})
		h := open(t, settings("a", "b"), map[string]http.Handler{
			"a": &script{answer: func(w http.ResponseWriter, _ *http.Request) { <-dies; cutOff(w) }},
			"b": &script{answer: talk(3, time.Millisecond)},
		})
		var clients sync.WaitGroup
		for range 60 {
			clients.Go(func() {
				if r := h.post(chat, streamBody); r.status != 200 || r.err != nil || r.header.Get("X-Pacer-Backend") != "b" {
					t.Errorf("%d from %q (%v), want the other backend's answer", r.status, r.header.Get("X-Pacer-Backend"), r.err)
				}
			})
		}
		<-time.After(time.Second)
		close(dies)
		clients.Wait()
	})
}

// That this machine has no descriptor left is not the backend's fault.
func TestNoDescriptorLeftIsNoVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openWith(t, settings("a"), nil, houseOptions{dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)}
		}})
		t.Cleanup(h.idle)
		for range 10 {
			if r := h.post(chat, streamBody); r.status != 503 || r.code(t) != "gateway_overloaded" {
				t.Errorf("got %d %s, want 503 gateway_overloaded", r.status, r.body)
			}
		}
		synctest.Wait()
		if health := h.router.Loads()[0].Health; health != router.Up {
			t.Errorf("the backend is %v, want up", health)
		}
	})
}

// Whatever else was tried, a 429 tells the client more than a 502.
func TestWhenNobodyTakesTheRequestTheBusyOneIsHeard(t *testing.T) {
	dead := func(w http.ResponseWriter, _ *http.Request) { cutOff(w) }
	for name, c := range map[string]struct {
		a, b func(http.ResponseWriter, *http.Request)
	}{
		"both busy":       {tooMany, tooMany},
		"busy, then dead": {tooMany, dead},
		"dead, then busy": {dead, tooMany},
	} {
		bubble(t, name, func(t *testing.T) {
			h := open(t, settings("a", "b"), map[string]http.Handler{"a": &script{answer: c.a}, "b": &script{answer: c.b}})
			r := h.post(chat, streamBody)
			if r.status != 429 || r.body != tooManyBody {
				t.Errorf("got %d %q, want the backend's own 429", r.status, r.body)
			}
			for name, want := range map[string]string{
				"Retry-After": "7", "Retry-After-Ms": "6500", "X-Should-Retry": "true", "X-Ratelimit-Remaining-Tokens": "0",
			} {
				if got := r.header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if line := h.last(); line.Outcome != outcomeUpstream || line.Status != 429 || line.Attempts != 2 {
				t.Errorf("log line %+v, want upstream_error with 429 after 2 attempts", line)
			}
			if s := h.metrics.Route("chat"); s.Failed != 1 {
				t.Errorf("route counts %+v, want one failed", s)
			}
		})
	}
}

// said answers so, and says when to come back unless retry is "".
func said(status int, retry string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if retry != "" {
			w.Header().Set("Retry-After", retry)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, tooManyBody)
	}
}

// A client that finds all APIs full reads when to come back. That is so, too, where the last
// one is not asked, since the request was sent often enough or no retry is left.
func TestWhoFindsAllAPIsFullIsToldWhenToComeBack(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		apis   []string
		spent  bool // no retry is left
		asked  int
	}{
		"as often as it may be":       {429, []string{"a", "b", "c"}, false, 3},
		"more often than it may be":   {529, []string{"a", "b", "c", "d"}, false, 3},
		"no retry is left":            {429, []string{"a", "b"}, true, 2},
		"no retry, and one API":       {429, []string{"a"}, true, 1},
		"503, as often as it may be":  {503, []string{"a", "b", "c"}, false, 3},
		"no retry is left with a 503": {503, []string{"a", "b"}, true, 1},
	} {
		for _, body := range []string{streamBody, strings.Replace(streamBody, `"stream":true`, `"stream":false`, 1)} {
			bubble(t, name, func(t *testing.T) {
				apis, handlers := map[string]*script{}, map[string]http.Handler{}
				for _, api := range c.apis {
					apis[api] = &script{answer: said(c.status, "")}
					handlers[api] = apis[api]
				}
				h := open(t, settings(c.apis...), handlers)
				for c.spent && h.gateway.retries.take(time.Now()) {
				}
				r := h.post(chat, body)
				if seconds, _ := strconv.Atoi(r.header.Get("Retry-After")); r.status != c.status || seconds < 1 || seconds > 60 {
					t.Errorf("got %d with Retry-After %q, want %d with 1 to 60 s", r.status, r.header.Get("Retry-After"), c.status)
				}
				asked := 0
				for _, api := range apis {
					asked += api.calls()
				}
				if asked != c.asked {
					t.Errorf("%d were asked, want %d", asked, c.asked)
				}
			})
		}
	}
}

// Who finds a hosted API full waits for a place of the other engine, as long as its route
// has it so. Then it reads when to come back, whether the API said so or not.
func TestWhoFindsAnAPIFullIsToldWhenToComeBack(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		retry  string // that it says
		queue  time.Duration
		want   int
	}{
		"429":                      {429, "", 2 * time.Second, 429},
		"529":                      {529, "", 2 * time.Second, 529},
		"429 that says when":       {429, "17", 2 * time.Second, 429},
		"500":                      {500, "", 2 * time.Second, 500},
		"429, and a place is free": {429, "", 20 * time.Second, 200},
		"529, and a place is free": {529, "", 20 * time.Second, 200},
	} {
		bubble(t, name, func(t *testing.T) {
			conf := settings("api", "gpu")
			conf.Backends[1].MaxConcurrency = 1
			conf.Routes[0].OnInfeasible[0].Queue = c.queue
			other := conf.Routes[0]
			other.Models, other.Targets = []string{"other"}, other.Targets[1:]
			conf.Routes = append(conf.Routes, other)
			s := &stage{house: open(t, conf, map[string]http.Handler{"api": &script{answer: said(c.status, c.retry)}, "gpu": engine(t)})}
			for range 30 { // the retries that 529s cost are paid for
				s.gateway.retries.earn()
			}
			before := s.send(strings.Replace(otherStream, "1400", "500", 1)) // 10 s
			<-time.After(100 * time.Millisecond)
			r, took := s.send(shortStream).end()
			retry := r.header.Get("Retry-After")
			seconds, _ := strconv.Atoi(retry)
			switch {
			case r.status != c.want || c.want != 200 && (took-c.queue).Abs() > 100*time.Millisecond:
				t.Errorf("got %d after %v, want %d after %v", r.status, took, c.want, c.queue)
			case c.retry != "" && retry != c.retry, c.retry == "" && c.want != 200 && (seconds >= 1 && seconds <= 60) != (c.status != 500):
				t.Errorf("%d with Retry-After %q", r.status, retry)
			}
			before.end()
		})
	}
}

// What a busy backend said is as good a minute later, when the others have let
// their time pass: neither the client's time to take it nor the backend's to go
// on with it has begun before.
func TestTheBusyOneIsHeardHoweverLate(t *testing.T) {
	for name, body := range map[string]string{
		"short": tooManyBody, "long": `{"error":{"message":"` + strings.Repeat("slow down ", 20_000) + `"}}`,
	} {
		bubble(t, name, func(t *testing.T) {
			busy := &script{answer: states(http.StatusTooManyRequests, body)}
			hangs := &script{answer: func(_ http.ResponseWriter, r *http.Request) { pause(r, time.Hour) }}
			h := open(t, settings("a", "b"), map[string]http.Handler{"a": busy, "b": hangs})
			if r := h.post(chat, streamBody); r.status != 429 || r.err != nil || r.body != body {
				t.Errorf("got %d %.100q (%v), want the whole 429", r.status, r.body, r.err)
			}
		})
	}
}

// fullQueue answers 503 as SGLang does when its queue is full.
func fullQueue(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Retry-After", "3")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, fullQueueBody)
}

const fullQueueBody = `{"error":{"message":"The request queue is full.","type":"ServiceUnavailable","param":null,"code":503}}`

// An engine whose queue is full is no more at fault than one that says 429: the
// request moves on, its breaker stays closed, and nobody is told of a model
// that is loading.
func TestAFullQueueIsBusyLikeA429(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings("a", "b"), map[string]http.Handler{"a": &script{answer: fullQueue}, "b": asker()})
		if r := h.post(chat, streamBody); r.status != 200 || r.header.Get("X-Pacer-Backend") != "b" {
			t.Errorf("got %d from %q, want the second backend's answer", r.status, r.header.Get("X-Pacer-Backend"))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: fullQueue}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		const requests = 30
		for range requests {
			r := h.post(chat, streamBody)
			if r.status != 503 || r.body != fullQueueBody || r.header.Get("Retry-After") != "3" {
				t.Fatalf("got %d, Retry-After %q, %q; want the backend's own 503", r.status, r.header.Get("Retry-After"), r.body)
			}
		}
		if got := engine.calls(); got != requests {
			t.Errorf("the backend was asked %d times in %d requests: its breaker opened", got, requests)
		}
		if line := h.last(); line.Outcome != outcomeUpstream || line.Status != 503 {
			t.Errorf("log line %+v, want upstream_error with 503", line)
		}
	})
}

// The 429 that was set aside is passed on whole, however long the others took.
func TestABusyAnswerKeepsWhileOthersAreAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a", "b")
		c.Timeouts.FirstByte = 10 * time.Second
		long := `{"error":{"message":"` + strings.Repeat("slow down ", 10_000) + `"}}` // more than is looked at
		h := open(t, c, map[string]http.Handler{
			"a": &script{answer: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, long)
			}},
			"b": &script{answer: func(_ http.ResponseWriter, r *http.Request) { pause(r, time.Hour) }},
		})
		if r := h.post(chat, streamBody); r.status != 429 || r.body != long || r.err != nil {
			t.Errorf("got %d, %d bytes (%v), want the whole 429, %d bytes", r.status, len(r.body), r.err, len(long))
		}
	})
}

func TestWhatABackendSaysOfTryingAgainIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "Wed, 21 Oct 2026 07:28:00 GMT")
			w.Header().Set("Retry-After-Ms", "1500")
			w.Header().Set("X-Should-Retry", "false")
			w.WriteHeader(503)
		}}})
		r := h.post(chat, streamBody)
		if code := r.code(t); r.status != 503 || code != "upstream_unavailable" {
			t.Errorf("got %d %s", r.status, code)
		}
		if a, b, c := r.header.Get("Retry-After"), r.header.Get("Retry-After-Ms"), r.header.Get("X-Should-Retry"); a != "Wed, 21 Oct 2026 07:28:00 GMT" || b != "1500" || c != "false" {
			t.Errorf("Retry-After %q, Retry-After-Ms %q, X-Should-Retry %q: not what the backend said", a, b, c)
		}
	})
}

// A fleet that is busy gets at most a tenth on top of what clients send.
func TestRetriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a", "b")
		engines := map[string]http.Handler{}
		var all []*script
		for _, name := range []string{"a", "b"} {
			s := &script{answer: tooMany}
			all, engines[name] = append(all, s), s
		}
		h := open(t, c, engines)
		const requests = 500
		for range requests {
			if r := h.post(chat, streamBody); r.status != 429 {
				t.Fatalf("got %d, want 429", r.status)
			}
		}
		sent := all[0].calls() + all[1].calls()
		if most := requests + requests/10 + retryFloor; sent > most || sent < requests+requests/20 {
			t.Errorf("%d requests went up %d times, want %d to %d", requests, sent, requests+requests/20, most)
		}
	})
}

func TestTheRetryBudget(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	takes := func(b *retryBudget, at time.Time) (n int) {
		for b.take(at) {
			n++
		}
		return n
	}
	var b retryBudget
	if got := takes(&b, now); got != retryFloor {
		t.Errorf("%d sends at the start, want %d", got, retryFloor)
	}
	if got := takes(&b, now.Add(3*time.Second)); got != 3*retryRefill {
		t.Errorf("%d sends after 3 idle seconds, want %d", got, 3*retryRefill)
	}
	if got := takes(&b, now.Add(time.Hour)); got != retryFloor {
		t.Errorf("%d sends after an idle hour, want %d", got, retryFloor)
	}
	for range 200 {
		b.earn()
	}
	if got := takes(&b, now.Add(time.Hour)); got < 19 || got > 20 {
		t.Errorf("%d sends earned by 200 requests, want 20", got)
	}
	for range 100_000 {
		b.earn()
	}
	if got := takes(&b, now.Add(2*time.Hour)); got != retrySaved {
		t.Errorf("%d sends saved up, want %d", got, retrySaved)
	}
}

// One request costs the budget one short lock: 50 ns.
func BenchmarkRetryBudget(b *testing.B) {
	var budget retryBudget
	b.ReportAllocs()
	for b.Loop() {
		budget.earn()
	}
}

// Every status of a success is one, also those that no engine should send.
func TestStatusesOfSuccess(t *testing.T) {
	for _, status := range []int{200, 201, 202, 203, 206, 207, 299} {
		bubble(t, fmt.Sprint(status), func(t *testing.T) {
			h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
				eventStream(w)
				w.WriteHeader(status)
				say(w, delta)
				if pause(r, time.Second) {
					say(w, delta+lastDelta+usageEvent(7, 2)+doneEvent)
				}
			}}})
			start := time.Now()
			resp := must.Get(h.client.Do(h.request("POST", chat, streamBody)))(t)
			first := make([]byte, len(delta))
			if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != delta || time.Since(start) > 100*time.Millisecond {
				t.Errorf("the first token came as %q after %v (%v), want it at once", first, time.Since(start), err)
			}
			rest, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != status || string(rest) != delta+lastDelta+doneEvent || err != nil {
				t.Errorf("got %d, then %q (%v)", resp.StatusCode, rest, err)
			}
			if line := h.last(); line.Outcome != outcomeOK || line.Tokens != 2 {
				t.Errorf("log line %+v, want ok with 2 tokens", line)
			}
		})
	}
}

// A backend that fails and says how is heard in its own words when nobody else
// takes the request: SDKs and people go by them. A busy one is heard before it,
// since it says when to come back.
func TestAFailingBackendIsHeard(t *testing.T) {
	const words = `{"error":{"message":"Provider returned error","code":502,"metadata":{"provider_name":"Acme"}}}`
	failing := func(status int, kind, body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Request-Id", "req_7")
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	dead := func(w http.ResponseWriter, _ *http.Request) { cutOff(w) }
	ours := `{"error":{"message":"The backend answered 502.","type":"upstream_error","param":null,"code":"upstream_failed"}}`
	for name, c := range map[string]struct {
		a, b   func(http.ResponseWriter, *http.Request)
		status int
		body   string
	}{
		"502":                {failing(502, "application/json", words), failing(502, "application/json", words), 502, words},
		"503":                {failing(503, "application/json", words), failing(503, "application/json", words), 503, words},
		"504":                {failing(504, "application/json", words), failing(504, "application/json", words), 504, words},
		"529":                {failing(529, "application/json", words), failing(529, "application/json", words), 529, words},
		"502, then dead":     {failing(502, "application/json", words), dead, 502, words},
		"dead, then 502":     {dead, failing(502, "application/json", words), 502, words},
		"502, then busy":     {failing(502, "application/json", words), tooMany, 429, tooManyBody},
		"busy, then 502":     {tooMany, failing(502, "application/json", words), 429, tooManyBody},
		"a page":             {failing(502, "text/html", "<html>"), failing(502, "text/html", "<html>"), 502, ours},
		"a page with words":  {failing(502, "text/html", "<html>No"), failing(502, "text/html", "<html>No"), 502, strings.Replace(ours, "502.", "502: No", 1)},
		"the backend's key!": {failing(502, "application/json", `{"error":"sk-backend"}`), failing(502, "application/json", `{"error":"sk-backend"}`), 502, strings.Replace(ours, "502.", "502: **********", 1)},
	} {
		bubble(t, name, func(t *testing.T) {
			conf := settings("a", "b")
			conf.Backends[0].APIKey, conf.Backends[1].APIKey = "sk-backend", "sk-backend"
			h := open(t, conf, map[string]http.Handler{"a": &script{answer: c.a}, "b": &script{answer: c.b}})
			r := h.post(chat, streamBody)
			if r.status != c.status || r.body != c.body || r.header.Get("Retry-After") != "7" {
				t.Errorf("got %d %q, Retry-After %q; want %d %q", r.status, r.body, r.header.Get("Retry-After"), c.status, c.body)
			}
			if id := r.header.Get("Request-Id"); r.body == words && id != "req_7" {
				t.Errorf("request-id %q, want the backend's", id)
			}
			if line := h.last(); line.Outcome != outcomeUpstream || line.Status != c.status || line.Attempts != 2 {
				t.Errorf("log line %+v, want upstream_error with %d after 2 attempts", line, c.status)
			}
			if s := h.metrics.Route("chat"); s.Failed != 1 {
				t.Errorf("route counts %+v, want one failed", s)
			}
		})
	}
}
