package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// states answers every request with status and body.
func states(status int, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

var bigAtA = router.Target{Backend: "a", Model: "big"}

// What a backend says of the gateway's key is for its owner. The client reads
// that it is not the client's, at once, and the next request tries again.
func TestTheClientReadsNothingOfTheGatewaysKey(t *testing.T) {
	for _, status := range []int{401, 402, 403, 404, 407} {
		bubble(t, fmt.Sprint(status), func(t *testing.T) {
			words := "Incorrect API key provided:\n sk-of-the-backend. " + strings.Repeat("ü", 200)
			var sick atomic.Bool
			sick.Store(true)
			engine := &script{answer: func(w http.ResponseWriter, r *http.Request) {
				if sick.Load() {
					states(status, `{"error":{"message":"`+strings.ReplaceAll(words, "\n", `\n`)+`","code":"invalid_api_key"}}`)(w, r)
					return
				}
				talk(1, time.Millisecond)(w, r)
			}}
			conf := settings("a")
			conf.Backends[0].APIKey = config.Secret("sk-of-the-backend")
			h := open(t, conf, map[string]http.Handler{"a": engine})
			begun := time.Now()
			for i := range 20 {
				r := h.post(chat, streamBody)
				if r.status != 502 || strings.Contains(r.body, "ncorrect") || strings.Contains(r.body, "api_key") || !strings.Contains(r.body, fmt.Sprint(status)) {
					t.Fatalf("got %d %s, want a 502 that says %d and not why", r.status, r.body, status)
				}
				if engine.calls() != i+1 {
					t.Fatalf("%d requests came to the only backend after %d, want all", engine.calls(), i+1)
				}
			}
			if took := time.Since(begun); took > time.Second {
				t.Errorf("20 answers took %v, want them at once", took)
			}
			line := h.last()
			if line.Outcome != outcomeUpstream || !strings.Contains(line.Error, fmt.Sprintf("%d Incorrect API key provided: ", status)) || strings.Contains(h.log.String(), "of-the-backend") {
				t.Errorf("log line %+v, want upstream_error with the reason, without the key", line)
			}
			if n := strings.Count(h.log.String(), "the backend refuses all requests"); n != 1 {
				t.Errorf("the log says %d times that it refuses all, want once", n)
			}
			got := h.gateway.LastErrors()[bigAtA]
			if got.Status != status || !strings.HasPrefix(got.Message, "Incorrect API key provided: ") || len(got.Message) > 200 || got.Since.Sub(begun) > time.Second || strings.Contains(got.Message, "\n") || strings.Contains(got.Message, "sk-of") {
				t.Errorf("last error %+v, want %d, one line of 200 bytes without the key, since the first", got, status)
			}
			sick.Store(false)
			if r := h.post(chat, streamBody); r.status != 200 {
				t.Errorf("mended: %d %s", r.status, r.body)
			}
			if got := h.gateway.LastErrors(); len(got) != 0 {
				t.Errorf("mended: %+v", got)
			}
			if !strings.Contains(h.log.String(), "takes requests again") {
				t.Error("the log does not say that it takes requests again")
			}
		})
	}
}

// A key that Gemini does not take is a 400: of the gateway's own key too, and so is
// none of the client's doing. Another backend may have a key that is taken.
func TestGeminisWrongKeyIsNotTheClients(t *testing.T) {
	const details = `,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]`
	for name, body := range map[string]string{
		"list":    `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"` + details + `}}]`,
		"object":  `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}`,
		"expired": `{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT"` + details + `}}`,
	} {
		bubble(t, name, func(t *testing.T) {
			a, b := &script{answer: states(400, body)}, &script{answer: talk(1, time.Millisecond)}
			conf := settings("a", "b")
			conf.Routes[0].Prefer = "order"
			h := open(t, conf, map[string]http.Handler{"a": a, "b": b})
			if r := h.post(chat, streamBody); r.status != 200 || a.calls() != 1 || b.calls() != 1 {
				t.Errorf("got %d %s after %d and %d calls, want 200 of b after one each", r.status, r.body, a.calls(), b.calls())
			}
			if got := h.gateway.LastErrors()[bigAtA]; got.Status != 400 || !strings.HasPrefix(got.Message, "API key ") {
				t.Errorf("last error %+v, want 400 and the words", got)
			}
			b.answer = states(400, body)
			if r := h.post(chat, streamBody); r.status != 502 || strings.Contains(r.body, "valid") || !strings.Contains(r.body, "credentials of this gateway (400)") {
				t.Errorf("got %d %s, want a 502 that names the credentials of this gateway", r.status, r.body)
			}
		})
	}
}

// What a client got wrong for itself passes through at once, is held against
// nobody, and feeds no alert.
func TestAClientsOwnMistakeIsTheClients(t *testing.T) {
	for name, c := range map[string]struct {
		path   string
		status int
		body   string
		model  string // "" = of the route chat
	}{
		"400":               {chat, 400, `{"error":{"message":"bad"}}`, ""},
		"413":               {chat, 413, `{"error":{"message":"large"}}`, ""},
		"422":               {chat, 422, `{"error":{"message":"what"}}`, ""},
		"404 of any model":  {chat, 404, `{"error":{"message":"The model does not exist"}}`, "theirs"},
		"404 of FastAPI":    {"/v1/rerank", 404, `{"detail":"Not Found"}`, ""},
		"404 of llama.cpp":  {"/v1/rerank", 404, `{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}`, ""},
		"404 of Go":         {"/v1/moderations", 404, `404 page not found`, ""},
		"404 without words": {"/v1/moderations", 404, ``, ""},
		"404 of OpenAI":     {"/v1/rerank", 404, `{"error":{"message":"Invalid URL (POST /v1/rerank)","type":"invalid_request_error","param":null,"code":null}}`, ""},
		"404 of others":     {"/v1/rerank", 404, `{"error":{"message":"no such thing"}}`, ""},
		"404, unsupported":  {"/v1/embeddings", 404, `{"message":"The model does not support Embeddings API"}`, ""},
		"405":               {"/v1/rerank", 405, `{"detail":"Method Not Allowed"}`, ""},
		"501":               {"/v1/embeddings", 501, `{"error":{"code":501,"message":"This server does not support embeddings","type":"not_supported_error"}}`, ""},
	} {
		bubble(t, name, func(t *testing.T) {
			conf := settings("a", "b")
			rest := conf.Routes[0]
			rest.Models, rest.Targets = []string{"*"}, []config.Target{{Backend: "a"}, {Backend: "b"}}
			conf.Routes = append(conf.Routes, rest)
			a, b := &script{answer: states(c.status, c.body)}, &script{answer: states(c.status, c.body)}
			h := open(t, conf, map[string]http.Handler{"a": a, "b": b})
			model := c.model
			if model == "" {
				model = "chat"
			}
			for range 10 {
				r := h.post(c.path, `{"model":"`+model+`","input":"x","messages":[]}`)
				if r.status != c.status {
					t.Fatalf("got %d %s, want %d", r.status, r.body, c.status)
				}
				if line := h.last(); line.Outcome != outcomeRejected || line.Attempts != 1 {
					t.Errorf("log line %+v, want rejected after one attempt", line)
				}
			}
			if s := h.metrics.Route(h.last().Route); s.Failed != 0 || s.Offered != 0 {
				t.Errorf("route counts %+v, want nothing: it is no alert", s)
			}
			if found := h.gateway.LastErrors(); len(found) != 0 {
				t.Errorf("last errors %+v, want none", found)
			}
			seen, _ := h.router.Preview(time.Now(), router.Request{Route: "chat"})
			for _, c := range seen.Candidates {
				if c.Reason != router.OK {
					t.Errorf("%s is taken out: %v", c.Target.Backend, c.Reason)
				}
			}
		})
	}
}

// fullBeside is a gateway whose backend b takes one request and has it for a
// minute.
func fullBeside(t *testing.T, a http.Handler) *house {
	conf := settings("a", "b")
	conf.Backends[1].MaxConcurrency = 1
	return open(t, conf, map[string]http.Handler{"a": a, "b": &script{answer: talk(60, time.Second)}})
}

// An engine that answers 500 to everything is out of service after five
// requests, though nobody can show whose fault it is as the other one is full.
func TestA500WhileTheOtherOneIsFull(t *testing.T) {
	for name, gap := range map[string]time.Duration{"one after the other": time.Hour, "at once": 0, "in between": 300 * time.Millisecond} {
		bubble(t, name, func(t *testing.T) {
			a := &script{answer: breaks}
			h := fullBeside(t, a)
			var all sync.WaitGroup
			defer all.Wait()
			for range 20 { // a is tried first, or b is
				if h.router.Loads()[1].M > 0 {
					break
				}
				all.Go(func() { h.post(chat, streamBody) })
				<-time.After(100 * time.Millisecond)
			}
			asked := a.calls()
			var own sync.WaitGroup
			for i := asked; i < 5; i++ {
				own.Go(func() {
					if r := h.post(chat, streamBody); r.status != 500 || r.body != brokenBody {
						t.Errorf("got %d %s, want what was said", r.status, r.body)
					}
				})
				if gap == time.Hour {
					own.Wait()
				} else {
					<-time.After(gap)
				}
			}
			own.Wait()
			synctest.Wait()
			if health := h.router.Loads()[0].Health; health != router.Down {
				t.Errorf("after 5 requests it is %v, want down; it was asked %d times", health, a.calls())
			}
		})
	}
}

// Where everybody refuses, nothing runs round the fleet.
func TestRefusalsOfAllAreBounded(t *testing.T) {
	for _, status := range []int{401, 404, 429, 500} {
		bubble(t, fmt.Sprint(status), func(t *testing.T) {
			names := []string{"a", "b", "c", "d", "e", "f"}
			engines := map[string]http.Handler{}
			var sent atomic.Int64
			for _, name := range names {
				engines[name] = &script{answer: func(w http.ResponseWriter, r *http.Request) {
					sent.Add(1)
					states(status, `{"error":{"message":"no"}}`)(w, r)
				}}
			}
			h := open(t, settings(names...), engines)
			const requests = 500
			for range requests {
				if r := h.post(chat, streamBody); r.status < 400 {
					t.Fatalf("got %d", r.status)
				}
			}
			// Five refusals of each are free, until it is known.
			if most := int64(requests + requests/10 + retryFloor + 6*5 + 6); sent.Load() > most {
				t.Errorf("%d requests went up %d times, want %d at most", requests, sent.Load(), most)
			}
		})
	}
}

// Of six members five have a wrong key: nobody is lost to them, from the first
// request on, and they are tried seldom; once mended they are back within seconds.
func TestOneGoodMemberOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"a", "b", "c", "d", "e", "good"}
		engines := map[string]http.Handler{"good": &script{answer: talk(10, 10*time.Millisecond)}}
		var asked atomic.Int64
		var mended atomic.Bool
		for _, name := range names[:5] {
			engines[name] = &script{answer: func(w http.ResponseWriter, r *http.Request) {
				if mended.Load() {
					talk(10, 10*time.Millisecond)(w, r)
					return
				}
				asked.Add(1)
				states(401, `{"error":{"message":"no"}}`)(w, r)
			}}
		}
		h := open(t, settings(names...), engines)
		for range 100 {
			if r := h.post(chat, streamBody); r.status != 200 {
				t.Fatalf("got %d %s", r.status, r.body)
			}
		}
		if most := int64(5*5 + 5*5); asked.Load() > most {
			t.Errorf("those who refuse were asked %d times in 10 s, want %d at most", asked.Load(), most)
		}
		mended.Store(true)
		begun := time.Now()
		for time.Since(begun) < 6*time.Second {
			h.post(chat, streamBody)
		}
		seen, _ := h.router.Preview(time.Now(), router.Request{Route: "chat"})
		for _, c := range seen.Candidates {
			if c.Reason != router.OK {
				t.Errorf("%s is %v 6 s after it was mended", c.Target.Backend, c.Reason)
			}
		}
	})
}

