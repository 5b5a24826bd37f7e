package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
)

// A hundred reloads while forty clients stream: backends come, go, change their
// engine, their key and their price, and every third configuration cannot be
// used. No stream is dropped, and nothing is counted at the end.
func TestAHundredReloadsDropNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := gpu{name: "a", model: carries64, seed: 1}, gpu{name: "b", model: carries64, seed: 2}, gpu{name: "c", model: carries64, seed: 3}
		routes := func(targets ...string) string {
			var list []string
			for _, name := range targets {
				list = append(list, "{ backend: "+name+", model: m }")
			}
			return "routes:\n  - { model: chat, targets: [ " + strings.Join(list, ", ") + " ] }\n"
		}
		h := newHouse(t, []gpu{a, b, c}, routes("a", "b", "c"), options{})
		swapped, keyed := a, b
		separate := a
		separate.conf = ", models: separate"
		swapped.host, keyed.conf = "c", ", api_key: new, price: { input: 1, output: 2 }"
		worlds := []*config.Config{
			houseConfig(t, []gpu{a, b}, routes("a", "b")),
			houseConfig(t, []gpu{b, c}, routes("c", "b")),
			houseConfig(t, []gpu{swapped, b}, routes("a", "b")),
			houseConfig(t, []gpu{a, keyed, c}, routes("a", "b", "c")),
			houseConfig(t, []gpu{c}, routes("c")),
			houseConfig(t, []gpu{separate, b}, routes("a", "b")),
		}
		broken := *worlds[0]
		broken.Backends = append([]config.Backend(nil), broken.Backends...)
		broken.Backends[0].CAFile = t.TempDir() + "/gone.pem"

		ctx, stop := context.WithCancel(context.Background())
		var clients sync.WaitGroup
		var got results
		for i := range 40 {
			clients.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					got.add(h.client.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 50, MaxTokens: 20 + 37*(i+n)%300}))
				}
			})
		}
		for i := range 100 {
			sleep(200 * time.Millisecond)
			if i%3 == 2 {
				before := h.program.fleet.Config()
				if err := h.program.reload(&broken); err == nil {
					t.Fatal("a configuration whose ca_file is gone was put into force")
				}
				if h.program.fleet.Config() != before {
					t.Fatal("a refused configuration is in force")
				}
				continue
			}
			if err := h.program.reload(worlds[(i-i/3)%len(worlds)]); err != nil {
				t.Fatalf("reload %d: %v", i, err)
			}
		}
		stop()
		clients.Wait()
		if failed := got.count(func(r loadgen.Result) bool { return r.Outcome != loadgen.Done }); failed > 0 {
			t.Errorf("%d of %d streams were dropped", failed, len(got.list))
		}
		if len(got.list) < 200 {
			t.Errorf("only %d streams: no load", len(got.list))
		}
		h.idle()
		// A request of an older configuration may have made its target known again.
		must.Do(t, h.program.reload(worlds[0]))
		if n := len(h.program.book.Targets()); n != len(h.program.fleet.Config().Backends) {
			t.Errorf("%d targets are known, %d are configured", n, len(h.program.fleet.Config().Backends))
		}
	})
}

// served is who answers a short request.
func (h *house) served() string {
	return h.client.Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: 5}).Backend
}

