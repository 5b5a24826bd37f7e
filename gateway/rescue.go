package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/router"
)

const (
	// rescueEvery is how often it is looked whether somebody waits at a backend that
	// hangs, and has a place elsewhere by now.
	rescueEvery = time.Second

	// probeLeft is how long a request that finds out whether a backend still hangs is
	// left there: the usual first token comes sooner.
	probeLeft = 10 * time.Second

	// maxVain is for how many requests of a route a place is looked for in vain each time.
	// Where the oldest has none others may have one: it may be bound to one backend, or
	// ask for more. Each keeps the router busy for some 3 µs.
	maxVain = 200
)

// errHung says why an attempt was cancelled: its backend hangs, and there is a place
// elsewhere.
var errHung = errors.New("gateway: the backend takes requests and shows no life")

// rescue is how a request gets away from a backend that hangs: while its next byte is
// waited for, another goroutine may take a place for it elsewhere, and only then
// cancels the attempt. Where there is no place it stands in line for one, and stays
// meanwhile: the backend may show life again. The zero value lets nobody do so.
//
// Lock order: mu before the router's, and before those of a providers.Backend.
type rescue struct {
	mu     sync.Mutex // guards what follows, and while waits is set placement, failover and onward of the exchange
	at     *stranded  // in line, or where it goes on; nil = it stays, and stands in no line
	waits  bool       // the attempt may be cancelled
	second bool       // it is one, and exchange.attempt may answer as well
}

// await lets the attempt be cancelled for a place elsewhere, until leave; where there is an
// attempt beside it, once the backend of that one hangs as well.
func (r *rescue) await(second bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.moved() { // else it is over already
		r.waits, r.second = true, second
	}
}

// leave ends that, and reports whether the attempt was cancelled.
func (r *rescue) leave(g *Gateway) bool {
	r.mu.Lock()
	r.waits = false
	at := r.at
	if at.moved() {
		r.mu.Unlock()
		return true
	}
	r.at = nil
	r.mu.Unlock()
	at.leave(g)
	return false
}

// take is the place that was taken for the request; nil = none was. None is from then on:
// a panic may have had the attempt end while it waited.
func (r *rescue) take(g *Gateway) *router.Decision {
	r.leave(g)
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.at
	if r.at = nil; at == nil {
		return nil
	}
	return at.to
}

// rescued is the attempt at the place that was taken for the request of failed; nil =
// none was.
func (x *exchange) rescued(failed *attempt) *attempt {
	d := failed.rescue.take(x.g)
	if d == nil {
		return nil
	}
	x.placement.exclude(failed.left())
	x.placement.req.Again = true
	if x.placement.elsewhere != "" && d.Spilled == "" {
		d.Spilled = x.placement.elsewhere
	}
	return x.newAttempt(*d)
}

// abandon gives back a place that was taken for nothing: the client has gone, or the
// answer had come.
func (t *attempt) abandon() {
	if d := t.rescue.take(t.g); d != nil {
		t.g.Deliver(d.Lease.Done(time.Now(), 0))
	}
}

// escape takes a place elsewhere for s, if it waits in vain, or has it stand in line for one.
// failed is how many had none, by route.
//
// Only what could be placed now as well as a newcomer is moved, however late its first
// token is by now. What comes free is given out at once, so the others are in line: they
// came before those who stand there.
func (s *stranded) escape(now time.Time, failed map[string]int) {
	r := &s.t.rescue
	r.mu.Lock()
	before := r.at
	if !before.moved() {
		s.seek(now, failed)
	}
	if before == r.at {
		before = nil
	}
	r.mu.Unlock()
	before.leave(s.x.g)
}

// leave leaves the line; nil stands in none. No rescue.mu is held.
func (s *stranded) leave(g *Gateway) {
	if s != nil {
		g.Deliver(s.ticket.Cancel(time.Now()))
	}
}

// seek is escape while rescue.mu is held. The place in line that there was is to be left if
// it is another one then, or none.
func (s *stranded) seek(now time.Time, failed map[string]int) {
	x, t := s.x, s.t
	r := &t.rescue
	switch {
	case !r.waits || !x.mayEscape(t, now):
		r.at = nil
		return
	case failed[x.placement.req.Route] >= maxVain:
		return
	}
	req := x.placement.req
	anyTime := time.Duration(0)
	req.Exclude = append(slices.Clip(req.Exclude), x.setup.doubtful(now)...)
	req.NoQueue, req.Again, req.MaxTTFT, req.Caches = true, true, &anyTime, nil
	if t.phase > phaseSent {
		req.Exclude = append(req.Exclude, x.uncontinuing()...)
		req.PromptTokens += x.onward.thread.Text() / bytesPerToken
	}
	slices.Sort(req.Exclude[len(x.placement.req.Exclude):])
	if would, ok := x.g.router.Preview(now, req); ok && would.Chosen != (router.Target{}) {
		if d := x.g.router.Place(now, req); d.Lease != nil {
			s.goTo(d)
			return
		}
	}
	failed[req.Route]++
	if r.at != nil && slices.Equal(r.at.not, req.Exclude) {
		return
	}
	r.at, s.not = nil, req.Exclude
	req.NoQueue, req.Moves, req.Waiter = false, true, s
	if would, ok := x.g.router.Preview(now, req); ok && would.Outcome == router.OutcomeQueued {
		d := x.g.router.Place(now, req)
		if s.ticket = d.Ticket; d.Ticket != nil {
			r.at = s
		} else if d.Lease != nil {
			s.goTo(d)
		}
		x.g.someoneWaits()
	}
}