// A key that is revoked while forty users are there costs none of them an answer:
// what is refused before any work is no load on top, however many move on at once.
func TestARevokedKeyCostsNobody(t *testing.T) {
	for _, status := range []int{401, 402, 403, 404} {
		bubble(t, fmt.Sprint(status), func(t *testing.T) {
			var revoked atomic.Bool
			a := &script{answer: func(w http.ResponseWriter, r *http.Request) {
				if revoked.Load() {
					states(status, `{"error":{"message":"no model for this key"}}`)(w, r)
					return
				}
				talk(10, 10*time.Millisecond)(w, r)
			}}
			conf := settings("a", "b")
			conf.Routes[0].OnInfeasible = []config.Step{{Queue: time.Minute}, {Shed: true}}
			conf.Backends[1].MaxConcurrency = 3
			h := open(t, conf, map[string]http.Handler{"a": a, "b": &script{answer: talk(10, 10*time.Millisecond)}})
			if r := h.post(chat, streamBody); r.status != 200 {
				t.Fatalf("before: %d %s", r.status, r.body)
			}
			revoked.Store(true)
			var all sync.WaitGroup
			for range 40 {
				all.Go(func() {
					if r := h.post(chat, streamBody); r.status != 200 {
						t.Errorf("got %d %s", r.status, r.body)
					}
				})
			}
			all.Wait()
		})
	}
}

