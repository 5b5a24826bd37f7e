package router

import (
	"slices"
	"time"
)

// turns are requests in line whose tenants take turns; of each the earliest due
// is next, which is the earliest deadline but for those who come back as they
// were told, and among equals who came first. So a tenant with a thousand
// requests in line puts another's first one off by one grant. The zero value is
// empty.
type turns struct {
	waiting int
	tenants map[string]*turn
	front   *turn // whose turn it is; the rest follows by next
	back    *turn
	sizes   crowd // how many tickets each has
}

// turn is what one tenant has in a line: at least one ticket, in the order in
// which they are served.
type turn struct {
	tenant     string
	tickets    []*Ticket
	moving     int // of them, who have a place elsewhere, see Request.Moves
	prev, next *turn
}

// standing is how many take a place of the line: who moves has one elsewhere.
func (t *turn) standing() int {
	if t == nil {
		return 0
	}
	return len(t.tickets) - t.moving
}

// last returns the last of those; nil if there are none.
func (t *turn) last() *Ticket {
	for _, ticket := range slices.Backward(t.tickets) {
		if !ticket.req.Moves {
			return ticket
		}
	}
	return nil
}

// of is how many of tenant are in line.
func (q *turns) of(tenant string) int {
	if own := q.tenants[tenant]; own != nil {
		return len(own.tickets)
	}
	return 0
}

// holds reports whether the first of tenant in line lacks a place, which nobody
// of its tenant may then take.
func (q *turns) holds(tenant string) bool {
	own := q.tenants[tenant]
	if own == nil {
		return false
	}
	i := slices.IndexFunc(own.tickets, func(t *Ticket) bool { return !t.req.Moves })
	return i >= 0 && !own.tickets[i].dear && own.tickets[i].warmer == nil
}

// first returns who is next, nil if nobody waits.
func (q *turns) first() *Ticket {
	if q.front == nil {
		return nil
	}
	return q.front.tickets[0]
}

// join puts t where its deadline belongs among those of its tenant; one who had
// nobody in line gets the last turn. Lines are short, and deadlines come nearly
// in order: a sorted slice beats a heap and can be read in order.
func (q *turns) join(t *Ticket) {
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
	q.sizes.remove(len(own.tickets), 1)
	own.tickets = slices.Insert(own.tickets, i, t)
	q.sizes.add(len(own.tickets), 1)
	q.waiting++
	if t.req.Moves {
		own.moving++
	}
}

// leave removes t, which must be in line.
func (q *turns) leave(t *Ticket) {
	own := q.tenants[t.req.Tenant]
	i, found := 0, false
	if own != nil {
		i, found = slices.BinarySearchFunc(own.tickets, t, compareTickets)
	}
	if !found {
		panic("router: a ticket left a line that it was not in")
	}
	q.sizes.remove(len(own.tickets), 1)
	own.tickets = slices.Delete(own.tickets, i, i+1)
	q.sizes.add(len(own.tickets), 1)
	q.waiting--
	if t.req.Moves {
		own.moving--
	}
	if len(own.tickets) == 0 {
		q.unlink(own)
		delete(q.tenants, own.tenant)
	}
}

// served ends the turn of a tenant that got a place.
func (q *turns) served(tenant string) {
	if own := q.tenants[tenant]; own != nil && own != q.back {
		q.unlink(own)
		q.append(own)
	}
}

func (q *turns) append(own *turn) {
	own.prev, own.next = q.back, nil
	if q.back != nil {
		q.back.next = own
	} else {
		q.front = own
	}
	q.back = own
}

func (q *turns) unlink(own *turn) {
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
func (q *turns) before(tenant string, due time.Time) int {
	own, others := 0, len(q.tenants)
	if t := q.tenants[tenant]; t != nil {
		own, _ = slices.BinarySearchFunc(t.tickets, due.Add(1), func(t *Ticket, due time.Time) int { return t.due.Compare(due) })
		others--
	}
	return min(q.waiting, own+others*(own+1))
}

// others is how many of other tenants than this one are in line, of each at most so
// many.
func (q *turns) others(tenant string, most int) float64 {
	if q.waiting == 0 {
		return 0
	}
	all := q.sizes.upTo(most)
	return max(all-float64(min(q.of(tenant), most)), 0)
}

// crowder returns the tenant that takes the most places of the line; nil if nobody stands there. Where
// all move it takes none.
func (q *turns) crowder() *turn {
	most := q.front
	for t := q.front; t != nil; t = t.next {
		if t.standing() > most.standing() {
			most = t
		}
	}
	return most
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