// goTo has the attempt end for the place of d. rescue.mu is held.
func (s *stranded) goTo(d router.Decision) {
	s.to, s.t.rescue.at, s.x.failover.rescued = &d, s, true
	s.t.up.cancel(errHung)
}

// granted takes what s got in line, unless it has no use for that any more, or the place is
// at a backend that shows no life either.
func (s *stranded) granted(d router.Decision) {
	r, now, takes := &s.t.rescue, time.Now(), false
	r.mu.Lock()
	if r.at == s && !s.moved() {
		r.at = nil
		takes = d.Lease != nil && r.waits && s.x.mayEscape(s.t, now) && !slices.Contains(s.x.setup.doubtful(now), d.Lease.Target().Backend)
	}
	if takes {
		s.goTo(d)
	}
	r.mu.Unlock()
	if d.Lease != nil && !takes {
		s.x.g.Deliver(d.Lease.Done(now, 0))
	}
}

// doubtful are the backends at which requests wait in vain, or may do so.
func (p *setup) doubtful(now time.Time) (names []string) {
	for name, b := range p.backends {
		if b.Lost(now) || b.Pulse().Doubtful() {
			names = append(names, name)
		}
	}
	return names
}

// mayEscape reports whether what t waits for may come from another backend. t.rescue.mu
// is held.
func (x *exchange) mayEscape(t *attempt, now time.Time) bool {
	switch {
	case x.failover.rescued, !t.backend.Lost(now), x.failover.sends-x.failover.spared >= maxSends:
		return false
	case t.rescue.second && !x.attempt.backend.Lost(now):
		return false
	case !x.request.streams() && !t.backend.Pulse().Hung(): // a document says nothing while it is generated
		return false
	case t.lease().Probe() && now.Sub(t.up.sent) < probeLeft:
		return false
	case t.phase > phaseSent:
		return x.onward.unfit(t) == "" && x.onward.thread.Times() < maxContinued
	}
	return true
}

// hungGap is how long a gap between two chunks is at least in which a backend hung.
const hungGap = 5 * time.Second

// hung reports whether t's backend hung since the last chunk, or since it was asked.
func (t *attempt) hung(now time.Time) bool {
	last := t.measured.lastEvent
	if last.IsZero() {
		last = t.up.sent
	}
	return now.Sub(last) >= hungGap && t.backend.Pulse().HungSince(last)
}

// rescueAll moves those who wait in vain, the oldest first, until ctx ends.
func (e *endings) rescueAll(ctx context.Context) {
	tick := time.NewTicker(rescueEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			e.rescue(now)
		}
	}
}

// rescue does so once.
func (e *endings) rescue(now time.Time) {
	failed := map[string]int{}
	for _, s := range e.stranded(now) {
		s.escape(now, failed)
	}
}

// stranded are those who wait in vain, by their arrival.
func (e *endings) stranded(now time.Time) (list []*stranded) {
	lost := map[*backend]bool{}
	e.mu.Lock()
	for t, x := range e.trips {
		if x.request.carried != nil {
			continue // which another proxy may have taken elsewhere
		}
		is, known := lost[t.backend]
		if !known {
			is = t.backend.Lost(now)
			lost[t.backend] = is
		}
		if is {
			list = append(list, &stranded{x: x, t: t})
		}
	}
	e.mu.Unlock()
	slices.SortFunc(list, func(a, b *stranded) int { return a.x.request.arrived.Compare(b.x.request.arrived) })
	return list
}

// stranded is an exchange, and the attempt that waits. In line it is whom a grant is for.
type stranded struct {
	x *exchange
	t *attempt

	ticket *router.Ticket   // nil = it stood in no line
	not    []string         // where that does not lead
	to     *router.Decision // where the request goes on, with its lease; nil = it stays
}

// moved reports whether a place was taken.
func (s *stranded) moved() bool { return s != nil && s.to != nil }