// One client whose requests an engine refuses for what is in them does not take
// it from the others.
func TestAHostileClientTakesNoBackendAway(t *testing.T) {
	pause, rounds := 5*time.Millisecond, racetest.Some(50)
	if racetest.On {
		pause = 20 * time.Millisecond // 500 refusals a second, where ten once took a backend away
	}
	for _, status := range []int{401, 404, 500} {
		bubble(t, fmt.Sprint(status), func(t *testing.T) {
			engine := func() *script {
				s := &script{}
				s.answer = func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("X-Poison") != "" {
						states(status, `{"error":{"message":"no"}}`)(w, r)
						return
					}
					talk(20, 10*time.Millisecond)(w, r)
				}
				return s
			}
			conf := settings("a", "b")
			conf.Backends[0].MaxConcurrency, conf.Backends[1].MaxConcurrency = 3, 3
			h := open(t, conf, map[string]http.Handler{"a": engine(), "b": engine()})
			stop := make(chan struct{})
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() {
					for {
						select {
						case <-stop:
							return
						case <-time.After(pause):
							h.post(chat, streamBody, "X-Poison", "1")
						}
					}
				})
			}
			var victims sync.WaitGroup
			var served atomic.Int64
			for range 4 {
				victims.Go(func() {
					for range rounds {
						if r := h.post(chat, streamBody); r.status == 200 {
							served.Add(1)
						}
					}
				})
			}
			victims.Wait()
			close(stop)
			all.Wait()
			t.Logf("%d of %d served", served.Load(), 4*rounds)
			if served.Load() < int64(4*rounds-2) {
				t.Errorf("%d of %d served beside the hostile client, want all but two", served.Load(), 4*rounds)
			}
			for _, l := range h.router.Loads() {
				if l.Health != router.Up {
					t.Errorf("%s is %v", l.Backend, l.Health)
				}
			}
		})
	}
}

