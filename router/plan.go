package router

import (
	"math"
	"slices"
	"time"
)

// intent is what is to become of a request. Making one changes nothing: that is
// carryOut's.
type intent struct {
	outcome Outcome
	policy  string
	cause   ShedReason // of one that is refused
	best    float64    // of one that is refused: highest bound on offer, tokens/s

	// Where it goes, nil when nobody takes it: a verdict on a target of the
	// route, or of the one that it is spilled to.
	chosen  *verdict
	spilled *ask    // as it is put to that route; else nil
	floor   float64 // that the lease carries

	behind int // of one that waits or is refused, how many in line go before it

	// Of one that waits: until when, and what comes after that.
	deadline time.Time
	after    []Step
	warmer   *group // where its prompt is cached, if it waits for that
}

// onto is the intent to place a where v says.
func (a *ask) onto(v *verdict, outcome Outcome) intent {
	return intent{outcome: outcome, policy: string(a.route.conf.Prefer), chosen: v, floor: a.floor}
}

// planNewcomer decides about a request that has just come.
func (r *Router) planNewcomer(a *ask) intent {
	r.judge(a)
	if a.route.policy.Regardless {
		if v := r.choose(a); v != nil {
			return a.onto(v, OutcomePlaced)
		}
		return intent{outcome: OutcomeNoBackend, policy: string(a.route.conf.Prefer), cause: NoBackend}
	}
	if v := a.stale(); v != nil {
		return intent{outcome: OutcomeProbe, policy: string(a.route.conf.Prefer), chosen: v}
	}
	// Who waits in line waits for speed, or for more places than there are: one
	// place is taken as soon as it comes free. Who does not decode takes no speed.
	behind := a.behind()
	if behind == 0 {
		if v := r.choose(a); v != nil {
			if p, ok := r.planWarmer(a, v); ok && !a.req.Moves {
				return p
			}
			if !r.peers.bids(a, v) {
				return a.onto(v, OutcomePlaced)
			}
		}
	}
	if a.req.Spare {
		return a.planShed(a.outlook(), false, ShedFloor)
	}
	if a.req.Moves && !a.req.NoQueue {
		return a.route.planMove(a)
	}
	p := r.planSteps(a, a.route.conf.OnInfeasible, ShedFloor)
	p.behind = behind
	return p
}

// planMove has a stand in the line of its route for a place elsewhere, if there is a line,
// and one may come free that it could have.
func (rt *route) planMove(a *ask) intent {
	o := a.outlook()
	i := slices.IndexFunc(rt.conf.OnInfeasible, func(s Step) bool { return s.Kind == Queue })
	pointless, _ := a.unattainable()
	if i < 0 || pointless || !o.inService || a.tooWide() || rt.moving() >= rt.mostWaiting() {
		return a.planShed(o, pointless, ShedFloor)
	}
	wait := rt.conf.OnInfeasible[i].Wait
	return intent{outcome: OutcomeQueued, policy: string(rt.conf.Prefer), deadline: a.now.Add(wait - a.stood)}
}

// planSteps goes through the steps of a request that was judged and could not be
// placed. cause is why the steps before failed; ShedFloor when there were none.
func (r *Router) planSteps(a *ask, steps []Step, cause ShedReason) intent {
	o := a.outlook()
	pointless, best := a.unattainable()
	if pointless {
		if v := a.probe(); v != nil {
			return intent{outcome: OutcomeProbe, policy: string(a.route.conf.Prefer), chosen: v}
		}
		o.best = best
	}
	for i, step := range steps {
		switch step.Kind {
		case Queue:
			if a.req.NoQueue || pointless || !o.inService || a.tooWide() {
				continue
			}
			deadline, why, ok := r.mayWait(a, step.Wait, o)
			if ok {
				return intent{outcome: OutcomeQueued, policy: string(a.route.conf.Prefer), deadline: deadline, after: steps[i+1:]}
			}
			if cause == ShedFloor {
				cause = why
			}
			continue
		}
		if v := r.insist(a); v != nil {
			return a.onto(v, OutcomePlaced)
		}
		switch step.Kind {
		case Spill:
			if p, ok := r.planSpill(a, step.Route); ok {
				return p
			}
		case BestEffort:
			if v := a.leastHarm(); v != nil {
				return intent{outcome: OutcomeBestEffort, policy: "best_effort", chosen: v}
			}
		case Shed:
			return a.planShed(o, pointless, cause)
		}
	}
	if v := r.insist(a); v != nil {
		return a.onto(v, OutcomePlaced)
	}
	return a.planShed(o, pointless, cause)
}

// planShed refuses, and says what it was for.
func (a *ask) planShed(o outlook, pointless bool, cause ShedReason) intent {
	outcome := OutcomeShed
	switch {
	case !o.inService:
		outcome, cause = OutcomeNoBackend, NoBackend
	case pointless:
		cause = ShedUnattainable
	case cause == ShedFloor && o.ttft:
		cause = ShedTTFT
	}
	return intent{outcome: outcome, policy: string(a.route.conf.Prefer), cause: cause, best: o.best}
}

// planSpill places a on another route, with that route's promises except for
// what the request itself overrides. It neither waits there nor passes those who
// do.
func (r *Router) planSpill(a *ask, name string) (intent, bool) {
	rt := r.routeOf[name]
	if rt == nil || rt == a.route {
		return intent{}, false
	}
	there := &r.scratch.elsewhere
	memory := there.verdicts
	*there = newAsk(a.now, rt, &a.req)
	there.preview, there.spilled = a.preview, true
	if there.weight > 0 && rt.ahead(there.class) > 0 {
		return intent{}, false
	}
	there.judge(memory)
	v := r.choose(there)
	if v == nil {
		return intent{}, false
	}
	p := there.onto(v, OutcomeSpilled)
	p.spilled = there
	return p, true
}

