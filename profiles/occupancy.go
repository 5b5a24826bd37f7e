package profiles

import (
	"sync"
	"sync/atomic"
	"time"
)

// occupancyReach is how many changes of n are remembered. A gap between two
// tokens spans a few; a thousand cover a stall of seconds on a busy backend.
const occupancyReach = 1024

// Occupancy is the record of n, the sequences decoding in one group
// incarnation, over the last while. The router, which owns n, writes it with
// Set; streams read it to learn at which n the time since their last tokens
// was spent. It is safe for concurrent use; Load is one atomic load.
//
// Lock order: mu is a leaf; no other lock is taken while it is held.
type Occupancy struct {
	state  atomic.Uint64 // version<<32 | n; written under mu, read without
	origin time.Time     // times in ring are since origin

	mu   sync.Mutex
	ring [occupancyReach]change // guarded by mu
	next int                    // slot of the next change, guarded by mu
	size int                    // changes held, 1…occupancyReach, guarded by mu
}

// change says that n held from at until the change that follows.
type change struct {
	at time.Duration
	n  int32
}

// NewOccupancy returns a record that starts at n = 0.
func NewOccupancy(now time.Time) *Occupancy {
	return &Occupancy{origin: now, next: 1, size: 1}
}

// Set records that n changed at now. A now before the last change counts as
// the last change. n is kept within 0 and 2³¹−1.
func (o *Occupancy) Set(now time.Time, n int) {
	n = min(max(n, 0), 1<<31-1)
	o.mu.Lock()
	defer o.mu.Unlock()
	last := o.ring[(o.next+occupancyReach-1)%occupancyReach]
	at := max(now.Sub(o.origin), last.at)
	o.ring[o.next] = change{at: at, n: int32(n)}
	o.next = (o.next + 1) % occupancyReach
	o.size = min(o.size+1, occupancyReach)
	version := uint32(o.state.Load()>>32) + 1
	o.state.Store(uint64(version)<<32 | uint64(n))
}

// Load returns n and a version that grows with every change.
func (o *Occupancy) Load() (version uint32, n int) {
	state := o.state.Load()
	return uint32(state >> 32), int(uint32(state))
}

// walk cuts the time between from and to, both since origin, into pieces of
// one n each and calls visit for every piece, latest first. What lies before
// the oldest change still known counts as the oldest known n. visit runs under
// mu: it must only add up.
func (o *Occupancy) walk(from, to time.Duration, visit func(n int, d time.Duration)) {
	if from >= to {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	i, n := o.next, 0
	for range o.size {
		i = (i + occupancyReach - 1) % occupancyReach
		n = int(o.ring[i].n)
		start := max(o.ring[i].at, from)
		if start < to {
			visit(n, to-start)
			to = start
		}
		if to <= from {
			return
		}
	}
	visit(n, to-from)
}
