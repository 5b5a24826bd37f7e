package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
)

// keyed is a gateway with a key for the route chat only, beside a second route.
func keyed() *config.Config {
	c := settings("a")
	c.Limits.Body = 1000
	other := c.Routes[0]
	other.Models = []string{"private"}
	c.Routes = append(c.Routes, other)
	k := key("mobile", "sk-right")
	k.Routes = []string{"chat"}
	c.Keys = []config.Key{k}
	return c
}

func TestRefusals(t *testing.T) {
	const right = "Bearer sk-right"
	good := `{"model":"chat","messages":[],"stream":true}`
	big := `{"model":"chat","x":"` + strings.Repeat("x", 1000) + `"}`
	for _, c := range []struct {
		name, method, path, body string
		header                   []string
		status                   int
		code                     string
	}{
		{"unknown path before the key", "POST", "/v1/nothing", good, nil, 404, "unknown_url"},
		{"metrics are not here", "GET", "/metrics", "", nil, 404, "unknown_url"},
		{"nor is the API", "GET", "/api/v1/routes", "", nil, 404, "unknown_url"},
		{"unknown path, unknown method", "BREW", "/v1/nothing", "", nil, 404, "unknown_url"},
		{"root", "GET", "/", "", nil, 404, "unknown_url"},
		{"method before the key", "GET", chat, "", nil, 405, "method_not_allowed"},
		{"unknown method", "BREW", chat, "", nil, 405, "method_not_allowed"},
		{"post to the list", "POST", "/v1/models", good, nil, 405, "method_not_allowed"},
		{"preflight while CORS is off", "OPTIONS", chat, "", nil, 405, "method_not_allowed"},
		{"no key", "POST", chat, good, nil, 401, "invalid_api_key"},
		{"key before the body", "POST", chat, "{", nil, 401, "invalid_api_key"},
		{"wrong key", "POST", chat, good, []string{"Authorization", "Bearer sk-wrong"}, 401, "invalid_api_key"},
		{"right key, wrong scheme", "POST", chat, good, []string{"Authorization", "Basic sk-right"}, 401, "invalid_api_key"},
		{"empty key", "POST", chat, good, []string{"Authorization", "Bearer "}, 401, "invalid_api_key"},
		{"oversize", "POST", chat, big, []string{"Authorization", right}, 413, "request_too_large"},
		{"compressed", "POST", chat, good, []string{"Authorization", right, "Content-Encoding", "br"}, 415, "unsupported_encoding"},
		{"empty body", "POST", chat, "", []string{"Authorization", right}, 400, "*"},
		{"broken JSON", "POST", chat, `{"model":"chat"`, []string{"Authorization", right}, 400, "*"},
		{"not an object", "POST", chat, `["chat"]`, []string{"Authorization", right}, 400, "*"},
		{"two documents", "POST", chat, good + good, []string{"Authorization", right}, 400, "*"},
		{"duplicate keys", "POST", chat, `{"model":"chat","model":"private"}`, []string{"Authorization", right}, 400, "*"},
		{"duplicate keys, one escaped", "POST", chat, `{"model":"chat","mod\u0065l":"private"}`, []string{"Authorization", right}, 400, "*"},
		{"missing model", "POST", chat, `{"messages":[]}`, []string{"Authorization", right}, 400, "*"},
		{"model is a number", "POST", chat, `{"model":7}`, []string{"Authorization", right}, 400, "*"},
		{"body before the model", "POST", chat, `{"model":"nobody","stream":"maybe"}`, []string{"Authorization", right}, 400, "*"},
		{"unknown model", "POST", chat, `{"model":"nobody"}`, []string{"Authorization", right}, 404, "model_not_found"},
		{"a route that the key may not use", "POST", chat, `{"model":"private"}`, []string{"Authorization", right}, 404, "model_not_found"},
		{"model before the header", "POST", chat, `{"model":"nobody"}`, []string{"Authorization", right, "x-pacer-min-tps", "x"}, 404, "model_not_found"},
		{"bad header", "POST", chat, good, []string{"Authorization", right, "x-pacer-min-tps", "x"}, 400, "invalid_header"},
		{"batch with a floor", "POST", chat, good, []string{"Authorization", right, "x-pacer-class", "batch", "x-pacer-min-tps", "5"}, 400, "invalid_header"},
		{"stricter than allowed", "POST", chat, good, []string{"Authorization", right, "x-pacer-min-tps", "5"}, 403, "permission_denied"},
		{"unknown model in the list", "GET", "/v1/models/nobody", "", []string{"Authorization", right}, 404, "model_not_found"},
		{"hidden model in the list", "GET", "/v1/models/private", "", []string{"Authorization", right}, 404, "model_not_found"},
		{"list without a key", "GET", "/v1/models", "", nil, 401, "invalid_api_key"},
	} {
		bubble(t, c.name, func(t *testing.T) {
			engine := &script{answer: talk(1, time.Millisecond)}
			h := open(t, keyed(), map[string]http.Handler{"a": engine})
			r := h.do(h.request(c.method, c.path, c.body, c.header...))
			code := r.code(t)
			if r.status != c.status || c.code != "*" && code != c.code {
				t.Errorf("got %d %s, want %d %s", r.status, code, c.status, c.code)
			}
			if r.status == 405 && r.header.Get("Allow") == "" {
				t.Error("405 without an Allow header")
			}
			if n := engine.calls(); n != 0 {
				t.Errorf("the backend was called %d times, want 0", n)
			}
			if line := h.last(); line.Status != c.status || line.Request != r.header.Get("X-Request-Id") {
				t.Errorf("log line says status %d of request %q, want %d of %q", line.Status, line.Request, c.status, r.header.Get("X-Request-Id"))
			}
			if log := h.log.String(); strings.Contains(log, "sk-right") || strings.Contains(log, "sk-wrong") {
				t.Error("a key is in the log")
			}
		})
	}
}

func TestHiddenAndUnknownModelsLookTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, keyed(), nil)
		hidden := h.post(chat, `{"model":"private"}`, "x-api-key", "sk-right")
		unknown := h.post(chat, `{"model":"unknown"}`, "x-api-key", "sk-right")
		if want := strings.ReplaceAll(unknown.body, "unknown", "private"); hidden.body != want {
			t.Errorf("hidden: %s\nunknown: %s\nwant the same", hidden.body, unknown.body)
		}
	})
}

func TestKeysAreTakenFromThreeHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, keyed(), map[string]http.Handler{"a": &script{answer: talk(1, time.Millisecond)}})
		for _, header := range [][]string{
			{"Authorization", "Bearer sk-right"},
			{"Authorization", "bearer  sk-right"},
			{"X-Api-Key", "sk-right"},
			{"Api-Key", "sk-right"},
		} {
			if r := h.post(chat, streamBody, header...); r.status != 200 {
				t.Errorf("%q: status %d, want 200: %s", header, r.status, r.body)
			}
		}
		if got := h.last().Tenant; got != "mobile" {
			t.Errorf("log line names tenant %q, want mobile", got)
		}
	})
}

func TestModelsAreThoseOfTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := keyed()
		c.Routes[0].Models = []string{"chat", "org/name", "odd%2Fname"}
		h := open(t, c, nil)
		get := func(path string) reply {
			return h.do(h.request("GET", path, "", "Authorization", "Bearer sk-right"))
		}
		list := get("/v1/models")
		has(t, list.body, `"object":"list"`, `"id":"chat"`, `"id":"org/name"`, `"object":"model"`, `"owned_by":"pacer"`)
		if strings.Contains(list.body, "private") {
			t.Errorf("GET /v1/models shows a route that the key may not use: %s", list.body)
		}
		for path, id := range map[string]string{
			"/v1/models/chat": "chat", "/v1/models/org/name": "org/name", "/v1/models/org%2Fname": "org/name", "/v1/models/odd%252Fname": "odd%2Fname",
		} {
			if r := get(path); r.status != 200 || !strings.Contains(r.body, `"id":"`+id+`"`) {
				t.Errorf("GET %s: %d %s, want the model %s", path, r.status, r.body, id)
			}
		}
		if r := h.do(h.request("HEAD", "/v1/models", "", "x-api-key", "sk-right")); r.status != 200 || r.body != "" {
			t.Errorf("HEAD /v1/models: %d with %d bytes, want 200 with none", r.status, len(r.body))
		}
	})
}

