package main

import (
	"bytes"
	"context"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

// apiHost is an API with two models, each with an engine of its own: m, which a
// house serves at its backend "a", and n. The gateway knows one backend.
type apiHost struct {
	*house
	n *sim.Server
}

const apiRoutes = `routes:
  - { model: chat, targets: [ { backend: a, model: m } ], slo: { min_tps: 30 }, on_infeasible: [ shed ] }
  - { model: n, targets: [ { backend: a } ], slo: { min_tps: 30 }, on_infeasible: [ shed ] }
  - { model: "*", targets: [ { backend: a } ] }
`

func newAPIHost(t *testing.T, models string) *apiHost {
	g := gpu{name: "a", model: carries38, seed: 1, kind: "openai", host: "api", conf: models}
	h := &apiHost{house: newHouse(t, []gpu{g}, apiRoutes, options{})}
	h.n = must.Get(sim.NewServer(sim.Options{Names: []string{"n"}, Model: carries64, Seed: 2}))(t)
	l, err := h.network.Listen("api.test:80")
	must.Do(t, err)
	server := &http.Server{Handler: http.HandlerFunc(h.serve)}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { h.n.Run(ctx) })
	running.Go(func() { server.Serve(l) })
	stop := h.stop
	h.stop = sync.OnceFunc(func() {
		stop()
		server.Close()
		cancel()
		running.Wait()
	})
	t.Cleanup(h.stop)
	return h
}

// serve sends a request to the engine of its model.
func (h *apiHost) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if strings.Contains(string(body), `"model":"n"`) {
		h.n.ServeHTTP(w, r)
		return
	}
	h.engines["a"].ServeHTTP(w, r)
}

// users streams closed-loop from so many users of each route, until d is over.
func (h *apiHost) users(d time.Duration, counts map[string]int) (byRoute map[string]*results) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	byRoute = map[string]*results{}
	var wg sync.WaitGroup
	for route, users := range counts {
		got := &results{}
		byRoute[route] = got
		for i := range users {
			wg.Go(func() {
				loadgen.Wait(ctx, time.Duration(i)*d/time.Duration(2*users))
				for k := 0; ctx.Err() == nil; k++ {
					got.add(h.client.Stream(context.Background(), loadgen.Request{Model: route, PromptTokens: 40, MaxTokens: 80 + 37*(i+k)%120}))
					loadgen.Wait(ctx, time.Duration(300+137*(i+k)%400)*time.Millisecond)
				}
			})
		}
	}
	wg.Wait()
	return byRoute
}

// worst is the largest error of a curve against what the engine did, over the
// levels with at least 2 % of its exposure.
func worst(c *profiles.Curve, truth sim.Truth) float64 {
	seconds, most := 0.0, 0.0
	for _, p := range truth.Points {
		seconds += p.StreamSeconds
	}
	for _, p := range truth.Points {
		if p.StreamSeconds >= 0.02*seconds {
			most = max(most, math.Abs(c.TPS(p.N)/p.TPS-1))
		}
	}
	return most
}

// Two models of one API that do not slow each other down: each curve is over its
// own users, everybody is admitted that the model carries, and all see it.
func TestSeparateModelsHaveCurvesOfTheirOwn(t *testing.T) {
	if racetest.On {
		t.Skip("80 s of 68 users: make numbers runs it")
	}
	synctest.Test(t, func(t *testing.T) {
		h := newAPIHost(t, ", models: separate")
		h.users(time.Minute, map[string]int{"chat": 24, "n": 44})
		h.idle()
		for _, c := range []struct {
			model string
			truth sim.Truth
		}{{"m", h.engines["a"].Truth()}, {"n", h.n.Truth()}} {
			curve := h.program.book.Curve(profiles.Target{Backend: "a", Model: c.model, Separate: true})
			if off := worst(curve, c.truth); off > 0.05 {
				t.Errorf("the curve of %s is off by %.1f %%, want at most 5 %%", c.model, 100*off)
			}
		}

		// Together 60 users: more than m carries, and each model carries its own.
		running := make(chan map[string]*results)
		go func() { running <- h.users(20*time.Second, map[string]int{"chat": 20, "n": 40}) }()
		sleep(15 * time.Second)
		h.shows(t)
		for route, got := range <-running {
			refused := got.count(func(r loadgen.Result) bool { return r.Outcome != loadgen.Done })
			slow := got.count(func(r loadgen.Result) bool { return r.Outcome == loadgen.Done && !r.Kept(30, time.Second) })
			if len(got.list) < 50 || refused > 0 || slow > 0 {
				t.Errorf("%s: of %d requests %d were refused, and %d fell below their floor; want none", route, len(got.list), refused, slow)
			}
		}
		h.idle()
	})
}

