package router

import (
	"slices"
	"time"
)

// line is one class's waiting line of one route: earliest deadline first, and
// among equals in the order of arrival. The zero value is empty.
type line struct {
	tickets []*Ticket
	blocked uint64 // the round of waking in which its first ticket could not go
}

func (q *line) len() int { return len(q.tickets) }

// first returns who is next, nil if nobody waits.
func (q *line) first() *Ticket {
	if len(q.tickets) == 0 {
		return nil
	}
	return q.tickets[0]
}

// join puts t where its deadline belongs. Lines are short, and deadlines come
// nearly in order: a sorted slice beats a heap and can be read in order.
func (q *line) join(t *Ticket) {
	i, _ := slices.BinarySearchFunc(q.tickets, t, compareTickets)
	q.tickets = slices.Insert(q.tickets, i, t)
}

// leave removes t, which must be in line.
func (q *line) leave(t *Ticket) {
	i, found := slices.BinarySearchFunc(q.tickets, t, compareTickets)
	if !found {
		panic("router: a ticket left a line that it was not in")
	}
	q.tickets = slices.Delete(q.tickets, i, i+1)
}

func compareTickets(a, b *Ticket) int {
	if c := a.deadline.Compare(b.deadline); c != 0 {
		return c
	}
	switch {
	case a.number < b.number:
		return -1
	case a.number > b.number:
		return 1
	}
	return 0
}

// usualMaxWaiting bounds a line whose route does not say.
const usualMaxWaiting = 1000

// mayWait says until when a may stand in line if it may wait so long from its
// arrival, or why it may not.
func (a *ask) mayWait(wait time.Duration, o outlook) (deadline time.Time, why ShedReason, ok bool) {
	rt := a.route
	if a.maxTTFT > 0 && o.inService {
		// Who waits here moves up meanwhile in the line of the engine; that
		// one alone may be too long.
		if a.waited+o.queue > a.maxTTFT {
			return time.Time{}, ShedTTFT, false
		}
		if left := a.maxTTFT - o.soonest; left < wait {
			if wait = left; wait <= a.waited {
				return time.Time{}, ShedTTFT, false
			}
		}
	}
	deadline = a.arrived.Add(wait)
	if !deadline.After(a.now) {
		return time.Time{}, ShedTimeout, false
	}
	limit := rt.conf.MaxWaiting
	if limit <= 0 {
		limit = usualMaxWaiting
	}
	switch {
	case rt.waiting() >= limit:
		return time.Time{}, ShedQueueFull, false
	case rt.hopeless(a, deadline, o):
		return time.Time{}, ShedFloor, false
	}
	return deadline, 0, true
}

// stand gives a a ticket as planned.
func (r *Router) stand(a *ask, p *plan) *Ticket {
	r.tickets++
	t := &Ticket{
		router: r, route: a.route, req: a.req, class: a.class,
		deadline: p.deadline, number: r.tickets, steps: p.after,
	}
	t.req.Arrived = a.arrived
	r.enter(t)
	return t
}

// hopeless reports whether waiting until deadline would be for nothing: the
// places that come free until then, twice as many to be fair to a rough
// prediction, go to those who stand before. It is only said where every curve
// and the length of the route's answers are well known.
func (rt *route) hopeless(a *ask, deadline time.Time, o outlook) bool {
	rate := rt.releaseRate()
	if !o.known || rate <= 0 || rt.answers.weight < enough {
		return false
	}
	ahead := rt.lines[Interactive].len()
	if a.class == Batch {
		ahead = rt.waiting()
	}
	return float64(ahead+1) > 2*rate*deadline.Sub(a.now).Seconds()
}

// enter and exit keep the counts of who waits for what.
func (r *Router) enter(t *Ticket) {
	q := &t.route.lines[t.class]
	if q.join(t); q.len() == 1 && t.class == Interactive {
		t.route.want(+1)
	}
	r.inLine++
}

func (r *Router) exit(t *Ticket) {
	q := &t.route.lines[t.class]
	if q.leave(t); q.len() == 0 && t.class == Interactive {
		t.route.want(-1)
	}
	r.inLine--
}