func TestTheWildcardRouteTakesWhatNoOtherNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		rest := c.Routes[0]
		rest.Models, rest.Targets = []string{"*"}, []config.Target{{Backend: "a"}}
		c.Routes = append(c.Routes, rest)
		engine := &script{answer: talk(1, time.Millisecond)}
		h := open(t, c, map[string]http.Handler{"a": engine})
		if r := h.post(chat, `{"model":"who/ever","stream":true}`); r.status != 200 {
			t.Fatalf("status %d: %s", r.status, r.body)
		}
		if got := engine.bodies[0]; !strings.Contains(got, `"model":"who/ever"`) {
			t.Errorf("the backend got %s, want the client's own model name", got)
		}
		if got := h.last().Route; got != "*" {
			t.Errorf("log line names route %q, want *", got)
		}
	})
}

func TestRequestIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: talk(1, time.Millisecond)}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		for given, kept := range map[string]bool{
			"abc-1.2_3:X": true, strings.Repeat("a", 128): true,
			"": false, strings.Repeat("a", 129): false, "a b": false, "a\"b": false,
		} {
			r := h.post(chat, streamBody, "x-request-id", given)
			got := r.header.Get("X-Request-Id")
			if kept && got != given || !kept && (got == given || !saneID(got)) {
				t.Errorf("x-request-id %q was answered with %q", given, got)
			}
			if sent := engine.heads[len(engine.heads)-1].Get("X-Request-Id"); sent != got {
				t.Errorf("the backend got x-request-id %q, the client %q", sent, got)
			}
		}
	})
}

func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, keyed(), nil)
		for _, path := range []string{"/healthz", "/readyz", "/health", "/healthz/", "/readyz/"} {
			if r := h.do(h.request("GET", path, "")); r.status != 200 {
				t.Errorf("GET %s: %d, want 200 without a key", path, r.status)
			}
		}
		h.gateway.Drain()
		for _, path := range []string{"/readyz", "/health"} {
			if r := h.do(h.request("GET", path, "")); r.status != 503 || r.code(t) != "draining" {
				t.Errorf("GET %s while draining: %d %s, want 503", path, r.status, r.body)
			}
		}
		if r := h.do(h.request("GET", "/healthz", "")); r.status != 200 {
			t.Errorf("GET /healthz while draining: %d, want 200", r.status)
		}
	})
}

// A balancer that can send people elsewhere asks for room; a probe does not.
func TestReadinessByCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a", "b")
		c.Backends[0].MaxConcurrency, c.Backends[1].MaxConcurrency = 1, 1
		for i := range c.Routes {
			c.Routes[i].SLO.MinTPS = 1
		}
		long := func(w http.ResponseWriter, r *http.Request) {
			eventStream(w)
			for range 20 {
				if !pause(r, time.Second) {
					return
				}
				say(w, `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`+"\n\n")
			}
			say(w, "data: [DONE]\n\n")
		}
		h := open(t, c, map[string]http.Handler{"a": &script{answer: long}, "b": &script{answer: long}})
		status := func(query string) int { return h.do(h.request("GET", "/readyz"+query, "")).status }
		for query, want := range map[string]int{"": 200, "?free=1": 200, "?free=2": 200, "?free=3": 503, "?free=0": 400, "?free=x": 400, "?free=1&free=2": 400} {
			if got := status(query); got != want {
				t.Errorf("/readyz%s of two free places: %d, want %d", query, got, want)
			}
		}
		done := make(chan struct{})
		go func() { defer close(done); h.post(chat, streamBody) }()
		time.Sleep(2 * roomAge)
		if one, two, plain := status("?free=1"), status("?free=2"), status(""); one != 200 || two != 503 || plain != 200 {
			t.Errorf("one of two places is free: %d, %d and %d, want 200, 503 and 200", one, two, plain)
		}
		<-done
	})
}

func TestOversizeBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		c.Limits.Body = 100_000
		h := open(t, c, map[string]http.Handler{"a": &script{answer: talk(1, time.Millisecond)}})
		body := func(n int) string {
			const frame = `{"model":"chat","stream":true,"x":""}`
			return frame[:len(frame)-2] + strings.Repeat("x", n-len(frame)) + `"}`
		}
		if got := len(body(100_000)); got != 100_000 {
			t.Fatalf("the body has %d bytes", got)
		}
		if r := h.post(chat, body(100_000)); r.status != 200 {
			t.Errorf("a body of exactly the limit: %d %s", r.status, r.body)
		}
		if r := h.post(chat, body(100_001)); r.status != 413 {
			t.Errorf("a body over the limit: %d, want 413", r.status)
		}
		// Without a length it is known only once it has come.
		req := h.request("POST", chat, "")
		req.Body = io.NopCloser(strings.NewReader(body(150_000)))
		req.ContentLength = -1
		if r := h.do(req); r.status != 413 {
			t.Errorf("a chunked body over the limit: %d (%v), want 413", r.status, r.err)
		}
		req = h.request("POST", chat, "")
		req.Body = io.NopCloser(strings.NewReader(body(90_000)))
		req.ContentLength = -1
		if r := h.do(req); r.status != 200 {
			t.Errorf("a chunked body within the limit: %d (%v), want 200", r.status, r.err)
		}
	})
}

func TestSlowBodiesAreGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		pieces int
		every  time.Duration
		size   int
		want   time.Duration
	}{
		"nothing comes":       {0, 0, 0, 30 * time.Second},
		"a byte now and then": {1000, 10 * time.Second, 1, 30 * time.Second},
		// 100 KiB buy 25 s, but nobody is silent for more than 30 s.
		"a while, then nothing": {1, 5 * time.Second, 100 << 10, 35 * time.Second},
		// Half of the rate that is waited for: 30 s, and a half of each second.
		"an upload of 2 KiB a second": {100_000, time.Second, 2 << 10, time.Minute},
	} {
		bubble(t, name, func(t *testing.T) {
			h := open(t, settings("a"), nil)
			conn := must.Get(h.net.Dial(context.Background(), "tcp", "gateway:80"))(t)
			start := time.Now()
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				_, _ = io.WriteString(conn, "POST "+chat+" HTTP/1.1\r\nHost: gateway\r\nContent-Length: 20000000\r\n\r\n")
				for range c.pieces {
					<-time.After(c.every)
					if _, err := conn.Write(make([]byte, c.size)); err != nil {
						return
					}
				}
			}()
			resp := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
			if got := time.Since(start); resp.StatusCode != 408 || got < c.want-time.Second || got > c.want+time.Second {
				t.Errorf("status %d after %v, want 408 after %v", resp.StatusCode, got, c.want)
			}
			if said := must.Get(io.ReadAll(resp.Body))(t); !strings.Contains(string(said), "4 KiB/s") || !strings.Contains(string(said), "send less at once") {
				t.Errorf("the client reads neither the pace nor what to do: %s", said)
			}
			_ = conn.Close()
			<-sent
			<-time.After(time.Second) // http.Server holds the connection for a moment
		})
	}
}

func TestBuffersAreBoundedOverAllRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		c.Limits.Buffered = 150 << 10 // a small body counts twice
		engine := &script{answer: after(time.Second)}
		h := open(t, c, map[string]http.Handler{"a": engine})
		body := `{"model":"chat","stream":true,"x":"` + strings.Repeat("x", 60<<10) + `"}`
		done := make(chan reply, 1)
		go func() { done <- h.post(chat, body) }()
		synctest.Wait()
		r := h.post(chat, body)
		if r.status != 503 || r.code(t) != "gateway_overloaded" || r.header.Get("Retry-After") != "1" {
			t.Errorf("a body beyond the budget: %d %s, Retry-After %q; want 503 gateway_overloaded, 1", r.status, r.body, r.header.Get("Retry-After"))
		}
		if r := <-done; r.status != 200 || r.err != nil {
			t.Errorf("the first request: %d %v, want 200", r.status, r.err)
		}
		h.idle()
		if r := h.post(chat, body); r.status != 200 {
			t.Errorf("after the first had ended: %d, want 200", r.status)
		}
	})
}

