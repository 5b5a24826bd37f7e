package router

import (
	"math"
	"slices"
	"time"
)

// verdict is what the rules say of one target of a route.
type verdict struct {
	model    *model  // nil: its backend is not configured
	index    int32   // in the route's targets
	m        int32   // sequences there
	low      float64 // the curve's bound with the request, 0 when unknown
	protect  float64 // highest floor that must hold there
	headroom float64 // least bound over need, +Inf where nothing is needed
	rank     float64 // set by choose, for those that it may take
	reason   Reason
	fresh    bool // the curve is unknown
}

// judge asks the rules about every target of a's route. The answer is good
// until the next call, and as long as the lock is held.
func (r *Router) judge(a *ask) []verdict {
	r.verdicts = a.judge(r.verdicts[:0])
	return r.verdicts
}

// judge appends the verdicts on a's targets, in their order.
func (a *ask) judge(verdicts []verdict) []verdict {
	models := a.route.models
	verdicts = slices.Grow(verdicts, len(models))[:len(models)]
	for i, m := range models {
		v := &verdicts[i]
		*v = verdict{model: m, index: int32(i), headroom: math.Inf(1)}
		a.weigh(v)
	}
	return verdicts
}

// weigh asks the rules about one target.
func (a *ask) weigh(v *verdict) {
	m := v.model
	if m == nil {
		v.reason = ReasonUnknown
		return
	}
	g := m.group
	v.reason, v.m = a.service(g.backend), int32(g.m())
	if v.reason == OK && a.passesOver(m) && (a.req.Again || a.req.Spare || !m.standing.due(a.now)) {
		v.reason = ReasonRefuses
	}
	if a.weight == 0 { // it does not decode: no curve speaks of it
		if v.reason == OK {
			v.reason = a.caps(g.backend)
		}
		return
	}
	g.scan(a.now)
	v.fresh = !m.known
	k, prompt := int(v.m)+a.weight, g.promptWaiting()
	bound, own := m.carries(k, extraP(prompt, a.answer(m)), a.floor)
	own = own || m.guessed && g.leased() == 0 // as where nothing is known
	v.low = bound
	if a.floor > 0 && m.known {
		v.headroom = bound / a.floor
	}
	protects := a.protects(v, g, k, prompt+a.prompt)
	if v.reason != OK {
		return
	}
	switch {
	case a.caps(g.backend) != OK:
		v.reason = ReasonCap
	case g.ramp.recovered && k > g.ramp.cap && g.leased() > 0, !own && (v.fresh || m.guessed):
		v.reason = ReasonSlowStart
	case !own:
		v.reason = ReasonOwnFloor
	case protects != OK:
		v.reason = protects
	case !a.pays(g, a.prompt):
		v.reason = ReasonProtects
	case a.class == Batch && !(a.leavesReserve(g, k) && a.leavesPlaces(g.backend, a.weight)):
		v.reason = ReasonReserve
	case !a.inTime(m, int(v.m)):
		v.reason = ReasonTTFT
	}
}

// scarce reports whether k sequences in g leave a place at a floor within reach
// that is higher than a's. Where that floor is out of reach, or has no place left
// with the newcomer, nobody loses one.
func (a *ask) scarce(g *group, k int) bool {
	if g.promised <= a.floor {
		return false
	}
	for _, m := range g.models {
		if m.promised <= a.floor || !m.known || m.outOfReach(1, m.promised) {
			continue
		}
		if _, ok := m.carries(k, extraP(g.promptWaiting(), m.answer), m.promised); ok {
			return true
		}
	}
	return false
}

// service is rule 1 as far as it does not depend on the load.
func (a *ask) service(b *backend) Reason {
	switch {
	case b.health == Down, b.health == Loading, slices.Contains(a.req.Exclude, b.name):
		return ReasonDown
	case b.health == Draining:
		return ReasonDrain
	case b.health == Probing && (b.probing(a.now) || a.req.Spare):
		return ReasonBreaker
	}
	return OK
}

// caps is the hard cap of rule 1, on what Pacer has there. A request that does
// not decode takes one place of it.
func (a *ask) caps(b *backend) Reason {
	if a.short(b) > 0 {
		return ReasonCap
	}
	return OK
}

// protects is rule 3: whoever runs in g with a floor keeps it with k sequences
// there and so many prompt tokens to prefill, the newcomer's included. It notes
// the highest such floor and the least headroom in v. Streams without a floor
// are skipped.
func (a *ask) protects(v *verdict, g *group, k, prompt int) Reason {
	reason := OK
	for _, m := range g.models {
		floor := m.protect()
		if floor <= 0 {
			continue
		}
		v.protect = max(v.protect, floor)
		bound, ok := m.carries(k, extraP(prompt, m.answer), floor)
		if m.known {
			v.headroom = min(v.headroom, bound/floor)
		}
		if ok || reason != OK {
			continue
		}
		reason = ReasonProtects
		if !m.known || m.guessed {
			reason = ReasonSlowStart
		}
	}
	return reason
}

// leavesReserve is rule 4: with k sequences in g and the reserve on top, the
// highest floor configured for each target still holds. While interactive
// requests are kept out nothing is left for batch, but for what it has saved up. A
// floor that no stream would be admitted with, even alone, needs no reserve.
func (a *ask) leavesReserve(g *group, k int) bool {
	if g.keptOut(a.now) {
		return g.credit >= 1 // what it has saved up
	}
	for _, m := range g.models {
		if m.promised <= 0 || m.outOfReach(1, m.promised) {
			continue
		}
		reserve := max(m.reserve, a.route.conf.Reserve)
		if !m.known {
			// Slow start, which lets anyone on an idle backend, leaves
			// room for the reserve even there.
			if k+reserve > g.ramp.cap {
				return false
			}
			continue
		}
		if _, ok := m.carries(k+reserve, extraP(g.promptWaiting()+a.prompt, m.answer), m.promised); ok {
			continue
		}
		// Where the floor is not believed even of a single stream, and was
		// never tried, a few of batch show what it takes.
		if _, alone := m.carries(1, 0, m.promised); alone || k+reserve > slowStartCap {
			return false
		}
	}
	return true
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

// leavesPlaces is rule 4 for the cap of b, whatever decodes together there: with
// so many places more taken, the reserve still fits below it. One that comes to an
// idle backend is let in, or a cap no larger than the reserve would keep batch out
// for ever.
func (a *ask) leavesPlaces(b *backend, users int) bool {
	spare, capped := b.spare()
	return !capped || spare-users >= a.reserveOn(b) || spare == b.maxConcurrency && users <= max(a.weight, 1)
}

// reserveOn is the largest reserve of the floors on b that leavesReserve counts.
func (a *ask) reserveOn(b *backend) int {
	reserve := 0
	for _, g := range b.groups {
		for _, m := range g.models {
			if m.promised > 0 && !m.outOfReach(1, m.promised) {
				reserve = max(reserve, m.reserve, a.route.conf.Reserve)
			}
		}
	}
	return reserve
}

func (a *ask) outlook(verdicts []verdict) outlook {
	o := outlook{known: true, soonest: math.MaxInt64, queue: math.MaxInt64}
	late, loaded := false, false
	for i := range verdicts {
		v := &verdicts[i]
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
