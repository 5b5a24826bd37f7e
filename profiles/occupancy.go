package profiles

import (
	"sync"
	"sync/atomic"
	"time"
)

// maxOccupancy is the highest n that is recorded.
const maxOccupancy = 1<<31 - 1

// guessBit is set in Occupancy.state while n is a guess.
const guessBit = maxOccupancy + 1

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
	state  atomic.Uint64 // version<<32 | guessBit | n; written under mu, read without
	origin time.Time     // times in ring are since origin

	mu   sync.Mutex
	ring [occupancyReach]change // guarded by mu
	next int                    // slot of the next change, guarded by mu
	size int                    // changes held, 1…occupancyReach, guarded by mu
	own  int32                  // sequences that the streams of this replica decode, guarded by mu

	told   atomic.Int64           // until when the other replicas have told all, since origin; 0 = they tell nothing
	others *[occupancyReach]int32 // how many of n are theirs, by slot of ring; nil = none ever were; guarded by mu
	tail   []change               // of rewrite: memory that is used again

	prefills prefills      // guarded by mu
	unseen   time.Duration // when a stream of this replica was seen late last, since origin; 0 = never; guarded by mu
}

// change says that n held from at until the change that follows, and that this
// replica relayed so many of them.
type change struct {
	at     time.Duration
	n, own int32
}

// NewOccupancy returns a record that starts at n = 0.
func NewOccupancy(now time.Time) *Occupancy {
	return &Occupancy{origin: now, next: 1, size: 1}
}

// Set records that n changed at now. A now before the last change counts as
// the last change. n is kept within 0 and 2³¹−1.
func (o *Occupancy) Set(now time.Time, n int) {
	o.SetShared(now, n, 0)
}

// set adds a change. mu is held.
func (o *Occupancy) set(at time.Duration, n int) {
	at = max(at, o.ring[o.last()].at)
	o.ring[o.next] = change{at: at, n: int32(n), own: o.own}
	o.next = (o.next + 1) % occupancyReach
	o.size = min(o.size+1, occupancyReach)
	state := o.state.Load()
	o.state.Store((state>>32+1)<<32 | state&guessBit | uint64(n))
}

// Guess says whether n is no more than a guess from now on. While it is, what streams
// show says nothing of how fast the engine is at n, so they teach nothing.
func (o *Occupancy) Guess(on bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	state := o.state.Load() &^ guessBit
	if on {
		state |= guessBit
	}
	o.state.Store(state + 1<<32)
}

// guessed reports whether n is a guess; false without a record.
func (o *Occupancy) guessed() bool { return o != nil && o.state.Load()&guessBit != 0 }

// Load returns n and a version that grows with every change.
func (o *Occupancy) Load() (version uint32, n int) {
	state := o.state.Load()
	return uint32(state >> 32), int(state & maxOccupancy)
}

// joins says that so many more sequences of n are relayed by this replica, leaves
// that they will not be from the next change of n on: n falls because they ended.
// Neither does anything without a record.
func (o *Occupancy) joins(sequences int) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.own += int32(sequences)
	last := &o.ring[o.last()]
	last.own = max(last.own, o.own)
}

func (o *Occupancy) leaves(sequences int) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.own -= int32(sequences)
}

// began says that so many sequences, which n counts since seen, had decoded since
// from already; both are since origin. Whoever walks the record later finds them there.
func (o *Occupancy) began(from, seen time.Duration, sequences int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unseen = max(o.unseen, seen)
	end := seen // of what c held
	for back := 1; back <= o.size && end > from; back++ {
		i := (o.next + occupancyReach - back) % occupancyReach
		c := o.ring[i]
		if back > 1 && c.at < end { // the newest is the present n, which has them
			o.ring[i] = c.with(sequences)
			if c.at < from { // n was another one until then
				o.ring[i] = c
				o.insert(i+1, change{from, c.n, c.own}.with(sequences))
			}
		}
		end = min(end, c.at)
	}
	o.state.Store(o.state.Load() + 1<<32)
}

// with is c with so many more sequences, which this replica relays.
func (c change) with(sequences int) change {
	more := int32(min(sequences, maxOccupancy))
	return change{c.at, min(c.n, maxOccupancy-more) + more, min(c.own, maxOccupancy-more) + more}
}

// insert puts c into slot i, before what is there. mu is held.
func (o *Occupancy) insert(i int, c change) {
	others := int32(0) // of c: those of the change before it
	if o.others != nil {
		others = o.others[(i+occupancyReach-1)%occupancyReach]
	}
	for i %= occupancyReach; i != o.next; i = (i + 1) % occupancyReach {
		o.ring[i], c = c, o.ring[i]
		if o.others != nil {
			o.others[i], others = others, o.others[i]
		}
	}
	o.ring[o.next] = c
	if o.others != nil {
		o.others[o.next] = others
	}
	o.next = (o.next + 1) % occupancyReach
	o.size = min(o.size+1, occupancyReach)
}

// relayed returns how many of the present n this replica relays; 0 without a
// record.
func (o *Occupancy) relayed() int {
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return int(o.ring[o.last()].own)
}

// walk cuts the time between from and to, both since origin, into pieces of
// one n each and calls visit for every piece, latest first, with how many of the
// n this replica relayed. What lies before
// the oldest change still known counts as the oldest known n. visit runs under
// mu: it must only add up.
func (o *Occupancy) walk(from, to time.Duration, visit func(n, own int, d time.Duration)) {
	if from >= to {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cut(from, to, visit)
}

// cut is walk for who holds mu.
func (o *Occupancy) cut(from, to time.Duration, visit func(n, own int, d time.Duration)) {
	if from >= to {
		return
	}
	i, n, own := o.next, 0, 0
	for range o.size {
		i = (i + occupancyReach - 1) % occupancyReach
		n, own = int(o.ring[i].n), int(o.ring[i].own)
		start := max(o.ring[i].at, from)
		if start < to {
			visit(n, own, to-start)
			to = start
		}
		if to <= from {
			return
		}
	}
	visit(n, own, to-from)
}
