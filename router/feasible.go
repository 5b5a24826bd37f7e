package router

import (
	"math"
	"slices"
	"time"
)

// judge asks the rules about every target of a's route. The verdicts are good
// until the next call, and as long as the lock is held.
func (r *Router) judge(a *ask) {
	r.scratch.verdicts = a.judge(r.scratch.verdicts)
	if r.audit != nil {
		r.audit(a)
	}
}

// judge asks the rules about a's targets, and keeps the verdicts where there is
// memory for them.
func (a *ask) judge(memory []verdict) []verdict {
	models := a.route.models
	a.verdicts = slices.Grow(memory[:0], len(models))[:len(models)]
	a.at, a.unheard = a.now.Sub(a.route.router.began), a.route.router.peers.unheard()
	plain := a.plain()
	var c present
	for i, m := range models {
		v := &a.verdicts[i]
		*v = verdict{model: m, index: int32(i), headroom: math.Inf(1)}
		if m == nil {
			v.reason = ReasonUnknown
			continue
		}
		if plain && m.gist.judge(a, v) {
			continue
		}
		*v = verdict{model: m, index: int32(i), headroom: math.Inf(1)}
		c.count(m.group)
		a.weigh(v, &c)
	}
	return a.verdicts
}

// outlook is what the verdicts say together, for those who cannot be placed.
type outlook struct {
	inService bool          // some backend takes requests
	ttft      bool          // nothing but the TTFT stands in the way
	best      float64       // highest bound on offer, 0 when unknown
	soonest   time.Duration // least time to the first token, once a slot is free
	queue     time.Duration // least mean wait for a slot
	known     bool          // every curve in service is known as far as the request would go
}

func (a *ask) outlook() outlook {
	o := outlook{known: true, soonest: math.MaxInt64, queue: math.MaxInt64}
	late, loaded := false, false
	for i := range a.verdicts {
		v := &a.verdicts[i]
		if v.reason.outOfService() {
			continue
		}
		o.inService = true
		o.best = max(o.best, v.low)
		soonest, queue := a.outlast(v.model)
		o.soonest, o.queue = min(o.soonest, soonest), min(o.queue, queue)
		o.known = o.known && !v.model.limitedByEvidence(int(v.m)+a.weight, a.floor)
		if v.reason == ReasonTTFT {
			late = true
		} else if v.reason != OK {
			loaded = true
		}
	}
	o.ttft = late && !loaded
	return o
}

// tooWide reports whether a starts more sequences than any backend of its route
// takes at once, however little runs there.
func (a *ask) tooWide() bool {
	for _, m := range a.route.models {
		if m != nil && (m.group.backend.maxConcurrency <= 0 || a.weight <= m.group.backend.maxConcurrency) {
			return false
		}
	}
	return a.weight > 1
}

// unattainable reports whether no target of the route, in service or not,
// could keep a's floor even when idle, and the best bound on offer there.
// Where a curve is unknown nobody can say so.
func (a *ask) unattainable() (bool, float64) {
	if a.floor <= 0 || len(a.route.models) == 0 {
		return false, 0
	}
	best := 0.0
	for _, m := range a.route.models {
		if m == nil {
			continue
		}
		if !m.outOfReach(a.weight, a.floor) {
			return false, 0
		}
		best = max(best, m.curve.Low(a.weight, 0))
	}
	return true, best
}
