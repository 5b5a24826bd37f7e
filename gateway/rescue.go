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
// cancels the attempt. Who finds no place stays: the backend may show life again. The
// zero value lets nobody do so.
type rescue struct {
	mu    sync.Mutex       // guards what follows, and while waits is set placement, failover and onward of the exchange
	to    *router.Decision // where the request goes on, with its lease; nil = it stays
	waits bool             // the attempt may be cancelled
}

// await lets the attempt be cancelled for a place elsewhere, until leave.
func (r *rescue) await() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits = true
}

// leave ends that, and reports whether the attempt was cancelled.
func (r *rescue) leave() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits = false
	return r.to != nil
}

// take is the place that was taken for the request; nil = none was. None is from then on:
// a panic may have had the attempt end while it waited.
func (r *rescue) take() *router.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.to
	r.to, r.waits = nil, false
	return d
}

// rescued is the attempt at the place that was taken for the request of failed; nil =
// none was.
func (x *exchange) rescued(failed *attempt) *attempt {
	d := failed.rescue.take()
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
	if d := t.rescue.take(); d != nil {
		t.g.Deliver(d.Lease.Done(time.Now(), 0))
	}
}

// escape takes a place elsewhere for x, if t waits in vain. failed is how many had none,
// by route.
//
// Only what could be placed now as well as a newcomer is moved, however late its first
// token is by now.
func (x *exchange) escape(t *attempt, now time.Time, failed map[string]int) {
	r := &t.rescue
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.waits || failed[x.placement.req.Route] >= maxVain || !x.mayEscape(t, now) {
		return
	}
	req := x.placement.req
	anyTime := time.Duration(0)
	req.Exclude = append(slices.Clip(req.Exclude), x.setup.doubtful(now)...)
	req.NoQueue, req.Again, req.MaxTTFT = true, true, &anyTime
	if t.phase > phaseSent {
		req.Exclude = append(req.Exclude, x.uncontinuing()...)
		req.PromptTokens += x.onward.thread.Text() / bytesPerToken
	}
	if would, ok := x.g.router.Preview(now, req); ok && would.Chosen != (router.Target{}) {
		if d := x.g.router.Place(now, req); d.Lease != nil {
			r.to, x.failover.rescued = &d, true
			t.up.cancel(errHung)
			return
		}
	}
	failed[req.Route]++
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
		s.x.escape(s.t, now, failed)
	}
}

// stranded are those who wait in vain, by their arrival.
func (e *endings) stranded(now time.Time) (list []stranded) {
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
			list = append(list, stranded{x, t})
		}
	}
	e.mu.Unlock()
	slices.SortFunc(list, func(a, b stranded) int { return a.x.request.arrived.Compare(b.x.request.arrived) })
	return list
}

// stranded is an exchange, and the attempt that waits.
type stranded struct {
	x *exchange
	t *attempt
}
