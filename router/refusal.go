package router

import (
	"math"
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
	NoPlace    bool          // RetryAfter is the longest time told, and until then every place is promised to somebody else
	Best       float64       // highest Low on offer, tokens/s; 0 when unknown
	Floor      float64       // what was asked for
	Sequences  int           // for each of so many at once
}

// The bounds of Retry-After before the jitter, so that it ends up within 1 s and
// 60 s and nobody is told the bound itself, all at once.
const (
	retryLeast = time.Second
	retryMost  = 50 * time.Second

	// retryLater is how much later than a place is expected somebody may be told to
	// come. On average it is half of that, so a tenth of all places is told to
	// nobody: without it those who come back would need all there are, and each
	// one that comes free a little late would be missed by somebody.
	retryLater = 0.2

	// retryNoBackend is what a client is told while nothing is in service:
	// about as long as a breaker stays open.
	retryNoBackend = 5 * time.Second
)

// refuse says no to a, and when to come back; who failed over is not told, but
// how it failed.
func (r *Router) refuse(a *ask, reason ShedReason, best float64) *Refusal {
	f := &Refusal{Reason: reason, Best: best, Floor: a.floor, Sequences: a.weight}
	f.RetryAfter, f.NoPlace = r.comeBack(a, reason)
	if f.RetryAfter > 0 && !f.NoPlace && reason != NoBackend && !a.req.NoQueue && !a.req.Again {
		since := a.since
		if since.IsZero() {
			since = a.arrived
		}
		a.route.promises.make(a.now, promise{at: a.now.Add(f.RetryAfter), since: since, back: a.back(), tenant: a.req.Tenant}, a.req.Key)
	}
	return f
}

// comeBack is when a request that is refused for reason may come back, 0 when
// waiting cannot help. noPlace says that no place is expected for it by then.
func (r *Router) comeBack(a *ask, reason ShedReason) (d time.Duration, noPlace bool) {
	switch reason {
	case ShedUnattainable:
		return 0, false
	case NoBackend:
		return r.jitter(a, retryNoBackend), false
	}
	if a.tooWide() {
		return 0, false
	}
	if a.route.promises.full(a.now, a.req.Tenant) {
		return r.jitter(a, retryMost), true
	}
	places, known := r.places(a)
	if !known {
		return r.jitter(a, a.paidBack()), false
	}
	ahead := a.ahead()
	left, passes := a.passes(ahead)
	if passes {
		ahead-- // that place is free
	}
	d, ok := untilPlace(&places, ahead+1)
	if passes {
		if !ok {
			d, ok = 0, true
		}
		d = max(d, left)
	}
	if (!ok || d > retryMost) && ahead >= 1 && a.route.lengths.weight >= enough && !a.yields() && !a.mayProve() {
		return r.jitter(a, retryMost), true
	}
	return r.jitter(a, d), false
}

// mayProve reports whether what keeps the next minute's places from a may be
// promises to its own tenant that nobody heeds. One who comes as told shows how
// many do: without a promise nobody could, and a client that hammers would have its
// tenant refused for as long as it goes on.
func (a *ask) mayProve() bool { return a.req.Key != 0 && a.route.promises.ignored(a.req.Tenant) }

// passes is how long it takes until what keeps a place from a that is free passes
// by itself: a prompt is prefilled there, a limit is paid back, or a slow start goes on. Those who go
// before it have prompts like its own. ok is false where no place is free.
func (a *ask) passes(ahead float64) (d time.Duration, ok bool) {
	for i := range a.verdicts {
		v := &a.verdicts[i]
		var left time.Duration
		switch m := v.model; {
		case v.reason == ReasonTTFT && (m.ttft.Slots <= 0 || int(v.m) < m.ttft.Slots),
			v.reason == ReasonProtects && v.basis == ByLead:
			left = m.group.prefillLeft(a.now) + seconds(ahead*m.prefill*float64(a.prompt))
		case v.basis == ByQuota:
			left, _ = a.affords(m, int(min(ahead, endlessRoom)))
		case v.reason == ReasonSlowStart && m.group.ramp.recovered:
			left = seconds(math.Log2(1+ahead/float64(m.group.ramp.cap)) * retryLeast.Seconds()) // it doubles
		default:
			continue
		}
		if !ok || left < d {
			d, ok = left, true
		}
	}
	return d, ok
}

// yields reports whether a is batch that leaves some target to those who are kept
// out of it: that passes with time, and no place has to come free.
func (a *ask) yields() bool {
	return slices.ContainsFunc(a.verdicts, func(v verdict) bool {
		return v.reason == ReasonReserve && v.model.group.keptOut(a.now)
	})
}

// ahead is how many have a place before a refused request like a: those in line
// and those who were told to come back, also on the routes that share its
// backends. On its own route tenants take turns.
func (a *ask) ahead() float64 {
	rt := a.route
	count := 0.0
	if a.class == Batch {
		count = float64(rt.lines[Interactive].len())
	}
	if rt.promises.open > 0 || rt.lines[a.class].len() > 0 {
		count += rt.lastTurn(a.now, a.class, a.req.Tenant)
	}
	for _, other := range rt.rivals {
		if !a.rivals(other) {
			continue
		}
		count += float64(other.lines[Interactive].len())
		if other.conf.Class == Interactive || a.class == Batch {
			count += other.promises.expected(a.now)
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
// all of its own, and of every other tenant as many and one more, of both.
func (rt *route) lastTurn(now time.Time, class Class, tenant string) float64 {
	q, p := &rt.lines[class], &rt.promises
	p.sweep(now)
	share, strangers := p.shares(tenant)
	own := q.of(tenant)
	count := float64(own)
	if t := p.tenants[tenant]; t != nil {
		own, count = own+t.open, count+share*float64(t.open)
	}
	return count + q.told.others(tenant, own+1) + q.fresh.others(tenant, own+1) + p.others(tenant, own+1, strangers)
}

// jitter keeps d within bounds and spreads it by up to 20 %, later.
func (r *Router) jitter(a *ask, d time.Duration) time.Duration {
	d = min(max(d, retryLeast), retryMost)
	return time.Duration(float64(d) * (1 + retryLater*r.chance(a)))
}
