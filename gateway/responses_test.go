package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/router"
)

// keeper is a backend that keeps the answers it gives.
func keeper(name string) *script {
	made := 0
	return &script{answer: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == "POST" && r.URL.Path == "/v1/responses":
			made++
			_, _ = fmt.Fprintf(w, `{"object":"response","output":[{"id":"msg_1"}],"id":"resp_%s%d","usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}`, name, made)
		case r.Method == "DELETE":
			_, _ = io.WriteString(w, `{"deleted":true,"by":"`+name+`"}`)
		case strings.Contains(r.URL.Path, "gone"):
			w.WriteHeader(404)
			_, _ = io.WriteString(w, `{"error":{"message":"no","type":"x"}}`)
		default:
			_, _ = io.WriteString(w, `{"by":"`+name+`"}`)
		}
	}}
}

const respond = "/v1/responses"

// pair is a gateway with two backends that keep answers, of which the first is
// preferred.
func pair(t *testing.T, c *config.Config) (*house, *script, *script) {
	a, b := keeper("a"), keeper("b")
	return open(t, c, map[string]http.Handler{"a": a, "b": b}), a, b
}

// Replicas share no ids. One that did not pass the answer on says so, and asks no
// backend, whose own 404 would be a riddle.
func TestAnotherReplicaSaysThatItDoesNotKnowTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, a, b := pair(t, settings("a", "b"))
		for _, r := range []reply{
			h.do(h.request("GET", respond+"/resp_of_another", "")),
			h.post(respond, `{"model":"chat","input":"x","previous_response_id":"resp_of_another"}`),
		} {
			code := r.code(t)
			if r.status != 404 || !strings.HasSuffix(code, "response_not_found") || !strings.Contains(r.body, "resp_of_another") || !strings.Contains(r.body, "another replica does not know them") {
				t.Errorf("got %d %s, want a 404 that says why", r.status, r.body)
			}
		}
		if a.calls()+b.calls() != 0 {
			t.Error("a backend was asked")
		}
	})
}

func TestAnAnswerStaysWithTheBackendThatMadeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, a, b := pair(t, settings("a", "b"))
		h.router.Update(time.Now(), router.BackendHealth{Backend: "a", Health: router.Draining})
		if r := h.post(respond, `{"model":"chat","input":"x"}`); !strings.Contains(r.body, `"id":"resp_b1"`) {
			t.Fatalf("got %d %s, want an answer of b", r.status, r.body)
		}
		h.router.Update(time.Now(), router.BackendHealth{Backend: "a", Health: router.Up}) // preferred, but it knows nothing of the answer
		for _, c := range []struct{ method, path, want string }{
			{"GET", respond + "/resp_b1?include[]=x", `{"by":"b"}`},
			{"GET", respond + "/resp_b1/input_items?limit=2", `{"by":"b"}`},
			{"POST", respond + "/resp_b1/cancel", `{"by":"b"}`},
			{"DELETE", respond + "/resp_b1", `{"deleted":true,"by":"b"}`},
		} {
			r := h.do(h.request(c.method, c.path, ""))
			if r.status != 200 || r.body != c.want {
				t.Errorf("%s %s: got %d %s, want %s", c.method, c.path, r.status, r.body, c.want)
			}
			if got := b.paths[len(b.paths)-1]; got != c.path {
				t.Errorf("%s went up, want %s", got, c.path)
			}
		}
		if r := h.post(respond, `{"model":"chat","input":"y","previous_response_id":"resp_b1"}`); !strings.Contains(r.body, "resp_b2") {
			t.Errorf("what goes on from an answer of b got %d %s", r.status, r.body)
		}
		if r := h.post(respond, `{"model":"chat","input":"y"}`); !strings.Contains(r.body, "resp_a1") {
			t.Errorf("what goes on from nothing got %d %s, want the preferred backend", r.status, r.body)
		}
		if a.calls() != 1 {
			t.Errorf("the other backend was asked %d times, want once", a.calls())
		}
	})
}

