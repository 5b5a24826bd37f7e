package router

import (
	"slices"
	"time"
)

// line is one class's waiting line of one route. The tenants in it take turns;
// of each the earliest due is next, which is the earliest deadline but for those
// who come back as they were told, and among equals who came first. So a
// tenant with a thousand requests in line puts another's first one off by one
// grant. The zero value is empty.
type line struct {
	waiting int
	tenants map[string]*turn
	front   *turn // whose turn it is; the rest follows by next
	back    *turn

	round  uint64 // of waking that failed is of
	failed []demand
}

// turn is what one tenant has in a line: at least one ticket, in the order in
// which they are served.
type turn struct {
	tenant     string
	tickets    []*Ticket
	prev, next *turn
}

func (q *line) len() int { return q.waiting }

// of is how many of tenant are in line.
func (q *line) of(tenant string) int {
	if own := q.tenants[tenant]; own != nil {
		return len(own.tickets)
	}
	return 0
}

// first returns who is next, nil if nobody waits.
func (q *line) first() *Ticket {
	if q.front == nil {
		return nil
	}
	return q.front.tickets[0]
}

// join puts t where its deadline belongs among those of its tenant; one who had
// nobody in line gets the last turn. Lines are short, and deadlines come nearly
// in order: a sorted slice beats a heap and can be read in order.
func (q *line) join(t *Ticket) {
	own := q.tenants[t.req.Tenant]
	if own == nil {
		if q.tenants == nil {
			q.tenants = map[string]*turn{}
		}
		own = &turn{tenant: t.req.Tenant}
		q.tenants[own.tenant] = own
		q.append(own)
	}
	i, _ := slices.BinarySearchFunc(own.tickets, t, compareTickets)
	own.tickets = slices.Insert(own.tickets, i, t)
	q.waiting++
}

// leave removes t, which must be in line.
func (q *line) leave(t *Ticket) {
	own := q.tenants[t.req.Tenant]
	i, found := 0, false
	if own != nil {
		i, found = slices.BinarySearchFunc(own.tickets, t, compareTickets)
	}
	if !found {
		panic("router: a ticket left a line that it was not in")
	}
	own.tickets = slices.Delete(own.tickets, i, i+1)
	q.waiting--
	if len(own.tickets) == 0 {
		q.unlink(own)
		delete(q.tenants, own.tenant)
	}
}

// served ends the turn of a tenant that got a place.
func (q *line) served(tenant string) {
	if own := q.tenants[tenant]; own != nil && own != q.back {
		q.unlink(own)
		q.append(own)
	}
}

func (q *line) append(own *turn) {
	own.prev, own.next = q.back, nil
	if q.back != nil {
		q.back.next = own
	} else {
		q.front = own
	}
	q.back = own
}

func (q *line) unlink(own *turn) {
	if own.prev != nil {
		own.prev.next = own.next
	} else {
		q.front = own.next
	}
	if own.next != nil {
		own.next.prev = own.prev
	} else {
		q.back = own.prev
	}
}

// before is at most how many in line go before one of tenant that is due then:
// of its own tenant those that are due before, and of every other one as many
// and one more.
func (q *line) before(tenant string, due time.Time) int {
	own, others := 0, len(q.tenants)
	if t := q.tenants[tenant]; t != nil {
		own, _ = slices.BinarySearchFunc(t.tickets, due.Add(1), func(t *Ticket, due time.Time) int { return t.due.Compare(due) })
		others--
	}
	return min(q.waiting, own+others*(own+1))
}

// crowder returns the tenant with the most in line.
func (q *line) crowder() *turn {
	most := q.front
	for t := q.front; t != nil; t = t.next {
		if len(t.tickets) > len(most.tickets) {
			most = t
		}
	}
	return most
}

// demand is what a ticket asks of a backend, as far as one that could not be
// placed says something about another.
type demand struct {
	floor   float64
	weight  int
	prompt  int
	exclude []string // backends that will not do
	picky   bool     // others may do for somebody else
}

// covers reports whether who asks for o cannot be placed either.
func (d demand) covers(o demand) bool {
	if d.picky || o.floor < d.floor || o.weight < d.weight || o.prompt < d.prompt {
		return false
	}
	for _, name := range d.exclude {
		if !slices.Contains(o.exclude, name) {
			return false
		}
	}
	return true
}

