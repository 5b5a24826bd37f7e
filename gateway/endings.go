package gateway

import (
	"context"
	"sync"
	"sync/atomic"
)

// endings is how the gateway ends, in two steps: it drains, and then cancels the
// round trips under way. A context would do so too, at three allocations for each.
// The zero value is ready, but for ctx and cancel; it is safe for concurrent use. Lock order: mu before those of a providers.Backend, and no other.
type endings struct {
	ctx    context.Context // of those that have not gone up
	cancel context.CancelCauseFunc

	draining atomic.Bool // no more requests are wanted, and none is cancelled yet

	mu    sync.Mutex             // guards what follows
	trips map[*attempt]*exchange // whose they are
	over  bool
}

// add has t, of x, cancelled with the gateway, at once if that has ended.
func (e *endings) add(t *attempt, x *exchange) {
	e.mu.Lock()
	over := e.over
	if e.trips == nil {
		e.trips = map[*attempt]*exchange{}
	}
	if !over {
		e.trips[t] = x
	}
	e.mu.Unlock()
	if over {
		t.up.cancel(errDraining)
	}
}

// remove forgets t. Calls after the first do nothing.
func (e *endings) remove(t *attempt) {
	e.mu.Lock()
	delete(e.trips, t)
	e.mu.Unlock()
}

// end cancels all that are there, and all that come.
func (e *endings) end() {
	e.cancel(errDraining)
	e.mu.Lock()
	trips := make([]context.CancelCauseFunc, 0, len(e.trips))
	for t := range e.trips {
		trips = append(trips, t.up.cancel) // here, for it changes when a loop takes the answer
	}
	e.trips, e.over = nil, true
	e.mu.Unlock()
	for _, cancel := range trips {
		cancel(errDraining)
	}
}
