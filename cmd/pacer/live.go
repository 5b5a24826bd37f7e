package main

import (
	"time"

	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/router"
)

// live is what a scrape of the metrics shows of the router and the curves.
func (p *program) live() telemetry.Live {
	var l telemetry.Live
	for _, b := range p.router.Loads() {
		l.Backends = append(l.Backends, telemetry.LiveBackend{
			Name: b.Backend, Waiting: b.Waiting, Decoding: b.Decoding, BreakerState: breakerState(b.Health),
		})
	}
	for _, r := range p.router.Routes(time.Now()) {
		lr := telemetry.LiveRoute{Name: r.Route.Name, Queued: r.Waiting, Capacity: map[string]int{}}
		for _, t := range r.Route.Targets {
			lr.Capacity[t.Backend] = p.book.Curve(t.Target).MaxConcurrency(r.Route.SLO.MinTPS)
		}
		l.Routes = append(l.Routes, lr)
	}
	for _, t := range p.book.Targets() {
		c := p.book.Curve(t)
		lt := telemetry.LiveTarget{Backend: t.Backend, Model: t.Model}
		_, hi := c.Support()
		for n := 1; n <= 2*hi; n *= 2 {
			pt := c.At(n)
			lt.Points = append(lt.Points, telemetry.LivePoint{N: n, TPS: pt.TPS, Low: pt.Low})
		}
		l.Targets = append(l.Targets, lt)
	}
	return l
}

// breakerState is the value of pacer_breaker_state: 0 closed, 1 half-open,
// 2 open.
func breakerState(h router.Health) int {
	switch h {
	case router.Probing:
		return 1
	case router.Down:
		return 2
	}
	return 0
}
