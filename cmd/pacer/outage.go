package main

import "time"

// outageAfter is how long a part of the store has to fail before it is said: when
// all of it is away, share says so first, and once is enough.
const outageAfter = 5 * time.Second

// outage is that of one part of the store. It belongs to one goroutine.
type outage struct {
	alone func() bool // the store as a whole is away

	since time.Time // of the first failure in a row; zero = it works
	said  bool
}

// tell takes what came of a try, and reports whether the failure is to be said now.
func (o *outage) tell(now time.Time, err error) bool {
	switch {
	case err == nil:
		o.since, o.said = time.Time{}, false
	case o.since.IsZero():
		o.since = now
	case !o.said && now.Sub(o.since) >= outageAfter && !o.alone():
		o.said = true
		return true
	}
	return false
}