// The id of a stream is in its first event, however that is cut.
func TestTheIDOfAStreamIsRemembered(t *testing.T) {
	const created = "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"object\":\"response\",\"id\":\"resp_s1\",\"instructions\":null}}\n\n"
	for _, cut := range []int{0, 20, 60, len(created) - 40} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{}
			s.answer = func(w http.ResponseWriter, r *http.Request) {
				if r.Method == "GET" {
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"by":"a"}`)
					return
				}
				eventStream(w)
				say(w, created[:cut])
				pause(r, time.Millisecond)
				say(w, created[cut:])
			}
			h := open(t, settings("a", "b"), map[string]http.Handler{"a": s})
			h.post(respond, `{"model":"chat","input":"x","stream":true}`)
			if r := h.do(h.request("GET", respond+"/resp_s1", "")); r.status != 200 || r.body != `{"by":"a"}` {
				t.Errorf("cut at %d: got %d %s", cut, r.status, r.body)
			}
		})
	}
}

func TestUnknownAnswersAreAnHonest404(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a", "b")
		c.Keys = []config.Key{key("one", "sk-one"), key("two", "sk-two")}
		h, a, _ := pair(t, c)
		one, two := []string{"Authorization", "Bearer sk-one"}, []string{"Authorization", "Bearer sk-two"}
		h.post(respond, `{"model":"chat","input":"x"}`, one...)
		before := a.calls()
		for _, c := range []struct {
			name, method, path, body string
			header                   []string
			status                   int
			code                     string
		}{
			{"never made", "GET", respond + "/resp_x", "", one, 404, "response_not_found"},
			{"of another key", "GET", respond + "/resp_a1", "", two, 404, "response_not_found"},
			{"delete another's", "DELETE", respond + "/resp_a1", "", two, 404, "response_not_found"},
			{"cancel another's", "POST", respond + "/resp_a1/cancel", "", two, 404, "response_not_found"},
			{"no id", "GET", respond + "/..%2F..", "", one, 404, "response_not_found"},
			{"go on from nothing", "POST", respond, `{"model":"chat","previous_response_id":"resp_x"}`, one, 404, "previous_response_not_found"},
			{"go on from another's", "POST", respond, `{"model":"chat","previous_response_id":"resp_a1"}`, two, 404, "previous_response_not_found"},
			{"no key", "GET", respond + "/resp_a1", "", nil, 401, "invalid_api_key"},
			{"post to one", "POST", respond + "/resp_a1", "{}", one, 405, "method_not_allowed"},
			{"something below", "GET", respond + "/resp_a1/nothing", "", one, 404, "unknown_url"},
		} {
			r := h.do(h.request(c.method, c.path, c.body, c.header...))
			if code := r.code(t); r.status != c.status || code != c.code {
				t.Errorf("%s: got %d %s, want %d %s", c.name, r.status, code, c.status, c.code)
			}
		}
		if a.calls() != before {
			t.Error("a backend was asked for what it must not be")
		}
		if r := h.do(h.request("GET", respond+"/resp_a1", "", one...)); r.status != 200 {
			t.Errorf("its owner got %d", r.status)
		}
	})
}

// After a restart nothing is known. Where one backend alone can have it, the
// request goes on as if there were no gateway.
func TestWithOneBackendTheBackendItselfIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := keeper("a")
		h := open(t, settings("a"), map[string]http.Handler{"a": a})
		if r := h.post(respond, `{"model":"chat","previous_response_id":"resp_old"}`); r.status != 200 {
			t.Errorf("got %d %s", r.status, r.body)
		}
	})
}

// The backend that keeps the answer is down: nobody else is asked.
func TestTheKeeperIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, a, b := pair(t, settings("a", "b"))
		h.post(respond, `{"model":"chat","input":"x"}`)
		a.answer = func(w http.ResponseWriter, _ *http.Request) { cutOff(w) }
		for _, path := range []string{respond + "/resp_a1"} {
			r := h.do(h.request("GET", path, ""))
			if code := r.code(t); r.status != 502 || code != "upstream_failed" {
				t.Errorf("got %d %s, want 502", r.status, code)
			}
		}
		r := h.post(respond, `{"model":"chat","previous_response_id":"resp_a1"}`)
		if code := r.code(t); r.status != 502 || code != "upstream_failed" {
			t.Errorf("got %d %s, want 502", r.status, code)
		}
		if b.calls() != 0 {
			t.Error("a backend that does not know the answer was asked")
		}
	})
}

func TestTheResponseIndexIsBoundedAndExpires(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var s responseIndex
	k := func(i int) responseKey { return responseKey{"one", fmt.Sprint(i)} }
	for i := range maxIndexed + 10 {
		s.put(responseHome{key: k(i), backend: "a", used: now})
		if _, ok := s.get(now, k(0)); !ok {
			t.Fatalf("one that is used was forgotten after %d others", i)
		}
	}
	if n := len(s.byKey); n != maxIndexed || s.of["one"].Len() != maxIndexed {
		t.Errorf("%d and %d remembered, want %d", n, s.of["one"].Len(), maxIndexed)
	}
	if _, ok := s.get(now, k(1)); ok {
		t.Error("the one used longest ago is still there")
	}
	if _, ok := s.get(now, responseKey{"two", "0"}); ok {
		t.Error("another tenant got it")
	}
	s.get(now.Add(indexLife/2), k(0))
	if _, ok := s.get(now.Add(indexLife+time.Second), k(100)); ok {
		t.Error("one outlived its time")
	}
	s.put(responseHome{key: responseKey{"one", "new"}, backend: "a", used: now.Add(indexLife + time.Second)})
	if n := len(s.byKey); n != 2 || s.of["one"].Len() != 2 {
		t.Errorf("%d remembered after a day, want the one used at noon, and the new one", n)
	}
}

// A tenant that has more answers than there is room for forgets its own, and not those of
// others.
func TestAFloodOfAnswersForgetsItsOwn(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var s responseIndex
	few := func(i int) responseKey { return responseKey{fmt.Sprint("tenant ", i), "a"} }
	for i := range 8 {
		s.put(responseHome{key: few(i), backend: "a", used: now})
	}
	for i := range maxIndexed + 1000 {
		s.put(responseHome{key: responseKey{"flood", fmt.Sprint(i)}, backend: "a", used: now})
	}
	for i := range 8 {
		if _, ok := s.get(now, few(i)); !ok {
			t.Fatalf("the answer of tenant %d was forgotten", i)
		}
	}
	if n := len(s.byKey); n != maxIndexed {
		t.Errorf("%d remembered, want %d", n, maxIndexed)
	}
	s.get(now.Add(indexLife+time.Second), few(0))
	if s.of[few(0).tenant] != nil {
		t.Error("a tenant whose only answer has expired is still there")
	}
}

// What is past its time takes nobody's place, though its tenant never comes back.
func TestOldAnswersMakeRoomBeforeNewOnes(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var s responseIndex
	for i := range maxIndexed / 8 {
		s.put(responseHome{key: responseKey{fmt.Sprint("gone ", i%8), fmt.Sprint(i)}, backend: "a", used: now})
	}
	now = now.Add(indexLife + time.Second)
	for i := range maxIndexed {
		s.put(responseHome{key: responseKey{"here", fmt.Sprint(i)}, backend: "a", used: now})
	}
	if _, ok := s.get(now, responseKey{"here", "0"}); !ok {
		t.Error("a new answer was forgotten, and old ones were kept")
	}
	if len(s.byKey) != maxIndexed || len(s.of) != 1 {
		t.Errorf("%d remembered of %d tenants, want %d of one", len(s.byKey), len(s.of), maxIndexed)
	}
}

// What a key keeps at a hosted API is asked of one backend, and no other takes its
// place.
func TestWhatAKeyKeepsAtAHostedAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("engine", "a", "b")
		c.Backends[0].Kind = "vllm"
		for i, name := range []string{"engine", "a", "b"} {
			r := c.Routes[0]
			r.Models, r.Targets = []string{"on-" + name}, c.Routes[0].Targets[i:i+1]
			c.Routes = append(c.Routes, r)
		}
		all, second, none := key("all", "sk-all"), key("second", "sk-second"), key("none", "sk-none")
		second.Routes, none.Routes = []string{"on-b", "on-engine"}, []string{"on-engine"}
		all.Allow = config.Allow{Target: true, Account: true}
		second.Allow.Account, none.Allow.Account = true, true
		closed := key("closed", "sk-closed")
		c.Keys = []config.Key{all, second, none, closed}
		engines := map[string]http.Handler{}
		scripts := map[string]*script{}
		for _, name := range []string{"engine", "a", "b"} {
			scripts[name] = echo("application/json", `{"id":"vs_1","object":"vector_store","by":"`+name+`"}`)
			engines[name] = scripts[name]
		}
		h := open(t, c, engines)
		const made = `{"name":"papers", "file_ids":["file-1"]}`
		for _, x := range []struct{ method, path, body, secret, target, by, up string }{
			{"POST", "/v1/vector_stores", made, "sk-all", "", "a", "/v1/vector_stores"},
			{"GET", "/v1/vector_stores/vs_1", "", "sk-all", "", "a", "/v1/vector_stores/vs_1"},
			{"POST", "/v1/vector_stores/vs_1/search", `{"query":"x"}`, "sk-second", "", "b", "/v1/vector_stores/vs_1/search"},
			{"DELETE", "/vector_stores/vs_1/files/file-1", "", "sk-second", "", "b", "/v1/vector_stores/vs_1/files/file-1"},
			{"POST", "/v1/fine_tuning/jobs", `{"model":"gpt-4o-mini","training_file":"file-1"}`, "sk-all", "", "a", "/v1/fine_tuning/jobs"},
			{"GET", "/v1/fine_tuning/jobs/ftjob-1/events?limit=2&key=sk-all", "", "sk-all", "", "a", "/v1/fine_tuning/jobs/ftjob-1/events?limit=2"},
			{"GET", "/v1/vector_stores", "", "sk-all", "b", "b", "/v1/vector_stores"},
		} {
			header := []string{"Authorization", "Bearer " + x.secret, "OpenAI-Beta", "assistants=v2"}
			if x.target != "" {
				header = append(header, "X-Pacer-Target", x.target)
			}
			s := scripts[x.by]
			n := s.calls()
			r := h.do(h.request(x.method, x.path, x.body, header...))
			if r.status != 200 || !strings.Contains(r.body, `"by":"`+x.by+`"`) || s.calls() != n+1 {
				t.Errorf("%s %s of %s: got %d %s, want the answer of %s", x.method, x.path, x.secret, r.status, r.body, x.by)
				continue
			}
			if s.paths[n] != x.up || s.methods[n] != x.method || s.bodies[n] != x.body || s.heads[n].Get("Openai-Beta") == "" || s.heads[n].Get("Authorization") != "" {
				t.Errorf("%s %s %q went up with %v", s.methods[n], s.paths[n], s.bodies[n], s.heads[n])
			}
		}
		scripts["a"].answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }
		n := scripts["b"].calls()
		if r := h.do(h.request("GET", "/v1/vector_stores", "", "Authorization", "Bearer sk-all")); r.status < 500 || scripts["b"].calls() != n {
			t.Errorf("while its backend fails: %d, and another one was asked", r.status)
		}
		if r := h.do(h.request("GET", "/v1/vector_stores", "", "Authorization", "Bearer sk-none")); r.status != 404 || scripts["engine"].calls() != 0 {
			t.Errorf("a key without such a backend: %d", r.status)
		}
		// What one key keeps there another one could read: it has to be allowed.
		n = scripts["b"].calls()
		if r := h.do(h.request("GET", "/v1/vector_stores", "", "Authorization", "Bearer sk-closed")); r.status != 403 || r.code(t) != "permission_denied" || scripts["b"].calls() != n {
			t.Errorf("a key that may not: %d %s", r.status, r.body)
		}
		// Whoever cleans paths behind us would ask what the gateway has not allowed.
		for _, way := range []string{
			"/v1/vector_stores/../chat/completions", "/v1/vector_stores/%2e%2e/files", "/v1/vector_stores/vs_1%2F..%2F..%2Ffiles",
			"/fine_tuning/../../v1/models", "/v1/fine_tuning/./jobs", "/v1/fine_tuning//jobs", `/v1/vector_stores/..%5Cfiles`, "/v1/vector_stores/a%3Fb",
		} {
			n := scripts["a"].calls()
			req := h.request("GET", "/v1/vector_stores", "", "Authorization", "Bearer sk-all")
			req.URL.Opaque = "//" + req.URL.Host + way
			if r := h.do(req); r.status != 404 || scripts["a"].calls() != n {
				t.Errorf("%s: %d, and %d calls, want 404 and none", way, r.status, scripts["a"].calls()-n)
			}
		}
		if r := h.do(h.request("PUT", "/v1/vector_stores", "", "Authorization", "Bearer sk-all")); r.status != 405 {
			t.Errorf("PUT: %d", r.status)
		}
	})
}
