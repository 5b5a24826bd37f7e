package router

import (
	"slices"
	"time"
)

// wake lets go who can go now: interactive before batch, the earliest deadline
// first among the next of each route, nobody before somebody of his own tenant
// and route. at is the backend where something came free, nil when it may be
// anywhere.
func (r *Router) wake(now time.Time, at *backend) []Grant {
	grants := r.lines.displaced
	r.lines.displaced = nil
	if r.lines.waiting == 0 {
		return grants
	}
	r.look(now) // whose lead was the least may be gone
	routes := r.routes
	if at != nil {
		routes = at.routes
	}
	order := [classes]Class{Interactive, Batch}
	if batchIsDue(routes) {
		order = [classes]Class{Batch, Interactive}
	}
	for _, class := range order {
		r.lines.round++
		r.scratch.over(routes, class, r.lines.round)
		for t := r.scratch.nextInLine(at); t != nil; t = r.scratch.nextInLine(at) {
			q := &t.route.lines[class]
			d, ok := r.serve(now, t)
			if !ok && t.warmer != nil {
				t.tried = r.lines.round
				continue
			}
			if t.late = !ok && slices.ContainsFunc(r.scratch.verdicts, func(v verdict) bool { return v.reason == ReasonTTFT && (at == nil || v.model.group.backend == at) }); t.late {
				t.tried, t.dear = r.lines.round, false
				q.late++
				continue
			}
			if !ok {
				t.dear = slices.ContainsFunc(r.scratch.verdicts, func(v verdict) bool { return v.dear(&r.scratch.asking, t.demand) })
				q.stuck(t, r.lines.round, slices.ContainsFunc(r.scratch.verdicts, func(v verdict) bool { return v.reason == ReasonRefuses }))
				continue
			}
			if d.Lease != nil {
				q.turns(t.back()).served(t.req.Tenant)
			}
			t.state, t.decision = granted, d
			grants = append(grants, Grant{Ticket: t, Waiter: t.req.Waiter, Decision: d})
		}
	}
	clear(r.scratch.lines[:cap(r.scratch.lines)]) // who is gone is held by nobody
	return grants
}

// queued is a line, and who is to be tried next in it.
type queued struct {
	line  *line
	next  *Ticket // nil = nobody
	known bool    // that is so
}

// over sets s up for a round of waking over the lines of these routes.
func (s *scratch) over(routes []*route, class Class, round uint64) {
	s.lines, s.round = s.lines[:0], round
	targets := 0
	for _, rt := range routes {
		if q := &rt.lines[class]; q.len() > 0 {
			s.lines = append(s.lines, queued{line: q})
			targets += len(rt.models)
		}
	}
	s.most = max(leastTried, mostAsked/max(targets, 1))
}

// nextInLine returns the earliest deadline among the next of every line. Who is tried
// changes no line but its own, so of the others each is asked once.
func (s *scratch) nextInLine(at *backend) *Ticket {
	var first *queued
	for i := range s.lines {
		q := &s.lines[i]
		if !q.known {
			q.next, q.known = q.line.next(s.round, at, s.most), true
		}
		if q.next != nil && (first == nil || compareTickets(q.next, first.next) < 0) {
			first = q
		}
	}
	if first == nil {
		return nil
	}
	first.known = false
	return first.next
}

// serve tries to place one who waits; ok is false if it has to go on
// waiting. It is refused when waiting became pointless.
func (r *Router) serve(now time.Time, t *Ticket) (d Decision, ok bool) {
	a := &r.scratch.asking
	*a = t.ask(now)
	r.judge(a)
	t.demand = demandOf(a)
	v := r.choose(a)
	var g *group
	if !t.req.Moves {
		if g, _ = v.warmer(a); g != nil && v.suits(a) {
			g = nil
		}
		if g == nil {
			g = v.behind(a)
		}
	}
	r.waitsFor(t, g)
	if bids := g == nil && v != nil && r.peers.bids(a, v); bids || g != nil {
		if !bids {
			a.bid = bid{}
		}
		t.bidsFor(a.bid)
		return Decision{}, false
	}
	if v != nil {
		r.exit(t)
		p := a.onto(v, OutcomeGranted)
		return r.carryOut(a, &p), true
	}
	t.bidsFor(bid{})
	if pointless, _ := a.unattainable(); pointless {
		r.exit(t)
		p := r.planSteps(a, t.steps, ShedFloor)
		return r.carryOut(a, &p), true
	}
	return Decision{}, false
}

// dear reports whether a's prompt alone keeps it out where v is about, which becomes no
// shorter because others wait: leads cannot pay for it there, or most of it is cached, and
// elsewhere.
func (v *verdict) dear(a *ask, d demand) bool {
	switch {
	case v.reason != ReasonProtects || v.basis == ByClearing:
		return false
	case v.basis == ByLead:
		return true
	}
	return d.cached && 2*a.toPrefill(v.model) > a.prompt
}

// dismiss refuses everybody who waits on a route that is no more.
func (r *Router) dismiss(now time.Time, rt *route) []Grant {
	var grants []Grant
	for class := range rt.lines {
		for t := rt.lines[class].first(); t != nil; t = rt.lines[class].first() {
			r.exit(t)
			a := t.ask(now)
			t.state = granted
			t.decision = r.carryOut(&a, &intent{outcome: OutcomeNoBackend, policy: string(rt.conf.Prefer), cause: NoBackend})
			grants = append(grants, Grant{Ticket: t, Waiter: t.req.Waiter, Decision: t.decision})
		}
	}
	return grants
}
