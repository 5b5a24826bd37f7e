package admin

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// fleet is a world of that size.
type fleet struct {
	*world
	conf    atomic.Pointer[config.Config]
	drained atomic.Pointer[string]
}

// newFleet is an admin port over a hundred backends and thirty routes, each of
// which leads to all of them: the largest that the page is made for. Every
// backend has a prior, one in ten is down, and names are as long as they get. Where
// it is busy, streams run on every route, and four routes have lost many.
func newFleet(t testing.TB, busy bool) *fleet {
	t.Helper()
	const backends, routes = 100, 30
	conf := &config.Config{Listen: "0.0.0.0:8080", Admin: config.Admin{Listen: "127.0.0.1:9090"}}
	topology := router.Topology{Replicas: 1}
	w := &fleet{world: &world{
		router: router.New(router.Options{Rand: func() float64 { return 0.5 }}),
		book:   profiles.NewBook(profiles.Options{}),
		errors: map[profiles.Target]LastError{},
	}}
	w.conf.Store(conf)
	now := time.Now()
	curves := router.Curves{ByTarget: map[profiles.Target]*profiles.Curve{}}
	var targets []router.RouteTarget
	var names []string
	for i := range backends {
		name := fmt.Sprintf("gpu-%03d-in-a-rack-whose-name-nobody-would-want-to-read-twice-x%02d", i, i%10)
		target := profiles.Target{Backend: name, Model: "meta-llama/Llama-3.1-70B-Instruct"}
		names = append(names, name)
		conf.Backends = append(conf.Backends, config.Backend{
			Name: name, Kind: "vllm", URL: fmt.Sprintf("http://gpu-%03d.example.internal:8000/v1", i),
			Labels: map[string]string{"gpu": "H200", "region": "eu"}, MaxConcurrency: 256, USDPerHour: 3.5,
		})
		topology.Backends = append(topology.Backends, router.Backend{Name: name, MaxConcurrency: 256})
		targets = append(targets, router.RouteTarget{Target: target})
		w.book.Ensure(target)
		w.book.Prior(target, []profiles.PriorPoint{{N: 1, TPS: 90}, {N: 8, TPS: 70}, {N: 32, TPS: 45}, {N: 128, TPS: 20}}, 0)
		curves.ByTarget[target] = w.book.Curve(target)
		if i%10 == 9 {
			w.errors[target] = LastError{Message: "dial tcp 10.0.0.9:8000: connect: connection refused", Since: now.Add(-time.Minute)}
		}
	}
	classes := map[string]string{}
	for i := range routes {
		name := fmt.Sprintf("team-%02d/model-of-a-team-with-a-long-name", i)
		slo := config.SLO{MinTPS: float64(10 + i), MaxTTFT: 2 * time.Second, Attainment: 0.99}
		classes[name] = "interactive"
		conf.Routes = append(conf.Routes, config.Route{Models: []string{name}, SLO: slo})
		topology.Routes = append(topology.Routes, router.Route{
			Name: name, Targets: targets, SLO: router.SLO{MinTPS: slo.MinTPS, MaxTTFT: slo.MaxTTFT},
			Reserve: 1, OnInfeasible: []router.Step{{Kind: router.Shed}}, MaxWaiting: 10,
		})
	}
	w.metrics = telemetry.New(classes, names, nil)
	w.router.Update(now, router.Configure{Topology: topology})
	w.router.Update(now, curves)
	for target := range w.errors {
		w.router.Update(now, router.BackendHealth{Backend: target.Backend, Health: router.Down})
	}
	for i := range routes {
		if !busy {
			break
		}
		name := topology.Routes[i].Name
		for j := range 40 {
			result := telemetry.Met
			if i%7 == 3 && j%2 == 0 {
				result = telemetry.Shed
			}
			w.metrics.Observe(telemetry.Exchange{Route: name, Backend: names[j], Outcome: "ok", Counted: true, Result: result, TPS: 41, TTFT: 300 * time.Millisecond})
		}
		for range 3 {
			if d := w.router.Place(now, router.Request{Route: name, Arrived: now, PromptTokens: 10, MaxTokens: 100, Stream: true}); d.Lease != nil {
				d.Lease.FirstToken(now)
				w.busy = append(w.busy, d.Lease)
			}
		}
	}
	w.watch = history.NewWatch(w.metrics.History())
	for s := range 5 { // a cause is said once it has lasted
		var seen history.Snapshot
		for i, name := range names {
			b := history.Backend{Name: name, Scale: 1}
			if i%10 == 9 {
				b.Health, b.BreakerOpen = history.IsDown, true
			}
			seen.Backends = append(seen.Backends, b)
		}
		w.watch.Tick(now.Add(time.Duration(s-5)*time.Second), seen)
	}
	w.handler = New(Options{
		Config: func() *config.Config { return w.conf.Load() }, Router: w.router, Book: w.book, Metrics: w.metrics, Watch: w.watch,
		LastErrors: func() map[profiles.Target]LastError { return w.errors },
		Drain:      func(backend string, _ bool) bool { w.drained.Store(&backend); return true },
	})
	return w
}

// secret configures the admin token.
func (w *fleet) secret(token string) {
	conf := *w.conf.Load()
	conf.Admin.Token = config.Secret(token)
	w.conf.Store(&conf)
}

// miss adds a request that a route did not keep its promise to.
func (w *fleet) miss(route string) {
	w.metrics.Observe(telemetry.Exchange{Route: route, Outcome: "ok", Counted: true, Result: telemetry.Missed, TPS: 3, TTFT: time.Second})
}