// What an engine that breaks says may be what a user wrote: the log has its
// status, and the admin port its words.
func TestTheLogDoesNotSayWhatAnEngineBrokeAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings("a", "b"), map[string]http.Handler{
			"a": &script{answer: states(500, `{"error":{"message":"Failed to parse: hunter2"}}`)},
			"b": &script{answer: talk(1, time.Millisecond)},
		})
		for range 10 {
			h.post(chat, streamBody)
		}
		if log := h.log.String(); !strings.Contains(log, "the backend refuses all requests") || strings.Contains(log, "hunter2") {
			t.Errorf("the log: %s", log)
		}
		if got := h.gateway.LastErrors()[bigAtA]; got.Status != 500 || got.Message != "Failed to parse: hunter2" {
			t.Errorf("last error %+v, want what it said", got)
		}
	})
}

// The log says of a backend that was moved on from what it did.
func TestTheLogSaysWhyARequestMovedOn(t *testing.T) {
	for status, want := range map[int]string{429: `"is busy"`, 500: `"answered 500"`, 502: `"gateway: backend a answered 502"`} {
		bubble(t, strconv.Itoa(status), func(t *testing.T) {
			h := open(t, settings("a", "b"), map[string]http.Handler{
				"a": &script{answer: states(status, `{"error":{"message":"boom"}}`)},
				"b": &script{answer: talk(1, time.Millisecond)},
			})
			h.post(chat, streamBody)
			has(t, h.log.String(), `"moving on to another backend"`, `"error":`+want)
		})
	}
}

// Who is at fault is open until another backend answers.
func TestFaultsAreOpenUntilAnotherOneAnswers(t *testing.T) {
	type verdicts map[string]error
	broke := errors.New("broke")
	for name, c := range map[string]struct {
		statuses []int
		clients  int  // another one finds fault with the request by this status; 0 = none
		cleared  bool // all of them
	}{
		"one alone":                 {[]int{500}, 0, false},
		"two that differ":           {[]int{500, 401}, 0, false},
		"two of the same":           {[]int{500, 500}, 0, true},
		"the client was told so":    {[]int{500, 401}, 400, true},
		"a failure says nothing":    {[]int{500, 401}, 502, false},
		"nor does one that is good": {[]int{500}, 200, false},
	} {
		t.Run(name, func(t *testing.T) {
			var s faults
			got := verdicts{}
			for i, status := range c.statuses {
				key := string(rune('a' + i))
				s.add(openFault{status: status, failure: broke, verdict: func(err error) { got[key] = err }})
			}
			if c.clients > 0 {
				s.clientsOwn(c.clients)
			}
			for i, f := range s.open {
				if f.cleared != c.cleared {
					t.Errorf("fault %d is cleared: %v, want %v", i, f.cleared, c.cleared)
				}
			}
			s.forget()
			for i := range c.statuses {
				if err := got[string(rune('a'+i))]; !errors.Is(err, providers.ErrNoVerdict) {
					t.Errorf("verdict %d is %v, want none for anybody", i, err)
				}
			}
			if s.forget(); len(s.open) != 0 {
				t.Error("faults are left")
			}
		})
	}
}
