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
	a := &r.asking
	a.put(now, rt, &req)
	if !req.NoQueue && !req.Spare && !req.Again {
		if since, ok := rt.promises.keep(now, req.Key); ok {
			a.since = since
		}
	}
	p := r.planNewcomer(a)
	if req.Spare && p.chosen == nil { // nobody is turned away, to come back later
		return Decision{Refusal: &Refusal{Reason: p.cause, Best: p.best, Floor: a.floor}, Policy: p.policy, Waited: a.waited}
	}
	return r.carryOut(a, &p)
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
		return r.carryOut(&a, &plan{outcome: OutcomeNoBackend, policy: policy, cause: NoBackend})
	}
	p := a.onto(&verdicts[i], OutcomePlaced)
	p.policy = policy
	return r.carryOut(&a, &p)
}
