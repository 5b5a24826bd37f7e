package profiles

import (
	"slices"
	"time"
)

// Move says that so many more sequences decoded from At on, or fewer.
type Move struct {
	At time.Time
	By int
}

// toldWithin is the time between two tellings of which nothing is missed: who tells has
// half a second and more of it.
const toldWithin = 400 * time.Millisecond

// unseenReach is for how long streams are taken to decode unseen once one did.
const unseenReach = time.Minute

// SetShared is Set where others of the n are relayed by other replicas, as far as they
// have told.
func (o *Occupancy) SetShared(now time.Time, n, others int) {
	n = min(max(n, 0), maxOccupancy)
	others = min(max(others, 0), n)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.others == nil {
		if others == 0 {
			o.set(now.Sub(o.origin), n)
			return
		}
		o.others = new([occupancyReach]int32)
	}
	o.set(now.Sub(o.origin), n)
	o.others[o.last()] = int32(others)
}

// Told sets the record right: others is how many sequences the other replicas have, and
// moves, in any order, are how that number came about. Until until all of them have told;
// after it they may have more to tell. moves is sorted. Where streams decode for a while
// before anybody sees them, those of others do so, too, and nobody tells it: there the
// record is left as it is.
func (o *Occupancy) Told(until time.Time, others int, moves []Move, prompts []Prompt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unseen > 0 && until.Sub(o.origin)-o.unseen < unseenReach {
		o.told.Store(0)
		return
	}
	from := time.Duration(o.told.Load())
	if from > 0 && (o.others != nil || others > 0 || len(moves) > 0) {
		o.rewrite(from, others, moves)
	}
	to := max(until.Sub(o.origin), from, 1)
	if from == 0 || to-from > toldWithin {
		o.prefills.from = to
	}
	for _, q := range prompts {
		if at := q.At.Sub(o.origin); at > max(from, o.prefills.from) && at <= to && q.Tokens > 0 {
			o.prefills.keep(prompted{at: at, tokens: min(q.Tokens, maxPrompt)})
		}
	}
	o.told.Store(int64(to))
}

// Untold says that the others tell no longer how their number came about: what the record
// has is all that is known.
func (o *Occupancy) Untold() { o.told.Store(0) }

// known is until when the record is what it will be, since origin; all is true where that
// is all of it.
func (o *Occupancy) known() (until time.Duration, all bool) {
	if o == nil {
		return 0, true
	}
	until = time.Duration(o.told.Load())
	return until, until == 0
}

// rewrite puts into the record after from what the others told. mu is held.
func (o *Occupancy) rewrite(from time.Duration, others int, moves []Move) {
	if o.others == nil {
		o.others = new([occupancyReach]int32)
	}
	slices.SortFunc(moves, func(a, b Move) int { return a.At.Compare(b.At) })
	then := others // at from
	first := len(moves)
	for first > 0 && moves[first-1].At.Sub(o.origin) > from {
		first--
		then -= moves[first].By
	}
	moves = moves[first:]
	tail := o.rewind(from)
	held := o.ring[o.last()] // at from
	base := held.n - o.others[o.last()]
	if len(tail) == 0 && len(moves) == 0 && int(o.others[o.last()]) == others {
		return
	}
	o.put(max(from, held.at), base, held.own, then)
	for len(tail) > 0 || len(moves) > 0 {
		if len(moves) == 0 || len(tail) > 0 && tail[0].at <= moves[0].At.Sub(o.origin) {
			base, held.own = tail[0].n, tail[0].own
			o.put(tail[0].at, base, held.own, then)
			tail = tail[1:]
			continue
		}
		then += moves[0].By
		o.put(moves[0].At.Sub(o.origin), base, held.own, then)
		moves = moves[1:]
	}
	state := o.state.Load()
	o.state.Store((state>>32+1)<<32 | state&guessBit | uint64(o.ring[o.last()].n))
}

// rewind takes the changes after from off the record, but one, and returns them without
// the others. mu is held.
func (o *Occupancy) rewind(from time.Duration) []change {
	tail := o.tail[:0]
	for o.size > 1 && o.ring[o.last()].at > from {
		c := o.ring[o.last()]
		c.n -= o.others[o.last()]
		tail = append(tail, c)
		o.next = o.last()
		o.size--
	}
	slices.Reverse(tail)
	o.tail = tail
	return tail
}

// put adds a change, or takes it for the last one where that is of the same time or n. mu
// is held.
func (o *Occupancy) put(at time.Duration, base, own int32, others int) {
	others = min(max(others, 0), maxOccupancy-int(base))
	last := o.last()
	n := base + int32(others)
	switch c := o.ring[last]; {
	case c.n == n && c.own == own && o.others[last] == int32(others):
		return
	case c.at < at:
		o.next = (o.next + 1) % occupancyReach
		o.size = min(o.size+1, occupancyReach)
		last = o.last()
	default:
		at = c.at
	}
	o.ring[last], o.others[last] = change{at: at, n: n, own: own}, int32(others)
}

// last is the slot of the newest change.
func (o *Occupancy) last() int { return (o.next + occupancyReach - 1) % occupancyReach }
