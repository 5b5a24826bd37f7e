package router

import (
	"slices"
	"time"
)

// Instead returns where req, which has a place, would go if its target, has, were
// away, and after that one, at most so many: first those that keep every floor, in
// the order of the route's policy, then the others, the least harm first. An
// engine that dies sends a few requests there until its breaker opens, which is
// better than that they fail. Nothing is reserved.
func (r *Router) Instead(now time.Time, req Request, has Target, most int) (list []Target) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rt := r.routeOf[req.Route]
	if rt == nil || len(rt.models) < 2 {
		return nil
	}
	r.advance(now)
	req.Exclude = append(slices.Clip(req.Exclude), has.Backend)
	for len(list) < most {
		a := newAsk(now, rt, &req)
		a.preview = true
		r.judge(&a)
		v := r.choose(&a)
		if v == nil {
			v = a.leastHarm()
		}
		if v == nil {
			break
		}
		t := rt.conf.Targets[v.index].Target
		list = append(list, t)
		req.Exclude = append(req.Exclude, t.Backend)
	}
	return list
}

// Moved takes a place for a request that runs on t already, since whoever carried
// it found the chosen backend away. No rule is asked, for nothing is left to
// decide, and the lease carries no floor: nobody is locked out for its sake. ok is
// false where t is no target of the route.
func (r *Router) Moved(now time.Time, req Request, t Target) (d Decision, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rt := r.routeOf[req.Route]
	if rt == nil {
		return Decision{}, false
	}
	r.advance(now)
	a := &r.scratch.asking
	a.put(now, rt, &req)
	r.judge(a)
	for i := range a.verdicts {
		v := &a.verdicts[i]
		if v.model != nil && rt.conf.Targets[v.index].Target == t {
			return r.carryOut(a, &intent{outcome: OutcomeBestEffort, policy: "moved", chosen: v}), true
		}
	}
	return Decision{}, false
}
