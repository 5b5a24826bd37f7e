package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/fleet"
	"github.com/pacer-dev/pacer/gateway"
	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// watchEvery is how often it is looked what is wrong.
const watchEvery = time.Second

// watchAll feeds the history, and writes a line where something begins to be
// wrong and one where it ends, until ctx ends.
func (p *program) watchAll(ctx context.Context) error {
	return forEach(ctx, watchEvery, func(now time.Time) {
		s := p.snapshot(now)
		ring := p.metrics.History()
		ring.Advance(now)
		ring.Sample(s, p.watch.Speed)
		for _, line := range p.watch.Tick(now, s) {
			p.sayLine(line)
		}
	})
}

// mostNames is how many routes or backends a line names.
const mostNames = 5

func (p *program) sayLine(l history.Line) {
	if l.Kind == history.StoreDown || l.Kind == history.ConfigRefused {
		return // who met the error says it, with all of it
	}
	attrs := []any{"cause", l.Kind.String()}
	if l.Of != history.OfGateway {
		names := strings.Join(l.Names[:min(len(l.Names), mostNames)], ", ")
		if more := len(l.Names) - mostNames; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		attrs = append(attrs, l.Of.String(), names)
	}
	if l.Began {
		p.log.Warn(l.Text, append(attrs, "advice", l.Kind.Advice())...)
	} else {
		p.log.Info(l.Text, attrs...)
	}
}

// snapshot is how everything is now.
func (p *program) snapshot(now time.Time) history.Snapshot {
	cfg := p.fleet.Config()
	s := history.Snapshot{Store: history.Store{Shared: !cfg.Store.Memory, Up: p.shared.up.Load()}}
	if why := p.refused.Load(); why != nil {
		s.Refused = *why
	}
	breakers, failing, faults := p.fleet.Breakers(), p.fleet.Failing(), faultsOf(p.gateway.LastErrors())
	scales := p.scales(cfg)
	loads := map[string]router.BackendLoad{}
	for _, l := range p.router.Loads() {
		loads[l.Backend] = l
		s.Backends = append(s.Backends, history.Backend{
			Name: l.Backend, Health: healthWord(l.Health), Hung: l.Hung, Why: failing[l.Backend].Message, BreakerOpen: breakerState(breakers[l.Backend]) > 0,
			N: l.N, M: l.M, Faults: faults[l.Backend], Seen: l.Seen, Expected: l.Expected, Compared: l.Compared, Scale: scales[l.Backend],
		})
	}
	goals := cfg.Goals()
	for _, state := range p.router.Routes(now) {
		s.Routes = append(s.Routes, p.routeNow(state, goals[state.Route.Name], loads))
	}
	return s
}

// routeNow is one route. loads are by backend.
func (p *program) routeNow(state router.RouteState, goal float64, loads map[string]router.BackendLoad) history.Route {
	r := history.Route{Name: state.Route.Name, Goal: goal, Free: float64(state.Free), Waiting: state.Waiting, Best: math.NaN(), Bound: true}
	if state.Unlimited {
		r.Free = math.NaN()
	}
	if state.Route.Class == router.Interactive {
		r.Floor = state.Route.SLO.MinTPS
	}
	for backend, carries := range liveRoute(state, loads).Capacity {
		if takes(loads[backend]) { // who ends elsewhere asks for nothing
			r.Load += loads[backend].M
			r.Capacity += carries
		}
	}
	known := true
	out := map[profiles.GroupID]int{}
	for i, t := range state.Route.Targets {
		room := state.Targets[i]
		if !takes(loads[t.Backend]) {
			more := max(room.Capacity-out[t.GroupID()], 0)
			out[t.GroupID()] += more
			r.Out += more
		}
		if !slices.Contains(r.Backends, t.Backend) {
			r.Backends = append(r.Backends, t.Backend)
		}
		r.Bound = r.Bound && (room.Capacity > 0 || !takes(loads[t.Backend]))
		if room.Capacity > 0 || room.CapacityLowerBound {
			known = false
			continue
		}
		c := p.book.Curve(t.Target)
		known = known && c.Known()
		// As the router judges a stream that is alone.
		alone := c.AtRho(1, 0)
		for _, bound := range []float64{alone.Low, c.Low(1, 0), alone.TPS * (1 - c.Shown())} {
			if !math.IsNaN(bound) && !(r.Best > bound) {
				r.Best = bound
			}
		}
	}
	r.Unattainable = known && r.Floor > 0 && r.Best < r.Floor
	return r
}

// scales are how fast the engines are, by their curves, of what they were before
// they changed; by backend.
func (p *program) scales(cfg *config.Config) map[string]float64 {
	out := map[string]float64{}
	for _, t := range fleet.Targets(fleet.Topology(cfg)) {
		c := p.book.Curve(t)
		if was, ok := out[t.Backend]; c.Known() && (!ok || c.Scale() < was) {
			out[t.Backend] = c.Scale()
		}
	}
	for _, b := range cfg.Backends {
		if _, ok := out[b.Name]; !ok {
			out[b.Name] = math.NaN()
		}
	}
	return out
}

// faultsOf are the last errors of the targets, by backend. What fails within answers serves
// others: how many requests fail there tells whether that is a cause.
func faultsOf(errors map[profiles.Target]gateway.LastError) map[string][]history.Fault {
	out := map[string][]history.Fault{}
	for t, e := range errors {
		if e.Within {
			continue
		}
		out[t.Backend] = append(out[t.Backend], history.Fault{Model: t.Model, Status: e.Status, Message: e.Message, Count: e.Count, Last: e.Last})
	}
	return out
}

// takes reports whether a backend takes anybody who can go elsewhere.
func takes(l router.BackendLoad) bool {
	return (l.Health == router.Up || l.Health == router.Probing) && !l.Hung
}

func healthWord(h router.Health) history.Health {
	switch h {
	case router.Up:
		return history.IsUp
	case router.Probing:
		return history.IsProbed
	case router.Loading:
		return history.IsLoading
	case router.Draining:
		return history.IsDrained
	}
	return history.IsDown
}
