package router

import (
	"slices"
	"time"
)

// Place decides where a request goes and reserves its place, under one lock.
// An unknown route is the caller's to refuse; here it is NoBackend.
func (r *Router) Place(now time.Time, req Request) Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	rt := r.routeOf[req.Route]
	if rt == nil {
		return Decision{Refusal: &Refusal{Reason: NoBackend}}
	}
	r.advance(now)
	a := newAsk(now, rt, &req)
	// Who waits in line waits for speed, or for more places than there are: one
	// place is taken as soon as it comes free. Who does not decode takes no speed.
	if req.NoQueue || a.weight == 0 || !rt.mustQueue(a.class) {
		if v := r.choose(&a, r.judge(&a)); v != nil {
			return r.accept(&a, v)
		}
	}
	return r.proceed(&a, rt.conf.OnInfeasible, ShedFloor)
}

// accept reserves the place that was chosen.
func (r *Router) accept(a *ask, v *verdict) Decision {
	d := Decision{Chosen: a.candidate(v), Policy: a.route.conf.Prefer.String(), Waited: a.waited()}
	d.Lease = r.take(a, v, a.floor)
	return d
}

// proceed goes through the steps of a request that could not be placed. cause
// is why the steps before failed; ShedFloor when there were none.
func (r *Router) proceed(a *ask, steps []Step, cause ShedReason) Decision {
	verdicts := r.judge(a)
	o := a.outlook(verdicts)
	pointless, best := a.unattainable()
	if pointless {
		if d, ok := r.probe(a, verdicts); ok {
			return d
		}
		o.best = best
	}
	for i, step := range steps {
		switch step.Kind {
		case Queue:
			if a.req.NoQueue || pointless || !o.inService {
				continue
			}
			t, why := r.standInLine(a, step.Wait, o, steps[i+1:])
			if t != nil {
				return Decision{Ticket: t, Policy: a.route.conf.Prefer.String(), Waited: a.waited()}
			}
			if cause == ShedFloor {
				cause = why
			}
		case Spill:
			if d, ok := r.spill(a, step.Route); ok {
				return d
			}
		case BestEffort:
			if d, ok := r.bestEffort(a); ok {
				return d
			}
		case Shed:
			return r.shed(a, o, pointless, cause)
		}
	}
	return r.shed(a, o, pointless, cause)
}

// shed refuses, and says what it was for.
func (r *Router) shed(a *ask, o outlook, pointless bool, cause ShedReason) Decision {
	switch {
	case !o.inService:
		cause = NoBackend
	case pointless:
		cause = ShedUnattainable
	case cause == ShedFloor && o.ttft:
		cause = ShedTTFT
	}
	return r.refuse(a, cause, o.best)
}

// spill places a on another route, with that route's promises except for what
// the request itself wished. It neither waits there nor passes those who do.
func (r *Router) spill(a *ask, name string) (Decision, bool) {
	rt := r.routeOf[name]
	if rt == nil || rt == a.route {
		return Decision{}, false
	}
	there := newAsk(a.now, rt, &a.req)
	there.arrived = a.arrived
	if there.weight > 0 && rt.mustQueue(there.class) {
		return Decision{}, false
	}
	v := r.choose(&there, r.judge(&there))
	if v == nil {
		return Decision{}, false
	}
	d := r.accept(&there, v)
	d.Spilled = name
	d.Lease.asked = a.floor
	return d, true
}

// bestEffort places a where it does least harm, without a floor.
func (r *Router) bestEffort(a *ask) (Decision, bool) {
	v := a.leastHarm(r.judge(a))
	if v == nil {
		return Decision{}, false
	}
	d := Decision{Chosen: a.candidate(v), Policy: "best_effort", Waited: a.waited()}
	d.Lease = r.take(a, v, 0)
	return d, true
}

const (
	// probeEvery is how often a floor that is out of reach is tried after all:
	// the curve may be old, and refusing everybody would never renew it.
	probeEvery = time.Minute

	// probeWithin is how far out of reach a floor may be to be worth a probe.
	probeWithin = 4.0
)

// probe lets one request a minute through to an idle target although its floor
// is out of reach. It carries no floor, or it would lock the backend.
func (r *Router) probe(a *ask, verdicts []verdict) (Decision, bool) {
	rt := a.route
	if rt.probeAt.IsZero() {
		rt.probeAt = a.now.Add(probeEvery)
	}
	if a.now.Before(rt.probeAt) {
		return Decision{}, false
	}
	var idle *verdict
	for i := range verdicts {
		v := &verdicts[i]
		if v.model == nil || v.reason.outOfService() || v.reason == ReasonCap || v.model.backend.leased() > 0 {
			continue
		}
		if v.model.solo*probeWithin >= a.floor && (idle == nil || v.model.solo > idle.model.solo) {
			idle = v
		}
	}
	if idle == nil {
		return Decision{}, false
	}
	rt.probeAt = a.now.Add(probeEvery)
	d := Decision{Chosen: a.candidate(idle), Policy: rt.conf.Prefer.String(), Waited: a.waited()}
	d.Lease = r.take(a, idle, 0)
	return d, true
}

// Assign places a request on target without asking whether it is feasible,
// as long as the backend is in service and not excluded: the door for other
// policies than the router's own. The target has to be one of the route's.
func (r *Router) Assign(now time.Time, req Request, target Target, policy string) Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	rt := r.routeOf[req.Route]
	if rt == nil {
		return Decision{Refusal: &Refusal{Reason: NoBackend}}
	}
	r.advance(now)
	a := newAsk(now, rt, &req)
	verdicts := r.judge(&a)
	i := slices.IndexFunc(rt.conf.Targets, func(t RouteTarget) bool { return t.Target == target })
	if i < 0 || verdicts[i].reason.outOfService() {
		d := r.refuse(&a, NoBackend, 0)
		d.Policy = policy
		return d
	}
	d := Decision{Chosen: a.candidate(&verdicts[i]), Policy: policy, Waited: a.waited()}
	d.Lease = r.take(&a, &verdicts[i], a.floor)
	return d
}

// Explain returns every candidate for req as Place would see it now, and
// reserves nothing.
func (r *Router) Explain(now time.Time, req Request) []Candidate {
	r.mu.Lock()
	defer r.mu.Unlock()
	rt := r.routeOf[req.Route]
	if rt == nil {
		return nil
	}
	r.advance(now)
	a := newAsk(now, rt, &req)
	verdicts := r.judge(&a)
	candidates := make([]Candidate, len(verdicts))
	for i := range verdicts {
		candidates[i] = a.candidate(&verdicts[i])
	}
	return candidates
}
