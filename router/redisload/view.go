package redisload

import (
	"time"

	"github.com/pacer-dev/pacer/router"
)

// view is what this replica believes of the others. It belongs to the
// goroutine of Run.
type view struct {
	replicas int           // alive when last known, this one included
	expiry   time.Duration // how long a silence means nothing
	grace    time.Duration // how long after an outage the missing may still come

	read     time.Time // last answer; zero = never
	troubled bool      // an exchange failed, and not all are back since
	back     time.Time // first answer after the trouble; zero while there is none
	lost     bool      // the router was last told Lost
}

// see takes the result of one exchange and returns what the router is to be
// told; false when it should go on with what it has.
func (v *view) see(now time.Time, others map[string]report, err error) (router.RemoteLoad, bool) {
	if err != nil {
		v.troubled, v.back = true, time.Time{}
		if !v.lost && !v.read.IsZero() && now.Sub(v.read) <= v.expiry {
			return router.RemoteLoad{}, false // what was read still holds
		}
		return v.tellLost(), true
	}
	v.read = now
	alive := 1 + len(others)
	if v.troubled && alive < v.replicas {
		// A server that was emptied knows only those who have asked since: to
		// believe in them alone would double the load on every backend.
		if v.back.IsZero() {
			v.back = now
		}
		if now.Sub(v.back) <= v.grace {
			return v.tellLost(), true
		}
	}
	v.troubled, v.back, v.lost = false, time.Time{}, false
	v.replicas = alive
	return router.RemoteLoad{ByBackend: total(others), Replicas: alive}, true
}

func (v *view) tellLost() router.RemoteLoad {
	v.lost = true
	return router.RemoteLoad{Replicas: v.replicas, Lost: true}
}
