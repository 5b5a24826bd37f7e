package providers

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/credential"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/upstream"
)

func keysNamed(names ...string) (all []Key) {
	for _, name := range names {
		all = append(all, Key{Source: credential.Static(name)})
	}
	return all
}

// counter notes the keys that requests came with.
type counter struct {
	mu   sync.Mutex
	seen map[string]int
}

func (c *counter) see(r *http.Request) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	key := r.Header.Get("Authorization")[len("Bearer "):]
	c.seen[key]++
	return key
}

func (c *counter) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	c.seen = nil
	return seen
}

// Keys take turns. One that is refused, or full, rests alone: the request that
// found out is served with another one, and those that follow never see it.
func TestAKeyThatIsRefusedRestsAlone(t *testing.T) {
	for status, rest := range map[int]time.Duration{401: keyRest, 402: keyRest, 429: 7 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var c counter
			bad := true
			e := serve(t, Options{Keys: keysNamed("a", "b", "c")}, func(w http.ResponseWriter, r *http.Request) {
				if c.see(r) == "b" && bad {
					if status == 429 {
						w.Header().Set("Retry-After", "7")
					}
					w.WriteHeader(status)
				}
			})
			ask := func(n int) {
				for range n {
					if got, _, err := e.ask(Call{}); err != nil || got != 200 {
						t.Errorf("%d: got %d, %v; want 200", status, got, err)
					}
				}
			}
			ask(9)
			if got := c.take(); got["b"] != 1 || got["a"]+got["c"] != 9 || min(got["a"], got["c"]) < 3 {
				t.Errorf("%d: sent with %v, want b once and the others in turns", status, got)
			}
			time.Sleep(rest - time.Millisecond)
			ask(3)
			if got := c.take(); got["b"] != 0 {
				t.Errorf("%d: b is used before %v are over: %v", status, rest, got)
			}
			time.Sleep(time.Millisecond)
			bad = false
			ask(3)
			if got := c.take(); got["b"] != 1 {
				t.Errorf("%d: after its rest: %v, want each once", status, got)
			}
		})
	}
}

// Where every key is refused the client gets the answer of the last, no more than
// four are tried, and the router hears that nothing is left until the first is back.
func TestAllKeysAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counter
		e := serve(t, Options{Keys: keysNamed("a", "b", "c", "d", "e")}, func(w http.ResponseWriter, r *http.Request) {
			c.see(r)
			w.Header().Set("Retry-After", "20")
			w.WriteHeader(429)
		})
		if got, _, err := e.ask(Call{}); err != nil || got != 429 {
			t.Errorf("got %d, %v; want the 429", got, err)
		}
		if got := c.take(); len(got) != mostKeys {
			t.Errorf("sent with %v, want %d keys once each", got, mostKeys)
		}
		if limits, told := e.Limits(time.Now(), ""); told {
			t.Errorf("%+v while one was not tried, want no limit", limits)
		}
		e.ask(Call{})
		limits, told := e.Limits(time.Now(), "any")
		if l := limits[upstream.Requests]; !told || l.Left != 0 || time.Until(l.Until) != 20*time.Second {
			t.Errorf("%+v, told %v; want no requests for 20 s", limits, told)
		}
		c.take()
		e.ask(Call{})
		if got := c.take(); len(got) != 1 {
			t.Errorf("all rest, and one request was sent with %v", got)
		}
	})
}

// A key's own cap is never passed while another has room, and is free again when
// the answer is closed.
func TestCapsOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counter
		e := serve(t, Options{Keys: []Key{{Source: credential.Static("a"), MaxConcurrency: 2}, {Source: credential.Static("b"), MaxConcurrency: 3}}},
			func(w http.ResponseWriter, r *http.Request) { c.see(r) })
		var open []*http.Response
		for range 5 {
			resp := must.Get(e.Send(t.Context(), Call{Path: "/chat/completions"}))(t)
			open = append(open, resp)
		}
		if got := c.take(); got["a"] != 2 || got["b"] != 3 {
			t.Errorf("five at once went with %v, want 2 of a and 3 of b", got)
		}
		for _, resp := range open {
			resp.Body.Close()
			resp.Body.Close()
		}
		for _, k := range e.pool.keys {
			if k.running != 0 {
				t.Errorf("%d run with a key when all have ended", k.running)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := e.Send(ctx, Call{Path: "/x"}); err == nil || e.pool.keys[0].running+e.pool.keys[1].running != 0 {
			t.Errorf("after a send that failed (%v) %d and %d run", err, e.pool.keys[0].running, e.pool.keys[1].running)
		}
	})
}

