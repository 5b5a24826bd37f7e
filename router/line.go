package router

import (
	"slices"
	"time"
)

// line is one class's waiting line of one route. Who comes back as told goes
// before all others: else a crowd that comes as somebody new each time, and has
// a turn each time, would be served before those who did what they were told. What
// a tenant asks for the first time waits while one of its own that came back
// cannot go, however little it asks for: else long prompts, for which a place is free least
// often, would be passed until they are refused again. The zero value is empty.
type line struct {
	told  turns // who comes back as told
	fresh turns // everybody else

	patient int // of both, who wait for a place where their prompt is cached
	moving  int // of told, who have a place where they wait in vain, see Request.Moves

	waking waking
}

func (q *line) len() int { return q.told.waiting + q.fresh.waiting }

// blocks reports whether somebody is in line who takes whatever place there is.
func (q *line) blocks() bool { return q.len() > q.patient }

// stopping is how many a newcomer would pass. Who has a place elsewhere is asked
// first whenever one comes free, so what is there for a newcomer is not for him.
func (q *line) stopping() int { return q.len() - q.patient - q.moving }

// turns returns those among whom one takes turns that comes back, or does not.
func (q *line) turns(back bool) *turns {
	if back {
		return &q.told
	}
	return &q.fresh
}

// of is how many of tenant are in line.
func (q *line) of(tenant string) int { return q.told.of(tenant) + q.fresh.of(tenant) }

// first returns who is next, nil if nobody waits.
func (q *line) first() *Ticket {
	if t := q.told.first(); t != nil {
		return t
	}
	return q.fresh.first()
}

// before is at most how many in line go before a, which is due then.
func (q *line) before(a *ask, due time.Time) int {
	if a.back() {
		return q.told.before(a.req.Tenant, due)
	}
	return q.told.waiting + q.fresh.before(a.req.Tenant, due)
}

// demand is what a ticket asks of a backend, as far as one that could not be
// placed says something about another.
type demand struct {
	floor   float64
	weight  int
	prompt  int      // tokens that have to be computed where the most of it is cached
	most    int      // and where the least is
	cached  bool     // prompt is less than half of all
	exclude []string // backends that will not do
	picky   bool     // others may do for somebody else
}

// demandOf is what a asks of its targets.
func demandOf(a *ask) demand {
	d := demand{floor: a.floor, weight: a.weight, prompt: a.prompt, most: a.prompt, exclude: a.req.Exclude}
	if len(a.req.Warm) == 0 {
		return d
	}
	d.most = 0
	for _, m := range a.route.models {
		if m != nil {
			left := a.toPrefill(m)
			d.prompt, d.most = min(d.prompt, left), max(d.most, left)
		}
	}
	d.cached = 2*d.prompt < a.prompt
	return d
}

// covers reports whether who asks for o cannot be placed either: it asks for no less
// anywhere than d does where that asks for the most.
func (d demand) covers(o demand) bool {
	if d.picky || o.floor < d.floor || o.weight < d.weight || o.prompt < d.most {
		return false
	}
	for _, name := range d.exclude {
		if !slices.Contains(o.exclude, name) {
			return false
		}
	}
	return true
}

// usualMaxWaiting bounds a line whose route does not say.
const usualMaxWaiting = 1000

// mayWait says until when a may stand in line if it may wait there so long in all, or
// why it may not.
func (r *Router) mayWait(a *ask, wait time.Duration, o outlook) (deadline time.Time, why ShedReason, ok bool) {
	rt := a.route
	left := wait - a.stood
	if a.maxTTFT > 0 && o.inService {
		// Who waits here moves up meanwhile in the line of the engine; that
		// one alone may be too long.
		if a.waited+o.queue > a.maxTTFT {
			return time.Time{}, ShedTTFT, false
		}
		inTime := a.maxTTFT - o.soonest - a.waited
		if inTime <= 0 {
			return time.Time{}, ShedTTFT, false
		}
		left = min(left, inTime)
	}
	deadline = a.now.Add(left)
	switch {
	case left <= 0:
		return time.Time{}, ShedTimeout, false
	case rt.full() && rt.toDisplace(a) == nil:
		return time.Time{}, ShedQueueFull, false
	case r.hopeless(a, deadline, o):
		return time.Time{}, ShedFloor, false
	}
	return deadline, 0, true
}

// full reports whether nobody more may wait on the route.
func (rt *route) full() bool { return rt.waiting() >= rt.mostWaiting() }

