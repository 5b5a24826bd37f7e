package router

import (
	"slices"
	"time"
)

// ShedReason says why a request was refused. Its strings are the label values
// of pacer_shed_total.
type ShedReason uint8

// The shed reasons.
const (
	ShedFloor        ShedReason = iota // floor
	ShedUnattainable                   // floor_unattainable: not even an idle target could give it
	ShedTTFT                           // ttft
	ShedQueueFull                      // queue_full
	ShedTimeout                        // timeout: waited as long as allowed
	NoBackend                          // none in service: not load, answered 503
)

var shedNames = [...]string{
	ShedFloor:        "floor",
	ShedUnattainable: "floor_unattainable",
	ShedTTFT:         "ttft",
	ShedQueueFull:    "queue_full",
	ShedTimeout:      "timeout",
	NoBackend:        "no_backend",
}

// String returns the label value; "no_backend" for NoBackend.
func (s ShedReason) String() string {
	if int(s) < len(shedNames) {
		return shedNames[s]
	}
	return "floor"
}

// Refusal says why a request was not placed and when to come back.
type Refusal struct {
	Reason     ShedReason
	RetryAfter time.Duration // 1 s to 60 s, jittered; 0 when waiting cannot help
	Best       float64       // highest Low on offer, tokens/s; 0 when unknown
	Floor      float64       // what was asked for
}

// The bounds of Retry-After before the jitter of ±20 %, so that it ends up
// within 1 s and 60 s and nobody is told the bound itself, all at once.
const (
	retryLeast = 1250 * time.Millisecond
	retryMost  = 50 * time.Second

	// retryNoBackend is what a client is told while nothing is in service:
	// about as long as a breaker stays open.
	retryNoBackend = 5 * time.Second
)

// refuse says no to a, and when to come back; who failed over is not told, but
// how it failed.
func (r *Router) refuse(a *ask, reason ShedReason, best float64) *Refusal {
	f := &Refusal{Reason: reason, Best: best, Floor: a.floor, RetryAfter: r.comeBack(a, reason)}
	if f.RetryAfter > 0 && reason != NoBackend && !a.req.NoQueue && !a.req.Again {
		since := a.since
		if since.IsZero() {
			since = a.arrived
		}
		a.route.promises.make(a.now, a.now.Add(f.RetryAfter), since, a.req.Tenant, a.req.Key)
	}
	return f
}

// comeBack is when a request that is refused for reason may come back, 0 when
// waiting cannot help.
func (r *Router) comeBack(a *ask, reason ShedReason) time.Duration {
	switch reason {
	case ShedUnattainable:
		return 0
	case NoBackend:
		return r.jitter(a, retryNoBackend)
	}
	if a.tooWide() {
		return 0
	}
	places, known := r.places(a)
	if !known {
		return r.jitter(a, retryLeast)
	}
	return r.jitter(a, untilPlace(&places, float64(a.ahead()+1)))
}

// ahead is how many have a place before a refused request like a: those in line
// and those who were told to come back, also on the routes that share its
// backends. On its own route tenants take turns.
func (a *ask) ahead() int {
	rt := a.route
	count := 0
	if a.class == Batch {
		count = rt.lines[Interactive].len()
	}
	if rt.promised(a.now) > 0 || rt.lines[a.class].len() > 0 {
		count += rt.lastTurn(a.class, a.req.Tenant)
	}
	for _, other := range rt.rivals {
		if !a.rivals(other) {
			continue
		}
		count += other.lines[Interactive].len()
		if other.conf.Class == Interactive || a.class == Batch {
			count += other.promised(a.now)
		}
	}
	return count
}

// rivals reports whether a place that comes free may be taken on other: both
// have a target that is counted together, or on one backend whose cap stands in
// a's way.
func (a *ask) rivals(other *route) bool {
	for _, m := range a.route.models {
		if m == nil {
			continue
		}
		if slices.Contains(m.group.routes, other) || a.short(m.group.backend) > 0 && slices.Contains(m.group.backend.routes, other) {
			return true
		}
	}
	return false
}

// lastTurn is how many in a line or expected back go before one more of tenant:
// all of its own, and of every other tenant as many and one more.
func (rt *route) lastTurn(class Class, tenant string) int {
	q, p := &rt.lines[class], &rt.promises
	own := q.of(tenant) + p.of[tenant]
	count := own
	for name, n := range p.of {
		if name != tenant {
			count += min(n+q.of(name), own+1)
		}
	}
	for name, t := range q.tenants {
		if name != tenant && p.of[name] == 0 {
			count += min(len(t.tickets), own+1)
		}
	}
	return count
}

// promised is how many are expected to come back.
func (rt *route) promised(now time.Time) int {
	if rt.promises.open > 0 {
		rt.promises.sweep(now)
	}
	return rt.promises.open
}

// jitter keeps d within bounds and spreads it by ±20 %.
func (r *Router) jitter(a *ask, d time.Duration) time.Duration {
	d = min(max(d, retryLeast), retryMost)
	return time.Duration(float64(d) * (0.8 + 0.4*r.chance(a)))
}