// A tenant who fills the gateway with bodies leaves room for the others; one who
// is alone may have all of it.
func TestOneTenantDoesNotHoldAllBuffers(t *testing.T) {
	for name, reload := range map[string]bool{"of two": false, "alone": false, "reloaded": true} {
		bubble(t, name, func(t *testing.T) {
			c := settings("a")
			c.Keys = []config.Key{key("greedy", "one"), key("served", "two")}
			serves := int64(2) // a small body counts twice
			if name == "alone" {
				c.Keys, serves = c.Keys[:1], 5
			}
			c.Limits.Body, c.Limits.Buffered = 64<<10, 640<<10
			h := open(t, c, map[string]http.Handler{"a": &script{answer: after(time.Second)}})
			body := `{"model":"chat","stream":true,"x":"` + strings.Repeat("x", 60<<10) + `"}`
			var running sync.WaitGroup
			var served atomic.Int64
			for i := range 20 {
				if reload && i == 1 {
					must.Do(t, h.gateway.Configure(c, h.backends, nil))
				}
				running.Go(func() {
					r := h.post(chat, body, "Authorization", "Bearer one")
					if r.status == 200 {
						served.Add(1)
					} else if own := strings.Contains(r.body, "of this key"); own == (name == "alone") {
						t.Errorf("refused with %s", r.body)
					}
				})
				synctest.Wait()
			}
			if name != "alone" {
				if r := h.post(chat, body, "Authorization", "Bearer two"); r.status != 200 {
					t.Errorf("the other tenant: %d, want 200", r.status)
				}
			}
			running.Wait()
			if n := served.Load(); n != serves {
				t.Errorf("%d of 20 requests of 60 KiB were served at once, want %d with a budget of 640 KiB", n, serves)
			}
		})
	}
}

func TestStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		c.Limits.Streams = 1
		h := open(t, c, map[string]http.Handler{"a": &script{answer: talk(5, time.Second)}})
		done := make(chan reply, 1)
		go func() { done <- h.post(chat, streamBody) }()
		synctest.Wait()
		if r := h.post(chat, streamBody); r.status != 503 || r.code(t) != "gateway_overloaded" {
			t.Errorf("a stream beyond the limit: %d %s, want 503 gateway_overloaded", r.status, r.body)
		}
		if r := <-done; r.status != 200 || r.err != nil {
			t.Errorf("the stream within the limit: %d %v", r.status, r.err)
		}
		if r := h.post(chat, streamBody); r.status != 200 {
			t.Errorf("after it had ended: %d, want 200", r.status)
		}
	})
}

// A key is refused from the moment on at which it expires, and models are not
// listed for it either.
func TestAKeyExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		k := key("mobile", "sk-right")
		k.Expires = time.Now().Add(time.Hour)
		c.Keys = []config.Key{k}
		h := open(t, c, nil)
		ask := func() reply { return h.post("/v1/embeddings", `{"model":"chat"}`, "Authorization", "Bearer sk-right") }
		<-time.After(time.Hour - time.Nanosecond)
		if r := ask(); r.status == 401 {
			t.Errorf("before it expires: got %d %s", r.status, r.body)
		}
		<-time.After(time.Nanosecond)
		if r := ask(); r.status != 401 || r.code(t) != "invalid_api_key" || !strings.Contains(r.body, "expired") {
			t.Errorf("when it has expired: got %d %s", r.status, r.body)
		}
		if r := h.do(h.request("GET", "/v1/models", "", "Authorization", "Bearer sk-right")); r.status != 401 {
			t.Errorf("its models: got %d", r.status)
		}
	})
}

func TestKeyLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := keyed()
		c.Keys[0].Limits = config.KeyLimits{RequestsPerMinute: 2, TokensPerMinute: 1000, Concurrency: 1}
		h := open(t, c, map[string]http.Handler{"a": &script{answer: talk(93, time.Millisecond)}})
		body := `{"model":"chat","stream":true,"max_tokens":500}`
		r := h.post(chat, body, "x-api-key", "sk-right")
		if r.status != 200 || r.header.Get("X-Ratelimit-Limit-Requests") != "2" || r.header.Get("X-Ratelimit-Remaining-Requests") != "1" {
			t.Errorf("status %d, headers %v", r.status, r.header)
		}
		h.idle()
		// 7 tokens of prompt and 93 of answer were used, not 500.
		if got := h.gateway.setup.Load().tenants[0].limits.State(time.Now()).Tokens.Remaining; got < 900 || got > 905 {
			t.Errorf("%d tokens left of 1000 after 100 were used", got)
		}
		if r := h.post(chat, body, "x-api-key", "sk-right"); r.status != 200 {
			t.Errorf("second request: %d", r.status)
		}
		r = h.post(chat, body, "x-api-key", "sk-right")
		if r.status != 429 || r.code(t) != "rate_limit_exceeded" || r.header.Get("Retry-After") == "" || r.header.Get("Retry-After-Ms") == "" {
			t.Errorf("third request of two a minute: %d %s %v", r.status, r.body, r.header)
		}
	})
}

func TestCrossOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := keyed()
		c.CORS = config.CORS{Origins: []string{"https://app.example"}, MaxAge: 10 * time.Minute}
		engine := &script{answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Access-Control-Allow-Origin", "*")
			talk(1, time.Millisecond)(w, r)
		}}
		h := open(t, c, map[string]http.Handler{"a": engine})
		r := h.do(h.request("OPTIONS", chat, "", "Origin", "https://app.example",
			"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "x-stainless-os,content-type"))
		allow := r.header.Get("Access-Control-Allow-Headers")
		if r.status != 204 || !strings.Contains(allow, "authorization") || !strings.Contains(allow, "x-stainless-os") ||
			r.header.Get("Access-Control-Allow-Methods") != "GET, POST, DELETE" || r.header.Get("Access-Control-Allow-Origin") != "https://app.example" || r.header.Get("Access-Control-Max-Age") != "600" {
			t.Errorf("preflight: %d %v", r.status, r.header)
		}
		r = h.post(chat, streamBody, "Origin", "https://app.example", "x-api-key", "sk-right")
		if got := r.header.Values("Access-Control-Allow-Origin"); len(got) != 1 || got[0] != "https://app.example" {
			t.Errorf("answer allows %q, want the origin and nothing else", got)
		}
		exposed := strings.Split(r.header.Get("Access-Control-Expose-Headers"), ", ")
		for _, name := range []string{"x-request-id", "request-id", "x-pacer-cost-usd", "x-pacer-tokens", "x-pacer-dropped", "retry-after"} {
			if !slices.Contains(exposed, name) {
				t.Errorf("a page may read %q, want %s too", exposed, name)
			}
		}
		if r := h.do(h.request("OPTIONS", chat, "", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST")); r.status != 405 || r.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("preflight of another origin: %d %v", r.status, r.header)
		}
		// A page must be able to read why it was refused.
		if r := h.post(chat, streamBody, "Origin", "https://app.example"); r.status != 401 || r.header.Get("Access-Control-Allow-Origin") == "" {
			t.Errorf("refusal: %d %v", r.status, r.header)
		}
	})
}

// A client that goes away in the middle of its body is nobody's failure.
func TestABodyThatBreaksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings("a"), nil)
		req := h.request("POST", chat, "")
		req.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"model":`), broken{}))
		req.ContentLength = 1000
		if r := h.do(req); r.err == nil {
			t.Fatalf("got status %d, want the request to fail", r.status)
		}
		h.idle()
		if got := h.last().Outcome; got != outcomeGone {
			t.Errorf("outcome %q, want client_gone", got)
		}
	})
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }

// A client that asks for what is not served is not told that its base URL is
// wrong, and one whose base URL is wrong is.
func TestA404SaysWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings("a"), nil)
		for path, hint := range map[string]bool{
			"/v1/threads": false, "/v1/assistants": false, "/v1/batches/b1": false, "/v1/evals/e1": false,
			"/chat/completion": true, "/v1/v1/chat/completions": true, "/api/v1/chat/completions": true,
		} {
			r := h.post(path, `{"model":"chat"}`)
			if code := r.code(t); r.status != 404 || code != "unknown_url" || strings.Contains(r.body, "base URL") != hint {
				t.Errorf("%s: got %d %s", path, r.status, r.body)
			}
		}
	})
}