// What is told of limits counts for its key and model; what was sent since is
// taken off, and what ends there is known no more.
func TestLimitsOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := map[string]int{"a": 3, "b": 5}
		var mu sync.Mutex
		e := serve(t, Options{Keys: keysNamed("a", "b")}, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			key := r.Header.Get("Authorization")[len("Bearer "):]
			left[key]--
			w.Header().Set("X-Ratelimit-Remaining-Requests", fmt.Sprint(left[key]))
			w.Header().Set("X-Ratelimit-Reset-Requests", "30s")
		})
		told := func(model string) float64 {
			limits, told := e.Limits(time.Now(), model)
			if !told {
				return -1
			}
			return limits[upstream.Requests].Left
		}
		e.ask(Call{Model: "m"})
		if got := told("m"); got != -1 {
			t.Errorf("%v left while b has told nothing", got)
		}
		e.ask(Call{Model: "m"})
		if got := told("m"); got != 6 {
			t.Errorf("%v left, want the 2 of a and the 4 of b", got)
		}
		if got := told("other"); got != -1 {
			t.Errorf("%v left of another model", got)
		}
		for range 6 {
			e.ask(Call{Model: "m"})
		}
		mu.Lock()
		if left["a"] != 0 || left["b"] != 0 {
			t.Errorf("left at the backend: %v, want all used and no more", left)
		}
		mu.Unlock()
		if got := told("m"); got != 0 {
			t.Errorf("%v left, want none", got)
		}
		time.Sleep(30 * time.Second)
		if got := told("m"); got != -1 {
			t.Errorf("%v left after the reset, want nothing known", got)
		}
	})
}

// Requests that go up while an answer comes are taken off what it tells.
func TestLimitsCountWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gates := make(chan chan string, 10)
		e := serve(t, Options{Keys: keysNamed("a")}, func(w http.ResponseWriter, r *http.Request) {
			gate := make(chan string)
			gates <- gate
			w.Header().Set("X-Ratelimit-Remaining-Requests", <-gate)
			w.Header().Set("X-Ratelimit-Reset-Requests", "30s")
		})
		send := func() chan string {
			go e.ask(Call{Model: "m"})
			synctest.Wait()
			return <-gates
		}
		send() <- "10"
		synctest.Wait()
		first, second, third := send(), send(), send()
		second <- "8"
		synctest.Wait()
		left := func() float64 {
			limits, _ := e.Limits(time.Now(), "m")
			return limits[upstream.Requests].Left
		}
		if got := left(); got != 7 {
			t.Errorf("%v left, want the 8 that it told less the one behind it", got)
		}
		first <- "9" // older
		third <- "7"
		synctest.Wait()
		if got := left(); got != 7 {
			t.Errorf("%v left, want 7: an answer to an older request tells nothing", got)
		}
	})
}

// Clients that make up names of models cannot make it remember without end.
func TestLimitsOfManyModels(t *testing.T) {
	p := newPool(upstream.Of("openai"), keysNamed("a"))
	h := http.Header{"X-Ratelimit-Remaining-Requests": {"1"}, "X-Ratelimit-Reset-Requests": {"30s"}}
	now := time.Now()
	for i := range 3 * tellingModels {
		l, _ := p.lend(now, fmt.Sprint(i), cost{1}, nil)
		l.answered(now, &http.Response{StatusCode: 200, Header: h})
		now = now.Add(50 * time.Millisecond)
	}
	if n := len(p.keys[0].limits); n > tellingModels {
		t.Errorf("%d models are remembered, want %d at most", n, tellingModels)
	}
	now = now.Add(time.Minute)
	l, _ := p.lend(now, "new", cost{1}, nil)
	l.answered(now, &http.Response{StatusCode: 200, Header: h})
	if _, known := p.keys[0].limits["new"]; !known || len(p.keys[0].limits) != 1 {
		t.Errorf("%d are remembered after their time, and the new one: %v", len(p.keys[0].limits), known)
	}
}

// turns is a source that makes a new key when one is refused.
type turns struct {
	mu   sync.Mutex
	made int
}

func (s *turns) Get(context.Context) (credential.Value, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return credential.Value{Secret: fmt.Sprint("key-", s.made), Token: true}, nil
}

func (s *turns) Refused(credential.Value) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return true
}

func (s *turns) Secrets() []string { return nil }