const (
	// probeEvery is how often a floor that is out of reach is tried after all:
	// the curve may be old, and refusing everybody would never renew it. What has
	// only just come out of reach is tried after probeFirst, then after twice as
	// long, and so on: an engine that was slow for a moment is well again soon.
	probeEvery = time.Minute
	probeFirst = 5 * time.Second

	// probeWithin is how far out of reach a floor may be to be worth a probe.
	probeWithin = 4.0

	// staleAfter is how long a target that is too slow for a floor has to have
	// been idle for that verdict to be old: then one request with a floor tries
	// it, and again each time after a quarter longer, up to staleMost: what was slow
	// for an hour is found well a quarter of an hour later at most. Requests
	// without a floor have the first chance, as long as it is idle.
	staleAfter = 15 * time.Second
	staleMost  = 32 * time.Minute
)

// stale picks an idle target that is infeasible for nothing but its speed, as
// seen some time ago; nil if there is none. Nobody runs there who could be hurt,
// and without it nobody ever would: what is too slow gets no requests, and shows
// no more how fast it is. Where no target reaches the floor, probe does.
func (a *ask) stale() *verdict {
	if a.floor <= 0 || a.weight > 1 || a.req.NoQueue || a.req.Spare {
		return nil
	}
	for i := range a.verdicts {
		v := &a.verdicts[i]
		m := v.model
		if v.reason != ReasonOwnFloor || v.m > 0 || m.best()*probeWithin < a.floor || !m.tries.due(a.floor, a.now.Sub(m.group.noted.usedAt)) {
			continue
		}
		if c := m.group.present(); a.leavesHeld(v, &c, 0) {
			return v
		}
	}
	return nil
}

// probe picks the idle target to which one request is let through at times
// although its floor is out of reach, nil if it is not time or there is none.
// That request carries no floor, or it would lock the backend. One that asks for far more
// sequences than the floor is given to would lock it by its places.
func (a *ask) probe() *verdict {
	if a.route.probeAt.IsZero() || a.now.Before(a.route.probeAt) {
		return nil
	}
	var idle *verdict
	for i := range a.verdicts {
		v := &a.verdicts[i]
		if v.model == nil || v.reason.outOfService() || v.reason == ReasonCap || v.model.group.leased() > 0 {
			continue
		}
		if each := v.model.eachOf(a.weight); each*probeWithin >= a.floor && (idle == nil || each > idle.model.eachOf(a.weight)) {
			idle = v
		}
	}
	return idle
}

// eachOf is what each of so many sequences may get on m while nothing else runs there.
func (m *model) eachOf(weight int) float64 {
	if weight > 1 && m.known {
		return finite(m.curve.TPS(weight))
	}
	return m.solo
}

// carryOut does what was planned for a: it takes the place, stands in line, or
// refuses.
func (r *Router) carryOut(a *ask, p *intent) Decision {
	d := Decision{Policy: p.policy, Waited: a.waited, Back: a.back()}
	rec := r.journal.open(a, p)
	if p.outcome == OutcomeProbe || p.cause == ShedUnattainable && a.route.probeAt.IsZero() {
		a.route.probed(a.now)
	}
	if p.outcome == OutcomeProbe {
		p.chosen.model.tries.begin(a.floor)
	}
	switch p.outcome {
	case OutcomeQueued:
		if p.warmer == nil && a.bid.model == nil {
			a.denied(afterWaiting)
		}
	case OutcomeShed:
		a.denied(afterRefusing)
		a.route.refuses(a)
	}
	switch {
	case p.spilled != nil:
		d.Chosen, d.Spilled = p.spilled.candidate(p.chosen), p.spilled.route.conf.Name
		d.Lease = r.take(p.spilled, p.chosen, p.floor)
		d.Lease.asked = a.floor
	case p.chosen != nil:
		d.Chosen = a.candidate(p.chosen)
		a.route.placedOn(a, p.chosen)
		d.Lease = r.take(a, p.chosen, p.floor)
	case p.outcome == OutcomeQueued:
		d.Ticket = r.stand(a, p)
	default:
		d.Refusal = r.refuse(a, p.cause, p.best)
		if rec != nil {
			rec.RetryAfter = d.Refusal.RetryAfter
		}
	}
	return d
}

// Preview returns what Place would do with req now, and does not do it: nothing
// is reserved, nobody stands in line, and no later decision becomes another.
// Where Place leaves the choice to chance it shows one that it may take, and the
// time to come back without its jitter. ok is false for an unknown route.
func (r *Router) Preview(now time.Time, req Request) (rec Record, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rt := r.routeOf[req.Route]
	if rt == nil {
		return Record{}, false
	}
	r.advance(now)
	a := newAsk(now, rt, &req)
	a.preview = true
	p := r.planNewcomer(&a)
	rec.describe(&a, &p, math.MaxInt)
	if p.outcome.refused() {
		rec.RetryAfter, _ = r.comeBack(&a, p.cause)
	}
	return rec, true
}

// chance is a random number for a decision about a, in [0, 1); for one that is
// only asked for, the middle.
func (r *Router) chance(a *ask) float64 {
	if a.preview {
		return 0.5
	}
	return r.rand()
}
