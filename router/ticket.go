package router

import "time"

// Ticket is a place in a route's waiting line. It is spent once: by a Grant,
// by Expire or by Cancel.
type Ticket struct {
	router   *Router
	route    *route
	req      Request
	class    Class
	deadline time.Time
	due      time.Time // by which those in line are served; the deadline, unless it comes back as told
	since    time.Time // ask.since
	inVain   bool      // ask.inVain
	number   uint64    // order of arrival
	steps    []Step    // what comes when the wait is over
	demand   demand
	tried    uint64 // the round of waking in which it could not go
	warmer   *group // nil = it takes whatever place there is; else it waits for one here, where its prompt is cached
	dear     bool   // then somewhere its prompt alone kept it out
	late     bool   // then the time to its first token was all that kept it out where one came free
	bid      bid
	looked   time.Time // when caches were asked last what they have of its prompt

	state    ticketState // guarded by Router.mu, as is decision
	decision Decision    // once granted or expired
}

// cachesEvery is how old what caches have may be for who waits in line.
const cachesEvery = 100 * time.Millisecond

// ask is the request as put to its route at now, and no earlier than it began to stand in
// line: who grants it a place may have read the clock before that.
func (t *Ticket) ask(now time.Time) ask {
	if now.Before(t.looked) {
		now = t.looked
	}
	if t.req.Caches != nil && now.Sub(t.looked) >= cachesEvery {
		t.req.Warm, t.looked = t.req.Caches.Warm(now, t.req.Warm[:0]), now
	}
	a := newAsk(now, t.route, &t.req)
	a.since, a.inVain, a.bid = t.since, t.inVain, t.bid
	return a
}

// back reports whether it comes back as it was told.
func (t *Ticket) back() bool { return !t.since.IsZero() }

// failedOver reports whether it may not go everywhere, for it has failed somewhere.
func (t *Ticket) failedOver() bool { return len(t.demand.exclude) > 0 }

type ticketState uint8

const (
	inLine  ticketState = iota
	granted             // a Grant is on its way
	spent               // expired or cancelled
)

// Deadline is when waiting ends; the caller then calls Expire.
func (t *Ticket) Deadline() time.Time { return t.deadline }

// Expire ends the wait. Who waited for a place where its prompt is cached takes any
// other, who left one to other replicas takes it, and whose prompt is prefilled goes behind
// that. A place that has come up since the line was looked at is taken where nobody stands
// before; else the route's next step is taken (spill, best_effort, shed). A Grant that is already on its way wins: its decision is
// returned. Called again, it returns the same decision.
func (t *Ticket) Expire(now time.Time) Decision {
	r := t.router
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.state == inLine {
		r.advance(now)
		patient := t.warmer != nil
		r.exit(t)
		a := t.ask(now)
		a.insists = true
		r.judge(&a)
		var p intent
		before := t.before(&a)
		if v := r.choose(&a); v != nil && (before == 0 || patient || r.peers.several() || a.cached(v.model).comes()) {
			p = a.onto(v, OutcomeGranted)
		} else {
			p = r.planSteps(&a, t.steps, ShedTimeout)
			p.behind = before
		}
		t.decision = r.carryOut(&a, &p)
	}
	t.state = spent
	return t.decision
}

// before is at most how many in line go before one that has just left it.
func (t *Ticket) before(a *ask) int {
	n := t.route.lines[t.class].before(a, t.due)
	if t.class == Batch {
		n += t.route.lines[Interactive].len()
	}
	return n
}

// Cancel leaves the line because the client is gone. A lease that was granted
// meanwhile is given back; the Grants are those it makes possible. After
// Expire it does nothing: a lease that came with it is its caller's.
func (t *Ticket) Cancel(now time.Time) []Grant {
	r := t.router
	r.mu.Lock()
	defer r.mu.Unlock()
	state := t.state
	t.state = spent
	r.advance(now)
	switch {
	case state == inLine:
		r.exit(t)
		t.decision = Decision{Refusal: &Refusal{Reason: ShedTimeout}}
	case state == granted && t.decision.Lease != nil && t.decision.Lease.phase != done:
		l := t.decision.Lease
		r.release(now, l, 0)
		return r.wake(now, l.group.backend)
	default:
		return nil
	}
	return r.wake(now, nil) // it may have held up those behind it
}
