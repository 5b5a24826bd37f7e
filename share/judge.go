package share

import "time"

// ReturnGrace is how long after an outage replicas that are not back yet are
// still believed in: each asks again in its own time, up to twelve seconds later
// than the first.
const ReturnGrace = 13 * time.Second

// State is whether what replicas know is shared. The zero value is none that a
// Judge gives.
type State struct {
	// Alone means that nobody knows what the other replicas do.
	Alone bool
	// Replicas is how many are alive, this one included, at least 1; while Alone,
	// how many there were.
	Replicas int
}

// String returns shared or alone.
func (s State) String() string {
	if s.Alone {
		return "alone"
	}
	return "shared"
}

// Judge decides whether this replica is shared or alone, by what became of each
// exchange of loads. It reads no clock and does no I/O. It belongs to one
// goroutine; NewJudge makes one.
type Judge struct {
	state  State
	expiry time.Duration // for how long a silence means nothing

	read     time.Time // last answer; zero = never
	troubled bool      // an exchange failed, and not all replicas are back since
	back     time.Time // first answer after the trouble; zero while there is none
}

// NewJudge returns that of a replica that has heard nothing yet. It takes
// itself to be shared by so many replicas, at least 1, until the first See. A
// failure after an answer means nothing for expiry.
func NewJudge(replicas int, expiry time.Duration) Judge {
	return Judge{state: State{Replicas: max(replicas, 1)}, expiry: expiry}
}

// State returns the verdict as of the last See.
func (v *Judge) State() State { return v.state }

// See takes the result of one exchange: how many other replicas answered, or the
// error for which nobody knows.
func (v *Judge) See(now time.Time, others int, err error) State {
	alive := 1 + others
	switch {
	case err != nil:
		v.troubled, v.back = true, time.Time{}
		if v.read.IsZero() || now.Sub(v.read) > v.expiry {
			v.state.Alone = true
		}
		return v.state
	case v.troubled && alive < v.state.Replicas:
		// A server that was emptied knows only those who have asked since: to
		// believe in them alone would double the load on every backend.
		if v.back.IsZero() {
			v.back = now
		}
		if now.Sub(v.back) <= ReturnGrace {
			v.read, v.state.Alone = now, true
			return v.state
		}
	}
	v.read, v.troubled, v.back = now, false, time.Time{}
	v.state = State{Replicas: alive}
	return v.state
}
