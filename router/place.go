package router

import "time"

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
	a := &r.scratch.asking
	a.put(now, rt, &req)
	rt.came++
	if !req.NoQueue && !req.Spare && !req.Again {
		if kept, ok := rt.promises.keep(now, req.Key); ok {
			a.since, a.inVain = kept.since, kept.back
		}
	}
	p := r.planNewcomer(a)
	if req.Spare && p.chosen == nil { // nobody is turned away, to come back later
		return Decision{Refusal: &Refusal{Reason: p.cause, Best: p.best, Floor: a.floor}, Policy: p.policy, Waited: a.waited}
	}
	return r.carryOut(a, &p)
}
