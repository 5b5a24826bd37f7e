package main

import (
	"time"

	"github.com/pacer-dev/pacer/admin"
	"github.com/pacer-dev/pacer/fleet"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// live is what a scrape of the metrics shows of the router and the curves.
func (p *program) live() telemetry.Live {
	l := telemetry.Live{LogDropped: p.options.lines.Dropped()}
	now := time.Now()
	below := p.router.Below(now)
	cfg := p.fleet.Config()
	scraped := map[string]bool{}
	for _, b := range cfg.Backends {
		scraped[b.Name] = b.MetricsURL != ""
	}
	breakers := p.fleet.Breakers()
	for _, b := range p.router.Loads() {
		lb := telemetry.LiveBackend{
			Name: b.Backend, Waiting: b.Waiting, Decoding: b.Decoding,
			Up: b.Health == router.Up || b.Health == router.Probing, BreakerState: breakerState(breakers[b.Backend]),
		}
		for id, n := range below {
			if id.Backend == b.Backend {
				lb.Below += n
			}
		}
		if scraped[b.Backend] {
			lb.Engine = &telemetry.LiveEngine{Up: b.Engine != nil, ForeignWaiting: b.ForeignWaiting, ForeignDecoding: b.ForeignDecoding}
		}
		l.Backends = append(l.Backends, lb)
	}
	for _, r := range p.router.Routes(now) {
		lr := telemetry.LiveRoute{Name: r.Route.Name, Queued: r.Waiting, Capacity: map[string]int{}}
		best := map[profiles.GroupID]int{}
		for i, t := range r.Route.Targets {
			// Of several models that share a backend the best: each of them has
			// all of it. Separate ones add up.
			id, carries := t.GroupID(), r.Targets[i].Capacity
			more := max(carries-best[id], 0)
			best[id] += more
			lr.Capacity[t.Backend] += more
		}
		l.Routes = append(l.Routes, lr)
	}
	// Not those of the book: a late stream may have brought back a target that is
	// gone, or was counted otherwise.
	for _, t := range fleet.Targets(fleet.Topology(cfg)) {
		c := p.book.Curve(t)
		lt := telemetry.LiveTarget{Backend: t.Backend, Model: t.Model, BytesPerToken: p.gateway.BytesPerToken(t)}
		_, hi := c.Support()
		for n := 1; n <= 2*hi; n *= 2 {
			pt := c.At(n)
			lt.Points = append(lt.Points, telemetry.LivePoint{N: n, TPS: pt.TPS, Low: pt.Low})
		}
		l.Targets = append(l.Targets, lt)
	}
	return l
}

// breakers returns the states of all breakers in the words of the admin port.
func (p *program) breakers() map[string]string {
	out := map[string]string{}
	for name, h := range p.fleet.Breakers() {
		out[name] = [...]string{"closed", "half_open", "open"}[breakerState(h)]
	}
	return out
}

// lastErrors returns what went wrong at the targets, for the admin port.
func (p *program) lastErrors() map[profiles.Target]admin.LastError {
	out := map[profiles.Target]admin.LastError{}
	for t, last := range p.gateway.LastErrors() {
		out[t] = admin.LastError(last)
	}
	return out
}

// breakerState is the value of pacer_breaker_state: 0 closed, 1 half-open,
// 2 open.
func breakerState(h providers.Health) int {
	switch h {
	case providers.HalfOpen:
		return 1
	case providers.Open:
		return 2
	}
	return 0
}
