package router

import "time"

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

// refuse says no to a, and when to come back.
func (r *Router) refuse(a *ask, reason ShedReason, best float64) *Refusal {
	f := &Refusal{Reason: reason, Best: best, Floor: a.floor, RetryAfter: r.comeBack(a, reason)}
	if reason != ShedUnattainable && reason != NoBackend {
		a.route.owe(a.now)
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
		return r.jitter(retryNoBackend)
	}
	return r.jitter(a.route.retryAfter(a.now))
}

// retryAfter predicts when the k-th place from now is free, with k = those in
// line and those already sent away with a date that has not come, plus this
// one. Places come free at Σ m·TPS(m)/answer per second over the backends of
// the route.
func (rt *route) retryAfter(now time.Time) time.Duration {
	rate := rt.releaseRate()
	if rate <= 0 {
		return retryLeast // nothing runs: it is not others who must leave
	}
	k := rt.owedAfter(now, rate) + 1 + float64(rt.waiting())
	return time.Duration(min(k/rate, retryMost.Seconds()) * float64(time.Second))
}

// owe notes that somebody was sent away with a date.
func (rt *route) owe(now time.Time) {
	rt.owed = rt.owedAfter(now, rt.releaseRate()) + 1
	rt.owedAt = now
}

// owedAfter is how many of those who were told to come back still are to.
func (rt *route) owedAfter(now time.Time, rate float64) float64 {
	return max(0, rt.owed-rate*max(now.Sub(rt.owedAt).Seconds(), 0))
}

// jitter keeps d within bounds and spreads it by ±20 %.
func (r *Router) jitter(d time.Duration) time.Duration {
	d = min(max(d, retryLeast), retryMost)
	return time.Duration(float64(d) * (0.8 + 0.4*r.rand()))
}
