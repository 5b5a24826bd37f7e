package router

import "time"

// A target that is full may have a prompt in its cache which another one with room
// would have to prefill. That costs the user as long as the prefill takes, and all who
// stream there too. Near the limit it costs places: engines prefill again what others
// have, carry fewer users, and so send more of them elsewhere. A place comes free
// each time that somebody ends, which is soon where many run: such a request waits for it
// in the route's line, as long as anybody may. It holds up nobody who goes elsewhere.

// planWarmer is the intent that a waits in line for a place where its prompt is cached,
// though it may go to v; ok is false where that is not worth it, or its route has no
// line to begin with.
func (r *Router) planWarmer(a *ask, v *verdict) (p intent, ok bool) {
	steps := a.route.conf.OnInfeasible
	if len(steps) == 0 || steps[0].Kind != Queue || a.route.full() {
		return intent{}, false
	}
	g, sooner := v.warmer(a)
	if g != nil && g.placeIn() > sooner {
		g = nil
	}
	if g == nil {
		g = v.behind(a)
	}
	if g == nil {
		return intent{}, false
	}
	left := steps[0].Wait - a.stood
	if a.maxTTFT > 0 {
		soonest, queue := a.outlast(v.model)
		left = min(left, a.maxTTFT-soonest-queue-a.waited)
	}
	if left <= 0 {
		return intent{}, false
	}
	return intent{
		outcome: OutcomeQueued, policy: string(a.route.conf.Prefer),
		deadline: a.now.Add(left), after: steps[1:], warmer: g,
	}, true
}

// warmer is where a better waits for a place than to go to v: for its load alone it
// cannot go there now, and the most of the prompt is cached there for sure. sooner is how
// much less time the prefill takes there. nil = there is none.
func (v *verdict) warmer(a *ask) (g *group, sooner time.Duration) {
	if v == nil || v.fresh || !v.mayWait(a) {
		return nil, 0
	}
	here := a.toPrefill(v.model)
	least := here
	for i := range a.verdicts {
		w := &a.verdicts[i]
		if w.reason != ReasonOwnFloor && w.reason != ReasonProtects || !a.cached(w.model).draws() {
			continue
		}
		if left := a.toPrefill(w.model); left < least {
			g, least = w.model.group, left
		}
	}
	if g == nil {
		return nil, 0
	}
	return g, seconds(g.price.token * float64(here-least))
}

// suits reports whether a has no more to prefill where v is about than those who came there
// last. Who stands in line takes such a place: left to others, it would go to one who costs
// the engine more.
func (v *verdict) suits(a *ask) bool {
	return float64(a.toPrefill(v.model)) <= v.model.group.price.usual.mean()
}

// mayWait reports whether a, which may go to v, may wait for a place where its prompt is
// cached.
func (v *verdict) mayWait(a *ask) bool {
	return len(a.req.Warm) > 0 && a.class != Batch && !v.model.group.clearing.on(a.now) && !a.req.NoQueue && !a.req.Spare && !a.spilled && a.route.followsCaches()
}

// behind is where a waits for the first token of a prompt that has most of its own, rather
// than to go to v: what is left of that prefill takes less time than to compute the same
// there. Who finds an idle engine goes there, and so the prompt is in two caches, as long as
// that leaves no fewer idle ones than prefill it: another prompt that many share finds one
// then, on which nobody streams yet. nil = there is none.
func (v *verdict) behind(a *ask) (g *group) {
	if v == nil || a.insists || !v.mayWait(a) {
		return nil
	}
	here, ahead, least := a.toPrefill(v.model), v.model.group.prefillLeft(a.now), maxLead
	bring, idle := 0, 0
	for i := range a.verdicts {
		w := &a.verdicts[i]
		switch w.reason {
		case OK, ReasonOwnFloor, ReasonProtects, ReasonSlowStart:
		default:
			continue
		}
		if w.m == 0 && w != v {
			idle++
		}
		there := a.cached(w.model)
		if !there.draws() || !there.comes() || !w.model.group.prefills(a.now) {
			continue
		}
		bring++
		saves := seconds(v.model.group.price.token * float64(here-max(a.toPrefill(w.model)-there.Soon, 1)))
		if left := w.model.group.prefillLeft(a.now); left < ahead+saves && left < least {
			g, least = w.model.group, left
		}
	}
	if v.m == 0 && bring <= idle {
		return nil
	}
	return g
}

// followsCaches reports whether the route goes where a prompt is cached: not without
// affinity, in the order of the configuration, by weights or by price.
func (rt *route) followsCaches() bool {
	if rt.policy.Regardless || rt.conf.NoAffinity || rt.conf.Prefer == Order || rt.conf.Prefer == Cheapest {
		return false
	}
	for i := range rt.conf.Targets {
		if rt.conf.Targets[i].Weight > 0 {
			return false
		}
	}
	return true
}

// placeIn is how long it takes until a place comes free in g, behind those who wait for
// one there: each of its sequences ends once in the time of a usual answer.
func (g *group) placeIn() time.Duration {
	m := g.fastest()
	if m == nil {
		return maxLead
	}
	ends := float64(g.m()) * finite(m.expects(max(g.m(), 1))) / g.usualAnswer(m)
	return seconds(float64(1+g.awaited) / max(ends, 1/maxLead.Seconds()))
}
