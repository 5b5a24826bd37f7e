package gateway

import (
	"context"
	"sync"
	"sync/atomic"
)

// endings is how the gateway ends, in two steps: it drains, and then cancels the
// round trips under way. A context would do so too, at three allocations for each.
// The zero value is ready, but for ctx and cancel; it is safe for concurrent use. Lock order: mu is a leaf.
type endings struct {
	ctx    context.Context // of those that have not gone up
	cancel context.CancelCauseFunc

	draining atomic.Bool // no more requests are wanted, and none is cancelled yet

	mu    sync.Mutex // guards what follows
	trips map[*roundTrip]struct{}
	over  bool
}

// add has u cancelled with the gateway, at once if that has ended.
func (e *endings) add(u *roundTrip) {
	e.mu.Lock()
	over := e.over
	if e.trips == nil {
		e.trips = map[*roundTrip]struct{}{}
	}
	if u.ending = e; !over {
		e.trips[u] = struct{}{}
	}
	e.mu.Unlock()
	if over {
		u.cancel(errDraining)
	}
}

// remove forgets u. Calls after the first do nothing.
func (e *endings) remove(u *roundTrip) {
	e.mu.Lock()
	delete(e.trips, u)
	e.mu.Unlock()
}

// end cancels all that are there, and all that come.
func (e *endings) end() {
	e.cancel(errDraining)
	e.mu.Lock()
	trips := e.trips
	e.trips, e.over = nil, true
	e.mu.Unlock()
	for u := range trips {
		u.cancel(errDraining)
	}
}