// An operator's drain: what runs goes on, nothing new comes, a reload does not
// forget it, and resume takes the backend back.
func TestDrainAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := gpu{name: "a", model: carries64, seed: 1}, gpu{name: "b", model: carries64, seed: 2}
		two := "routes:\n  - { model: chat, targets: [ { backend: a, model: m }, { backend: b, model: m } ], prefer: order }\n"
		h := newHouse(t, []gpu{a, b}, two, options{})
		var running sync.WaitGroup
		var long results
		running.Go(func() {
			long.add(h.client.Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: 2000}))
		})
		sleep(time.Second)
		post := func(path, token string) int {
			r := must.Get(http.NewRequest(http.MethodPost, "http://127.0.0.1:9090/api/v1/backends/"+path, nil))(t)
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			resp := must.Get(h.client.HTTP.Do(r))(t)
			resp.Body.Close()
			return resp.StatusCode
		}
		if got := h.served(); got != "a" {
			t.Fatalf("served by %q, want a", got)
		}
		for token, want := range map[string]int{"": 401, "guess": 401, "operator": 200} {
			if got := post("a/drain", token); got != want {
				t.Errorf("drain with token %q: %d, want %d", token, got, want)
			}
		}
		if got := post("nobody/drain", "operator"); got != 404 {
			t.Errorf("drain of an unknown backend: %d, want 404", got)
		}
		if got := h.served(); got != "b" {
			t.Errorf("served by %q while a is drained, want b", got)
		}
		keyed := a
		keyed.conf = ", api_key: other"
		must.Do(t, h.program.reload(houseConfig(t, []gpu{keyed, b}, two)))
		if got := h.served(); got != "b" {
			t.Errorf("served by %q: the reload forgot the drain", got)
		}
		if got := post("a/resume", "operator"); got != 200 {
			t.Errorf("resume: %d", got)
		}
		if got := h.served(); got != "a" {
			t.Errorf("served by %q after resume, want a", got)
		}
		running.Wait()
		if long.list[0].Outcome != loadgen.Done || long.list[0].Tokens != 2000 {
			t.Errorf("the stream that ran when its backend was drained: %v, %d tokens", long.list[0].Outcome, long.list[0].Tokens)
		}
		h.idle()
	})
}

// Who waits in line when a reload brings a new backend is served by it, though
// the request began with a configuration that does not know it; and so is who
// waits for a backend whose engine is replaced.
func TestAWaiterIsServedByWhatAReloadBrings(t *testing.T) {
	for name, bring := range map[string]func(a, b gpu) []gpu{
		"a new backend": func(a, b gpu) []gpu { return []gpu{a, b} },
		"a new engine":  func(a, _ gpu) []gpu { a.host = "b"; return []gpu{a} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := gpu{name: "a", model: carries64, seed: 1, conf: ", max_concurrency: 1"}, gpu{name: "b", model: carries64, seed: 2}
				routes := func(targets string) string {
					return "routes:\n  - { model: chat, targets: [ { backend: a, model: m }" + targets + " ], on_infeasible: [ { queue: 60s }, shed ] }\n"
				}
				h := newHouse(t, []gpu{a, b}, routes(""), options{})
				var clients sync.WaitGroup
				var got results
				for range 2 {
					clients.Go(func() {
						got.add(h.client.Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: 500}))
					})
					sleep(time.Second)
				}
				if running := h.engines["b"].Truth().Running; running != 0 {
					t.Fatalf("%d run on the new engine before the reload", running)
				}
				world, targets := bring(a, b), ""
				if len(world) > 1 {
					targets = ", { backend: b, model: m }"
				}
				must.Do(t, h.program.reload(houseConfig(t, world, routes(targets))))
				sleep(time.Second)
				if running := h.engines["b"].Truth().Running; running != 1 {
					t.Errorf("%d run on the new engine, want the one that waited", running)
				}
				clients.Wait()
				if done := got.count(func(r loadgen.Result) bool { return r.Outcome == loadgen.Done }); done != 2 {
					t.Errorf("%d of 2 were served", done)
				}
				h.idle()
			})
		})
	}
}

