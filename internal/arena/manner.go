package arena

import (
	"fmt"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// Manner is how a client comes back that was refused.
type Manner uint8

// The manners.
const (
	Obeying    Manner = iota // when it was told, or a little later; not where no place is expected by then (x-should-retry: false)
	Sloppy                   // the same, with up to a tenth of that time less or a quarter more
	Persistent               // when it was told, a place expected or not; and without having been told, as BackingOff
	BackingOff               // whatever it was told, after 0.5 s, then twice that, up to 8 s
	Hammering                // each second
	Disguised                // each second, as somebody new

	manners
)

var mannerNames = [manners]string{"obeying", "sloppy", "persistent", "backing off", "hammering", "disguised"}

// String returns the manner in words.
func (m Manner) String() string { return mannerNames[m] }

const (
	// mostLate is how much later than told an obeying client comes: its way, and
	// the whole seconds of a header.
	mostLate = 500 * time.Millisecond

	hammerEvery = time.Second

	// Libraries wait backoffLeast, then twice as long each time up to
	// backoffMost, each time up to a quarter less.
	backoffLeast = 500 * time.Millisecond
	backoffMost  = 8 * time.Second
)

// manner draws how the next client comes back.
func (w *world) manner() Manner {
	sum := 0.0
	for _, share := range w.s.Manners {
		sum += share
	}
	if sum == 0 {
		return Obeying
	}
	x := w.random.Float64() * sum
	for m, share := range w.s.Manners {
		if x < share {
			return Manner(m)
		}
		x -= share
	}
	return Obeying
}

// comeBack says in how long v comes back after r, and whether that is when it
// was told that there is a place; ok is false for one that does not.
func (v *visit) comeBack(r *router.Refusal) (d time.Duration, told, ok bool) {
	w := v.world
	if v.retries >= w.s.Retries {
		return 0, false, false
	}
	if r.RetryAfter > 0 && (!r.NoPlace || v.manner == Persistent) {
		switch v.manner {
		case Obeying, Persistent:
			return r.RetryAfter + time.Duration(w.random.Int64N(int64(mostLate))), !r.NoPlace, true
		case Sloppy:
			return time.Duration(float64(r.RetryAfter) * (0.9 + 0.35*w.random.Float64())), true, true
		}
	}
	switch v.manner {
	case Hammering, Disguised:
		return hammerEvery, false, true
	case BackingOff, Persistent:
		wait := min(backoffLeast<<v.retries, backoffMost)
		return time.Duration(float64(wait) * (1 - 0.25*w.random.Float64())), false, true
	}
	return 0, false, false
}

// disguise makes v somebody whom no gateway has seen.
func (v *visit) disguise() {
	v.world.ever++
	v.key, v.arrival.Tenant = v.world.ever, fmt.Sprint("key ", v.world.ever)
}