// A key that was changed under way is fetched anew, once, and goes into the header
// of tokens.
func TestAStaleKeyIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		e := serve(t, Options{Kind: "azure", Keys: []Key{{Source: &turns{}}}}, func(w http.ResponseWriter, r *http.Request) {
			got = append(got, r.Header.Get("Authorization"))
			if r.Header.Get("Authorization") != "Bearer key-1" {
				w.WriteHeader(401)
			}
		})
		if status, _, err := e.ask(Call{Body: inMemory("{}")}); err != nil || status != 200 {
			t.Errorf("got %d, %v; want 200", status, err)
		}
		if want := []string{"Bearer key-0", "Bearer key-1"}; !slices.Equal(got, want) {
			t.Errorf("sent with %q, want %q", got, want)
		}
	})
}

// An answer to a request from before a key's rest does not end it.
func TestALateAnswerEndsNoRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counter
		slow, first := make(chan struct{}), true
		e := serve(t, Options{Keys: keysNamed("a", "b")}, func(w http.ResponseWriter, r *http.Request) {
			switch key := c.see(r); {
			case r.URL.Path == "/v1/slow" && key == "a":
				<-slow
			case key == "a" && first:
				first = false
				w.Header().Set("Retry-After", "30")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _, _ = e.ask(Call{Path: "/slow"})
		}()
		synctest.Wait()
		for range 2 { // b, and a, which is full by now
			_, _, _ = e.ask(Call{})
		}
		close(slow)
		<-done
		c.take()
		for range 6 {
			_, _, _ = e.ask(Call{})
		}
		if got := c.take(); got["a"] != 0 {
			t.Errorf("a is used within its rest: %v", got)
		}
		time.Sleep(30 * time.Second)
		for range 6 {
			_, _, _ = e.ask(Call{})
		}
		if got := c.take(); got["a"] == 0 {
			t.Errorf("a is not used after its rest: %v", got)
		}
	})
}

// What one key is forbidden another one may do. If it does, the first one rests; if
// none does, that was the request's fault, and all go on.
func TestAForbiddenKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counter
		e := serve(t, Options{Keys: keysNamed("a", "b", "c")}, func(w http.ResponseWriter, r *http.Request) {
			if key := c.see(r); key == "b" || r.URL.Path == "/v1/nobody" {
				w.WriteHeader(http.StatusForbidden)
			}
		})
		for range 6 {
			if got, _, err := e.ask(Call{}); err != nil || got != 200 {
				t.Errorf("got %d, %v; want 200", got, err)
			}
		}
		if got := c.take(); got["b"] != 1 {
			t.Errorf("sent with %v, want b once", got)
		}
		time.Sleep(keyRestMost)
		if got, _, _ := e.ask(Call{Path: "/nobody"}); got != 403 {
			t.Errorf("what all are forbidden gets %d, want 403", got)
		}
		if got := c.take(); len(got) != 3 {
			t.Errorf("what all are forbidden is sent with %v, want all", got)
		}
		for range 6 {
			_, _, _ = e.ask(Call{})
		}
		if got := c.take(); got["a"] < 2 || got["c"] < 2 {
			t.Errorf("after a request that all refuse: %v, want a and c in turns", got)
		}
	})
}

// Google says 400 of a key that is wrong: another one is tried. Other errors of the
// client are its own, and come down whole.
func TestAKeyThatGoogleRefuses(t *testing.T) {
	for _, base := range []string{"/v1beta", "/v1beta/openai"} {
		synctest.Test(t, func(t *testing.T) {
			const wrong = `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`
			bad := `{"error":{"code":400,"message":"API_KEY_INVALID is no field","status":"INVALID_ARGUMENT"},"pad":"` + strings.Repeat("x", 2*mostBeginning) + `"}`
			seen := map[string]int{}
			e := serve(t, Options{Kind: "gemini", BaseURL: "http://engine" + base, Keys: keysNamed("a", "b")}, func(w http.ResponseWriter, r *http.Request) {
				key := cmp.Or(r.Header.Get("X-Goog-Api-Key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
				seen[key]++
				switch {
				case strings.HasSuffix(r.URL.Path, "/bad"):
					w.WriteHeader(400)
					fmt.Fprint(w, bad)
				case key == "a":
					w.WriteHeader(400)
					text := wrong
					if strings.HasSuffix(base, "openai") {
						text = "[" + wrong + "]"
					}
					fmt.Fprint(w, text)
				}
			})
			for range 4 {
				if got, _, err := e.ask(Call{Path: "/x"}); err != nil || got != 200 {
					t.Errorf("got %d, %v; want 200", got, err)
				}
			}
			if seen["a"] != 1 || seen["b"] != 4 {
				t.Errorf("sent with %v, want a once", seen)
			}
			clear(seen)
			if got, text, _ := e.ask(Call{Path: "/bad"}); got != 400 || text != bad || seen["b"] != 1 || len(seen) != 1 {
				t.Errorf("a client's own error: %d with %d bytes, sent with %v", got, len(text), seen)
			}
		})
	}
}
