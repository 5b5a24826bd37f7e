package limit

import "time"

// bucket is a token bucket that holds a minute's worth and may be owed: a
// request is charged an estimate at the start and the rest, or a refund, at
// its end. (rate.Limiter of x/time cannot take back what has been used.) What
// flows in pays for what was used, oldest first. A bucket of size 0 limits
// nothing.
//
// Invariant: shared, shared + sent and shared + sent + own are at least 0.
// Without replicas shared and sent stay 0.
type bucket struct {
	size   float64   // what it holds when full, and what flows in per minute
	least  float64   // what a part of it holds at least
	shared float64   // used by all replicas, as far as they have told each other
	sent   float64   // of what was used here: told, and not known to have arrived
	own    float64   // used here and not told; below 0 when more came back than was taken
	last   time.Time // when the above was true; zero before the first use
}

// fill brings b up to now; part (0, 1] of what flows in is for this replica. A
// now before last changes nothing.
func (b *bucket) fill(now time.Time, part float64) {
	if b.last.IsZero() {
		b.last = now
	}
	d := now.Sub(b.last)
	if d <= 0 {
		return
	}
	b.last = now
	flow := b.size * d.Minutes()
	pay := func(debt *float64) {
		paid := min(max(*debt, 0), flow)
		*debt -= paid
		flow -= paid
	}
	pay(&b.shared)
	// All replicas pay for what is shared together, and each for its own.
	flow *= part
	pay(&b.sent)
	pay(&b.own)
	b.floor()
}

// floor forgets what came back beyond all that was used.
func (b *bucket) floor() {
	b.sent = max(b.sent, -b.shared)
	b.own = max(b.own, -(b.shared + b.sent))
}

// room is what a part of b holds when full, used what counts against it.
func (b *bucket) room(part float64) float64 { return max(b.size*part, b.least) }
func (b *bucket) used(part float64) float64 { return max(b.shared*part+b.sent+b.own, 0) }

// wait returns how long it takes until n can be taken; 0 = now. More than
// there can ever be counts as all of it.
func (b *bucket) wait(n, part float64) time.Duration {
	room := b.room(part)
	over := b.used(part) + min(n, room) - room
	// A thousandth of slack, so that who waits as long as told is not refused
	// for the rounding of a float.
	if b.size == 0 || over <= 1e-3 {
		return 0
	}
	return b.time(over, part)
}

// time is how long it takes until n has flowed in.
func (b *bucket) time(n, part float64) time.Duration {
	return time.Duration(n / (b.size * part) * float64(time.Minute))
}

// take takes n, which may be more than there is; a negative n puts back.
func (b *bucket) take(n float64) {
	if b.size > 0 {
		b.own += n
		b.floor()
	}
}

func (b *bucket) left(limit int, part float64) Left {
	if limit == 0 {
		return Left{}
	}
	used := b.used(part)
	return Left{
		Limit:     limit,
		Remaining: max(0, int(b.room(part)-used+1e-3)),
		Reset:     b.time(used, part),
	}
}
