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
			if !ok {
				q.stays(t, &r.scratch.asking, at)
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

const (
	// leastTried in a line are tried in one waking, or as many as have mostAsked targets
	// together, those of the other lines among them; and as many of those who failed over,
	// and of those whose first token would be late, among the next mostLooked of either
	// turns: while nobody can go, that is what each release costs.
	leastTried = 4
	mostAsked  = 64
	mostLooked = 64
)

// waking is what one round of waking has found out about a line: it says whom to try next.
// A round is for what came free at one backend, or anywhere.
type waking struct {
	round      uint64
	failed     []demand // of those who could not go
	failedOver int      // of them, those who had failed over: another one may go where they may not
	late       int      // how many more could not go only because their first token would be late
}

// begin forgets what an earlier round found out.
func (w *waking) begin(round uint64) {
	if w.round != round {
		*w = waking{round: round, failed: w.failed[:0]}
	}
}

// areOver reports whether so many were tried in vain that the round ends.
func (w *waking) areOver(most int) bool {
	return len(w.failed)-w.failedOver == most || w.late == most
}

// worth reports whether t may get a place at a backend, nil = anywhere: it was not tried,
// does not wait for a place elsewhere, and asks for less than all who could not go.
func (w *waking) worth(t *Ticket, at *backend, most int) bool {
	switch {
	case t.tried == w.round:
		return false
	case t.warmer != nil && at != nil && t.warmer.backend != at:
		return false
	case t.failedOver() && w.failedOver == most:
		return false
	}
	return !slices.ContainsFunc(w.failed, func(d demand) bool { return d.covers(t.demand) })
}

// letPass reports whether its tenant's next may be tried before t, which cannot go now.
// Who failed over may not go everywhere, and who waits for a warm place goes nowhere else.
// Behind a few whose first token would be late are others who have more time left. One who
// comes back as told is passed until it has once stood in line in vain.
func (w *waking) letPass(t *Ticket) bool {
	return t.failedOver() || t.warmer != nil ||
		t.late && t.tried == w.round && w.late < leastTried ||
		t.back() && !t.inVain
}

// next returns who is to be tried in a round for what came free at a backend, nil = anywhere.
// Those who come back as told are before all others. Among either, tenants take turns, and
// who could not go keeps the turn. most is how many may be tried in vain. nil = nobody else
// is worth a try.
func (q *line) next(round uint64, at *backend, most int) *Ticket {
	q.waking.begin(round)
	if q.waking.areOver(most) {
		return nil
	}
	for _, in := range []*turns{&q.told, &q.fresh} {
		looked := 0 // those who come back, or move, use up nothing of the others'
		for own := in.front; own != nil && looked < mostLooked; own = own.next {
			if in == &q.fresh && q.told.holds(own.tenant) {
				looked++
				continue
			}
			t, n := q.waking.nextOf(own, at, most, mostLooked-looked)
			if t != nil {
				return t
			}
			looked += n
		}
	}
	return nil
}

// nextOf returns which of a tenant's is to be tried, and how many it looked at, of so many
// at most. A prompt that alone keeps its request out is passed, too, but only by requests
// whose own prompt is cached.
func (w *waking) nextOf(own *turn, at *backend, most, looks int) (next *Ticket, looked int) {
	cachedOnly := false
	for _, t := range own.tickets {
		looked++
		if w.worth(t, at, most) && (!cachedOnly || t.demand.cached) {
			return t, looked
		}
		if !w.letPass(t) {
			if !t.dear || t.tried != w.round {
				break
			}
			cachedOnly = true
		}
		if looked == looks {
			break
		}
	}
	return nil, looked
}

// stays notes why t, for whom a was just asked, goes on waiting: that says who may pass it.
func (q *line) stays(t *Ticket, a *ask, at *backend) {
	w := &q.waking
	t.tried = w.round
	if t.warmer != nil {
		return
	}
	t.late = slices.ContainsFunc(a.verdicts, func(v verdict) bool {
		return v.reason == ReasonTTFT && (at == nil || v.model.group.backend == at)
	})
	if t.late {
		t.dear = false
		w.late++
		return
	}
	t.dear = slices.ContainsFunc(a.verdicts, func(v verdict) bool { return v.dear(a, t.demand) })
	d := t.demand
	d.picky = slices.ContainsFunc(a.verdicts, func(v verdict) bool { return v.reason == ReasonRefuses })
	w.failed = append(w.failed, d)
	if t.failedOver() {
		w.failedOver++
	}
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