const (
	// mostTried in a line are tried in one waking, and as many of those who failed
	// over, among the next mostLooked: while nobody can go, that is what each
	// release costs.
	mostTried  = 4
	mostLooked = 64
)

// next returns who is to be tried in this round of waking: the first of the
// tenant whose turn it is, or where that one cannot go, of the next who asks for
// less. Who could not go keeps the turn. One who failed over, and may not go
// everywhere, holds up nobody behind it. nil when nobody else is worth a try.
func (q *line) next(round uint64) *Ticket {
	if q.round != round {
		q.round, q.failed = round, q.failed[:0]
	}
	again := 0 // of failed, those who failed over
	for _, d := range q.failed {
		if len(d.exclude) > 0 {
			again++
		}
	}
	if len(q.failed)-again == mostTried {
		return nil
	}
	looked := 0
	for own := q.front; own != nil && looked < mostLooked; own = own.next {
		for _, t := range own.tickets {
			looked++
			failedOver := len(t.demand.exclude) > 0
			if t.tried != round && !(failedOver && again == mostTried) && !slices.ContainsFunc(q.failed, func(d demand) bool { return d.covers(t.demand) }) {
				return t
			}
			if !failedOver || looked >= mostLooked {
				break
			}
		}
	}
	return nil
}

// stuck notes that t could not go in this round; picky = not every target would
// do for it, though one may for another tenant.
func (q *line) stuck(t *Ticket, round uint64, picky bool) {
	t.tried = round
	d := t.demand
	d.picky = d.picky || picky
	q.failed = append(q.failed, d)
}

func compareTickets(a, b *Ticket) int {
	if c := a.due.Compare(b.due); c != 0 {
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
func (r *Router) mayWait(a *ask, wait time.Duration, o outlook) (deadline time.Time, why ShedReason, ok bool) {
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
	switch {
	case rt.full() && rt.toDisplace(a) == nil:
		return time.Time{}, ShedQueueFull, false
	case r.hopeless(a, deadline, o):
		return time.Time{}, ShedFloor, false
	}
	return deadline, 0, true
}

// full reports whether nobody more may wait on the route.
func (rt *route) full() bool {
	limit := rt.conf.MaxWaiting
	if limit <= 0 {
		limit = usualMaxWaiting
	}
	return rt.waiting() >= limit
}

// toDisplace returns who makes room for a in a full line: the last of the
// tenant that has the most there, if that is more than a's has with a. So a
// flood of one tenant does not keep the others out. nil if there is nobody.
func (rt *route) toDisplace(a *ask) *Ticket {
	q := &rt.lines[a.class]
	own := q.of(a.req.Tenant)
	if most := q.crowder(); most != nil && len(most.tickets) > own+1 {
		return most.tickets[len(most.tickets)-1]
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
	r.displaced = append(r.displaced, Grant{Ticket: t, Waiter: t.req.Waiter, Decision: t.decision})
}

// stand gives a a ticket as planned.
func (r *Router) stand(a *ask, p *plan) *Ticket {
	if a.route.full() {
		r.displace(a.route.toDisplace(a), a.now)
	}
	r.tickets++
	t := &Ticket{
		router: r, route: a.route, req: a.req, class: a.class,
		deadline: p.deadline, due: a.due(p.deadline), since: a.since, number: r.tickets, steps: p.after,
		demand: demand{floor: a.floor, weight: a.weight, prompt: a.prompt, exclude: a.req.Exclude},
	}
	t.req.Arrived = a.arrived
	r.enter(t)
	return t
}

// hopeless reports whether waiting until deadline would be for nothing: the
// places that come free until then, twice as many to be fair to a prediction,
// go to those who stand before it or come back before that. It is
// only said where every curve and the length of the route's answers are well
// known.
func (r *Router) hopeless(a *ask, deadline time.Time, o outlook) bool {
	rt := a.route
	if !o.known || rt.lengths.weight < enough {
		return false
	}
	ahead := rt.lines[a.class].before(a.req.Tenant, a.due(deadline))
	if a.class == Batch {
		ahead += rt.lines[Interactive].len()
	}
	if a.since.IsZero() {
		ahead += rt.promises.before(a.now, deadline, a.req.Tenant)
	}
	places, known := r.places(a)
	return known && float64(ahead+1) > 2*placesBy(&places, deadline.Sub(a.now))
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
