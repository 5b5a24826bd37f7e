package main

import (
	"time"

	"github.com/pacer-dev/pacer/admin"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/fleet"
	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// live is what a scrape of the metrics shows of the router and the curves.
func (p *program) live() telemetry.Live {
	build := currentBuild()
	l := telemetry.Live{
		LogDropped: p.options.lines.Dropped(),
		Build:      telemetry.LiveBuild{Version: build.Version, Revision: build.Revision, Go: build.Go},
	}
	if cert := p.certificate.Load(); cert != nil {
		l.CertificateEnds = cert.Ends()
	}
	if p.options.discovered != nil {
		for _, d := range p.options.discovered() {
			l.Discoveries = append(l.Discoveries, telemetry.LiveDiscovery(d))
		}
	}
	now := time.Now()
	below := p.router.Below(now)
	cfg := p.fleet.Config()
	configured := map[string]config.Backend{}
	for _, b := range cfg.Backends {
		configured[b.Name] = b
	}
	for _, t := range fleet.Targets(fleet.Topology(cfg)) {
		l.Targets = append(l.Targets, p.liveTarget(t))
	}
	breakers, scales := p.fleet.Breakers(), p.scales(cfg)
	loads := map[string]router.BackendLoad{} // by backend
	for _, b := range p.router.Loads() {
		loads[b.Backend] = b
		lb := telemetry.LiveBackend{
			Name: b.Backend, Kind: configured[b.Backend].Kind, Waiting: b.Waiting, Decoding: b.Decoding, Scale: scales[b.Backend],
			Up: b.Health == router.Up && !b.Hung, BreakerState: breakerState(breakers[b.Backend]),
		}
		for id, n := range below {
			if id.Backend == b.Backend {
				lb.Below += n
			}
		}
		if configured[b.Backend].MetricsURL != "" {
			lb.Engine = &telemetry.LiveEngine{Up: b.Engine != nil, ForeignWaiting: b.ForeignWaiting, ForeignDecoding: b.ForeignDecoding}
		}
		l.Backends = append(l.Backends, lb)
	}
	for _, c := range p.watch.Causes() {
		lc := telemetry.LiveCause{Kind: c.Kind.String()}
		switch c.Of {
		case history.OfRoute:
			lc.Route = c.Name
		case history.OfBackend:
			lc.Backend = c.Name
		}
		l.Causes = append(l.Causes, lc)
	}
	goals := cfg.Goals()
	for _, r := range p.router.Routes(now) {
		lr := liveRoute(r, loads)
		lr.Goal = goals[r.Route.Name]
		l.Routes = append(l.Routes, lr)
	}
	return l
}

// liveRoute is what a scrape shows of a route. loads are by backend. One that takes
// nobody now has no capacity, whatever its curve says.
func liveRoute(r router.RouteState, loads map[string]router.BackendLoad) telemetry.LiveRoute {
	out := telemetry.LiveRoute{
		Name: r.Route.Name, Class: r.Route.Class.String(), Prefer: string(r.Route.Prefer),
		FloorTPS: r.Route.SLO.MinTPS, MaxTTFT: r.Route.SLO.MaxTTFT,
		Queued: r.Waiting, Capacity: map[string]int{}, Free: r.Free, Unlimited: r.Unlimited,
	}
	best := map[profiles.GroupID]int{}
	for i, t := range r.Route.Targets {
		if _, seen := out.Capacity[t.Backend]; !seen {
			out.Running += loads[t.Backend].M
			out.Capacity[t.Backend] = 0
		}
		if !takes(loads[t.Backend]) {
			continue
		}
		// Of several models that share a backend the best: each of them has
		// all of it. Separate ones add up.
		id, carries := t.GroupID(), r.Targets[i].Capacity
		more := max(carries-best[id], 0)
		best[id] += more
		out.Capacity[t.Backend] += more
	}
	return out
}

// liveTarget is what a scrape shows of a target. Its curve is not looked up in the
// list of the book: a late stream may have brought back one that is gone there, or
// was counted otherwise.
func (p *program) liveTarget(t profiles.Target) telemetry.LiveTarget {
	out := telemetry.LiveTarget{Backend: t.Backend, Model: t.Model, BytesPerToken: p.gateway.TextFacts(t).BytesPerToken}
	c := p.book.Curve(t)
	_, hi := c.Support()
	for n := 1; n <= 2*hi; n *= 2 {
		pt := c.At(n)
		out.Points = append(out.Points, telemetry.LivePoint{N: n, TPS: pt.TPS, Low: pt.Low})
	}
	return out
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
	last := p.gateway.LastErrors()
	for t, e := range last {
		out[t] = admin.LastError{Status: e.Status, Message: e.Message, Since: e.Since, Within: e.Within}
	}
	// What only the health page knows: no request has found out, or none since.
	failing := p.fleet.Failing()
	for _, t := range fleet.Targets(fleet.Topology(p.fleet.Config())) {
		if f, down := failing[t.Backend]; down && !last[t].Last.After(f.Since) {
			out[t] = admin.LastError{Message: f.Message, Since: f.Since}
		}
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
