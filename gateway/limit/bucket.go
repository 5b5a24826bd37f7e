package limit

import "time"

// bucket is a token bucket that holds a minute's worth and may be owed: a
// request is charged an estimate at the start and the rest, or a refund, at
// its end. (rate.Limiter of x/time cannot take back what has been used.)
// A bucket of size 0 limits nothing.
type bucket struct {
	size float64   // what it holds when full, and what flows in per minute
	left float64   // as of last; below 0 while owed
	last time.Time // zero before the first use
}

func newBucket(perMinute int) bucket {
	return bucket{size: float64(perMinute), left: float64(perMinute)}
}

// fill brings b up to now. A now before last changes nothing.
func (b *bucket) fill(now time.Time) {
	if b.last.IsZero() {
		b.last = now
	}
	if d := now.Sub(b.last); d > 0 {
		b.left = min(b.size, b.left+b.size*d.Minutes())
		b.last = now
	}
}

// wait returns how long it takes until n can be taken; 0 = now.
func (b *bucket) wait(n float64) time.Duration {
	// A thousandth of slack, so that who waits as long as told is not refused
	// for the rounding of a float.
	if b.size == 0 || b.left >= n-1e-3 {
		return 0
	}
	return time.Duration((n - b.left) / b.size * float64(time.Minute))
}

// take takes n, which may be more than there is; a negative n puts back.
func (b *bucket) take(n float64) {
	if b.size > 0 {
		b.left = min(b.size, b.left-n)
	}
}

func (b *bucket) level(limit int) Level {
	if limit == 0 {
		return Level{}
	}
	return Level{
		Limit:     limit,
		Remaining: max(0, int(b.left+1e-3)),
		Reset:     time.Duration((b.size - b.left) / b.size * float64(time.Minute)),
	}
}