// mostWaiting is how many may wait on the route, and how many more who have a place.
func (rt *route) mostWaiting() int {
	if rt.conf.MaxWaiting > 0 {
		return rt.conf.MaxWaiting
	}
	return usualMaxWaiting
}

// toDisplace returns who makes room for a in a full line: the last of the
// tenant that has the most there, if that is more than a's has with a. So a
// flood of one tenant does not keep the others out. Who comes back as told takes
// the room of one who does not. nil if there is nobody.
func (rt *route) toDisplace(a *ask) *Ticket {
	q := &rt.lines[a.class]
	most, own := q.fresh.crowder(), q.fresh.tenants[a.req.Tenant].standing()+1
	switch {
	case most == nil && a.back():
		most, own = q.told.crowder(), q.told.tenants[a.req.Tenant].standing()+1
	case a.back():
		own = 0
	}
	if most.standing() > own {
		return most.last()
	}
	return nil
}

// displace sends away who has to make room. The answer goes out with the next
// grants, for which NextWake asks soon.
func (r *Router) displace(t *Ticket, now time.Time) {
	r.exit(t)
	a := t.ask(now)
	r.judge(&a)
	p := r.planSteps(&a, t.steps, ShedQueueFull)
	t.state, t.decision = granted, r.carryOut(&a, &p)
	r.lines.displaced = append(r.lines.displaced, Grant{Ticket: t, Waiter: t.req.Waiter, Decision: t.decision})
}

// stand gives a a ticket as planned.
func (r *Router) stand(a *ask, p *intent) *Ticket {
	if !a.req.Moves && a.route.full() {
		r.displace(a.route.toDisplace(a), a.now)
	}
	r.lines.tickets++
	t := &Ticket{
		router: r, route: a.route, req: a.req, class: a.class,
		deadline: p.deadline, due: a.due(p.deadline), since: a.since, inVain: a.inVain, number: r.lines.tickets, steps: p.after,
		demand: demandOf(a),
	}
	t.req.Arrived, t.looked = a.arrived, a.now
	r.enter(t)
	r.waitsFor(t, p.warmer)
	t.bidsFor(a.bid)
	return t
}

// hopeTimes is how many times as many places as are expected are hoped for in line.
const hopeTimes = 4

// hopeless reports whether waiting until deadline would be for nothing: the
// places that come free until then, hopeTimes as many since a place may fit those behind
// and not those before, go to those who stand before it or come back before that. It is
// only said where every curve and the length of the route's answers are well
// known.
func (r *Router) hopeless(a *ask, deadline time.Time, o outlook) bool {
	rt := a.route
	if !o.known || rt.lengths.weight < enough {
		return false
	}
	ahead := float64(rt.lines[a.class].before(a, a.due(deadline)))
	if a.class == Batch {
		ahead += float64(rt.lines[Interactive].len())
	}
	if !a.back() {
		ahead += rt.promises.before(a.now, deadline, a.req.Tenant)
	}
	places, known := r.places(a)
	return known && ahead+1 > hopeTimes*placesBy(&places, deadline.Sub(a.now))
}

// enter, waitsFor and exit keep the counts of who waits for what.
func (r *Router) enter(t *Ticket) {
	t.route.counted(t.class, func(q *line) {
		q.turns(t.back()).join(t)
		if t.req.Moves {
			q.moving++
		}
	})
	r.lines.waiting++
}

// waitsFor notes that t waits for a place in g alone; nil = anywhere.
func (r *Router) waitsFor(t *Ticket, g *group) {
	if t.warmer == g {
		return
	}
	t.route.counted(t.class, func(q *line) {
		if t.warmer != nil {
			t.warmer.awaited--
			q.patient--
		}
		if t.warmer = g; g != nil {
			g.awaited++
			q.patient++
		}
	})
}

func (r *Router) exit(t *Ticket) {
	r.waitsFor(t, nil)
	t.bidsFor(bid{})
	t.route.counted(t.class, func(q *line) {
		q.turns(t.back()).leave(t)
		if t.req.Moves {
			q.moving--
		}
	})
	r.lines.waiting--
}

// counted changes a line, and tells the groups whether somebody interactive wants
// whatever place they have.
func (rt *route) counted(class Class, change func(*line)) {
	q := &rt.lines[class]
	before := q.blocks()
	change(q)
	if after := q.blocks(); class == Interactive && after != before {
		if after {
			rt.want(+1)
		} else {
			rt.want(-1)
		}
	}
}