// shows checks what the admin port says while 20 users stream from m and 40
// from n, most of the time.
func (h *apiHost) shows(t *testing.T) {
	t.Helper()
	targets := answer[api.Profiles](h.house, "/api/v1/profiles").Targets
	by := map[string]api.InFlight{}
	for _, x := range targets {
		if !x.Separate {
			t.Errorf("%q is not told to be counted by itself", x.Model)
		}
		by[x.Model] = x.InFlight
	}
	m, n, rest := by["m"], by["n"], by[""]
	if len(targets) != 3 || rest != (api.InFlight{}) {
		t.Errorf("targets %+v, want m, n and an idle one for whatever clients name", targets)
	}
	if m.N < 10 || m.N > 20 || n.N < 25 || n.N > 40 || m.Decoding != m.N || n.Decoding != n.N || m.M != m.N+m.Waiting || n.M != n.N+n.Waiting {
		t.Errorf("in flight %+v on m and %+v on n, want each its own of 20 and 40 users", m, n)
	}
	metrics := h.page("/metrics")
	want := `pacer_inflight{backend="a",phase="decoding"} ` + strconv.Itoa(m.Decoding+n.Decoding)
	if !strings.Contains(metrics, want) {
		t.Errorf("the metrics do not say %s", want)
	}
	for _, model := range []string{"m", "n"} {
		if !strings.Contains(metrics, `pacer_curve_tps{backend="a",model="`+model+`",n="8"}`) {
			t.Errorf("the metrics have no curve of %s", model)
		}
	}
}

// Counted together, the users of one model are a load on the other.
func TestSharedModelsHaveOneN(t *testing.T) {
	if racetest.On {
		t.Skip("a minute of 68 users: make numbers runs it")
	}
	synctest.Test(t, func(t *testing.T) {
		h := newAPIHost(t, "")
		h.users(time.Minute, map[string]int{"chat": 24, "n": 44})
		if _, hi := h.curve("a").Support(); hi < 40 {
			t.Errorf("the curve of m reaches to n = %d, want the users of both models", hi)
		}
	})
}

// A reload that counts models otherwise drops no stream, begins other curves,
// and finds the old ones when it is taken back.
func TestReloadBetweenSharedAndSeparate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAPIHost(t, "")
		g := gpu{name: "a", kind: "openai", host: "api"}
		shared := houseConfig(t, []gpu{g}, apiRoutes)
		g.conf = ", models: separate"
		separate := houseConfig(t, []gpu{g}, apiRoutes)
		h.users(20*time.Second, map[string]int{"chat": 12})
		sleep(2 * time.Second)
		learned := h.curve("a").Tokens()
		backend := h.program.fleet.Backends()["a"]

		done := make(chan map[string]*results)
		go func() { done <- h.users(10*time.Second, map[string]int{"chat": 6, "n": 6}) }()
		sleep(6 * time.Second)
		before := h.program.router.Loads()[0]
		for _, cfg := range []*config.Config{separate, shared, separate} {
			must.Do(t, h.program.reload(cfg))
			if now := h.program.router.Loads()[0]; now.N != before.N || now.M != before.M {
				t.Errorf("after a reload n = %d and m = %d, want %d and %d as before", now.N, now.M, before.N, before.M)
			}
			h.page("/metrics")
		}
		for route, got := range <-done {
			if lost := got.count(func(r loadgen.Result) bool { return r.Outcome != loadgen.Done && r.Outcome != loadgen.Shed }); lost > 0 {
				t.Errorf("%s: %d streams were lost", route, lost)
			}
		}
		h.idle()
		if h.program.fleet.Backends()["a"] != backend {
			t.Error("the connection was made anew")
		}
		if l := h.program.router.Loads()[0]; l.Health != router.Up || len(l.Models) != 3 {
			t.Errorf("the backend has %+v, want it up with three models", l)
		}
		if c := h.program.book.Curve(profiles.Target{Backend: "a", Model: "m", Separate: true}); c.Tokens() >= learned {
			t.Errorf("the separate curve rests on %v tokens, want its own alone, fewer than %v", c.Tokens(), learned)
		}
		must.Do(t, h.program.reload(shared))
		sleep(3 * time.Second)
		if got := h.curve("a").Tokens(); got < 0.9*learned {
			t.Errorf("back at shared, the curve rests on %v tokens, want what was learned before: %v", got, learned)
		}
	})
}
