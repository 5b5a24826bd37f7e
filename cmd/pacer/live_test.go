package main

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/memnet"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// pacer_capacity_streams is the best that a backend does for a route at its
// floor, whatever the order of its targets: as many as the router lets in. What has
// no floor has no capacity.
func TestLiveCapacity(t *testing.T) {
	cfg := parsed(t, `
backends:
  - { name: a, url: http://a.test/v1 }
  - { name: api, url: http://api.test/v1, models: separate }
routes:
  - { model: chat, slo: { min_tps: 30 }, targets: [ { backend: a, model: fast }, { backend: a, model: slow } ] }
  - { model: free, targets: [ { backend: a, model: fast } ] }
  - { model: nightly, class: batch, targets: [ { backend: a, model: fast } ] }
  - { model: both, slo: { min_tps: 30 }, targets: [ { backend: api, model: fast }, { backend: api } ] }
  - { model: two, slo: { min_tps: 30 }, targets: [ { backend: a, model: fast }, { backend: api, model: fast } ] }
`)
	p, err := wire(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)), options{})
	must.Do(t, err)
	p.book.Prior(profiles.Target{Backend: "a", Model: "fast"}, []profiles.PriorPoint{{N: 1, TPS: 60}, {N: 40, TPS: 30.01}, {N: 64, TPS: 20}}, 0)
	p.book.Prior(profiles.Target{Backend: "a", Model: "slow"}, []profiles.PriorPoint{{N: 1, TPS: 40}, {N: 8, TPS: 30.01}, {N: 16, TPS: 20}}, 0)
	p.book.Prior(profiles.Target{Backend: "api", Model: "fast", Separate: true}, []profiles.PriorPoint{{N: 1, TPS: 60}, {N: 40, TPS: 30.01}, {N: 64, TPS: 20}}, 0)
	p.book.Prior(profiles.Target{Backend: "api", Model: "both", Separate: true}, []profiles.PriorPoint{{N: 1, TPS: 40}, {N: 8, TPS: 30.01}, {N: 16, TPS: 20}}, 0)
	curves := map[router.Target]*profiles.Curve{}
	for _, t := range p.book.Targets() {
		curves[t] = p.book.Curve(t)
	}
	now := time.Now()
	p.router.Update(now, router.Curves{ByTarget: curves})
	for name, least := range map[string]int{"chat": 20, "both": 20, "free": 0, "nightly": 0} {
		carries := map[string]int{}
		for _, r := range p.live().Routes {
			if r.Name == name {
				carries = r.Capacity
			}
		}
		capacity := carries["a"] + carries["api"]
		if capacity < least || least == 0 && capacity > 0 {
			t.Errorf("%s: capacity %v, want at least %d, and none without a floor", name, carries, least)
		}
		placed := 0
		for ; placed <= capacity && least > 0; placed++ {
			d := p.router.Place(now, router.Request{Route: name, Arrived: now, Stream: true, NoQueue: true})
			if d.Lease == nil {
				break
			}
			defer d.Lease.Done(now, 0)
		}
		if placed != capacity {
			t.Errorf("%s: %d were placed, the capacity is %d", name, placed, capacity)
		}
	}
	capacity := func() int {
		for _, r := range p.snapshot(now).Routes {
			if r.Name == "two" {
				return r.Capacity
			}
		}
		return -1
	}
	both := capacity()
	for _, h := range []router.Health{router.Up, router.Down, router.Probing, router.Loading, router.Draining} {
		p.router.Update(now, router.BackendHealth{Backend: "a", Health: h})
		if got := p.live().Backends[0]; got.Name != "a" || got.Up != (h == router.Up) {
			t.Errorf("backend %s with health %v is in service: %v", got.Name, h, got.Up)
		}
	}
	for _, h := range []router.Health{router.Down, router.Loading, router.Draining} {
		p.router.Update(now, router.BackendHealth{Backend: "a", Health: h})
		for _, r := range p.live().Routes {
			if got, has := r.Capacity["a"]; r.Name == "chat" && (got != 0 || !has) {
				t.Errorf("the capacity of a backend that takes nobody (%v) is %d, shown: %v; want 0", h, got, has)
			}
		}
		if got := capacity(); got <= 0 || got >= both {
			t.Errorf("one of two takes nobody (%v), and causes speak of a capacity of %d; both have %d", h, got, both)
		}
	}
}

// A backend that only its health page found dead says so as one does that a
// request found: nobody has asked it anything yet.
func TestWhatOnlyTheHealthPageKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := parsed(t, `
relay: goroutines
backends: [ { name: a, url: http://a.test/v1, kind: vllm } ]
routes: [ { model: chat, targets: [ { backend: a, model: m } ] } ]
`)
		var network memnet.Network // on which nobody listens
		p, err := wire(cfg, slog.New(slog.DiscardHandler), options{dial: network.Dial, listen: network.Listen})
		must.Do(t, err)
		if got := p.lastErrors(); len(got) > 0 {
			t.Errorf("before anybody looked: %v", got)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.fleet.Run(ctx) }()
		<-time.After(20 * time.Second)
		got := p.lastErrors()[profiles.Target{Backend: "a", Model: "m"}]
		if got.Message == "" || got.Status != 0 || got.Since.IsZero() || time.Since(got.Since) > 20*time.Second {
			t.Errorf("last error %+v, want what the health page met", got)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		p.fleet.Close()
	})
}