// An engine that dies while nobody asks is out of service within seconds, and
// back in service when it is back: no request has to find out.
func TestADeadEngineIsKnownBeforeARequestFindsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := gpu{name: "a", model: carries64, seed: 1}, gpu{name: "b", model: carries64, seed: 2}
		h := newHouse(t, []gpu{a, b}, "routes:\n  - { model: chat, targets: [ { backend: a, model: m }, { backend: b, model: m } ], prefer: order }\n", options{})
		var running sync.WaitGroup
		defer running.Wait()
		sleep(3 * time.Second)
		if got := h.served(); got != "a" {
			t.Fatalf("served by %q, want a", got)
		}
		h.servers["a"].Close()
		sleep(9 * time.Second)
		if health := h.program.router.Loads()[0].Health.String(); health != "down" {
			t.Errorf("a is %s, 9 s after it died", health)
		}
		if state := h.program.fleet.Breakers()["a"].String(); state != "closed" {
			t.Errorf("the breaker is %s: a request found out", state)
		}
		if a := answer[api.Profiles](h, "/api/v1/profiles").Targets[0]; a.Health != "down" || a.Breaker != "closed" {
			t.Errorf("the admin port does not say that a is down and its breaker closed, as the metrics do: %+v", a)
		}
		if got := h.served(); got != "b" {
			t.Errorf("served by %q, want b", got)
		}
		h.serveEngine("a", &running)
		sleep(2 * time.Second)
		if got := h.served(); got != "a" {
			t.Errorf("served by %q, want a, which is back", got)
		}
		h.stop()
	})
}

// What an operator said of an engine that is discovered holds while its address
// is missing, as it is while the engine is restarted; one that died while it was
// drained comes back slowly; and a drained backend with another engine does not
// take a request before the router is told.
func TestADrainOutlivesTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := gpu{name: "a", model: carries64, seed: 1}, gpu{name: "b", model: carries64, seed: 2}
		both := "routes:\n  - { model: chat, targets: [ { backend: a, model: m }, { backend: b, model: m } ], prefer: order }\n"
		only := "routes:\n  - { model: chat, targets: [ { backend: b, model: m } ] }\n"
		h := newHouse(t, []gpu{a, b, {name: "c", model: carries64}}, both, options{})
		health := func() string { return h.program.router.Loads()[0].Health.String() }
		if !h.program.fleet.Drain("a", true) {
			t.Fatal("there is no a")
		}
		for _, world := range []struct {
			gpus   []gpu
			routes string
		}{{[]gpu{b}, only}, {[]gpu{a, b}, both}} {
			must.Do(t, h.program.reload(houseConfig(t, world.gpus, world.routes)))
		}
		if got := health(); got != "draining" {
			t.Errorf("a is %s: it was gone for a while, and is still drained", got)
		}

		must.Do(t, h.program.reload(houseConfig(t, []gpu{b}, only)))
		w := httptest.NewRecorder()
		resume := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:9090/api/v1/backends/a/resume", nil)
		resume.Header.Set("Authorization", "Bearer operator")
		if h.program.admin.ServeHTTP(w, resume); w.Code != 200 || !strings.Contains(w.Body.String(), `"health":"gone"`) {
			t.Errorf("a backend that is drained and gone is resumed with %d %s", w.Code, w.Body)
		}
		if h.program.fleet.Drain("a", false) || h.program.fleet.Drain("a", true) {
			t.Error("a backend that is gone is drained")
		}
		must.Do(t, h.program.reload(houseConfig(t, []gpu{a, b}, both)))
		if got := health(); got != "up" {
			t.Errorf("a is %s after resume", got)
		}
		h.stop()
	})
}

// An engine that was restarted while it was drained starts slowly when it is
// resumed, as every other that was down.
func TestARestartWhileDrainedStartsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := gpu{name: "a", model: carries64, seed: 1, conf: ", prior: { 1: 50, 64: 49 }"}
		h := newHouse(t, []gpu{a}, "routes:\n  - { model: chat, targets: [ { backend: a, model: m } ], slo: { min_tps: 10 } }\n", options{})
		free := func() int { return h.program.router.Routes(time.Now())[0].Free }
		before := free()
		var running sync.WaitGroup
		defer running.Wait()
		h.program.fleet.Drain("a", true)
		h.servers["a"].Close()
		sleep(10 * time.Second)
		if got := h.program.router.Loads()[0].Health.String(); got != "draining" {
			t.Errorf("a is %s, drained and dead", got)
		}
		h.serveEngine("a", &running)
		sleep(3 * time.Second)
		h.program.fleet.Drain("a", false)
		if after := free(); before <= 4 || after != 4 {
			t.Errorf("%d users fit before the restart and %d after it, want more than 4, and 4: it is cold", before, after)
		}
		h.stop()
	})
}
