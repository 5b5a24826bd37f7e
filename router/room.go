package router

import (
	"math"
	"time"
)

// RouteState is what the router knows of one route.
type RouteState struct {
	Route   Route
	Waiting int // in line

	// Free is how many users of this route Place would take now, one after the
	// other, were their prompts short: 0 while somebody waits in line. Unlimited
	// says that nothing known would stop them, neither a floor nor a cap; Free is
	// then 0.
	Free           int
	Unlimited      bool
	FreeLowerBound bool // it is what was ever visited that limits Free, not speed
}

// Routes returns the state of every configured route, in their order.
func (r *Router) Routes(now time.Time) []RouteState {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(now)
	states := make([]RouteState, len(r.routes))
	for i, rt := range r.routes {
		states[i] = RouteState{Route: rt.conf, Waiting: rt.waiting()}
		a := newAsk(now, rt, &Request{})
		if !rt.mustQueue(a.class) {
			a.allRoom(&states[i])
		}
	}
	return states
}

// allRoom adds up the room on the backends of a's route.
func (a *ask) allRoom(s *RouteState) {
	took := make([]int, len(a.route.models)) // by target: the room that was counted there
	for i, m := range a.route.models {
		if m == nil || a.service(m.group.backend) != OK || a.passesOver(m) || a.route.sharesGroup(i) {
			continue
		}
		free, bound := a.room(i)
		if left := a.leftBy(i, took[:i]); free > left {
			free, bound = max(left, 0), false
		}
		took[i] = free
		if free >= endlessRoom {
			s.Free, s.Unlimited, s.FreeLowerBound = 0, true, false
			return
		}
		s.Free += free
		s.FreeLowerBound = s.FreeLowerBound || bound
	}
}

// leftBy is how many places the backend of target i leaves to all its groups, by
// its cap or while it is only tried out, when those before it were given so many.
func (a *ask) leftBy(i int, took []int) int {
	b := a.route.models[i].group.backend
	left, capped := b.spare()
	switch {
	case !capped:
		left = math.MaxInt
	case a.class == Batch && left == b.maxConcurrency:
		left = max(left-a.reserveOn(b), 1)
	case a.class == Batch:
		left -= a.reserveOn(b)
	}
	if b.health == Probing {
		left = min(left, 1)
	}
	for j, n := range took {
		if m := a.route.models[j]; m != nil && m.group.backend == b {
			left -= n
		}
	}
	return left
}

// endlessRoom is more users than any engine takes: where so many fit, there is
// no limit.
const endlessRoom = 1 << 16

// room returns how many more users the group of target i takes on any of the
// route's targets there, and whether only lack of evidence says so.
func (a *ask) room(i int) (free int, lowerBound bool) {
	g := a.route.models[i].group
	g.scan(a.now)
	for _, m := range a.route.models[i:] {
		if m == nil || m.group != g {
			continue
		}
		// Nothing gets more feasible with more users: double, then halve.
		fits, fails := 0, endlessRoom+1
		for step := 1; fits+step < fails; step *= 2 {
			if !a.takes(m, fits+step) {
				fails = fits + step
				break
			}
			fits += step
		}
		for fails-fits > 1 {
			if mid := (fits + fails) / 2; a.takes(m, mid) {
				fits = mid
			} else {
				fails = mid
			}
		}
		if fits > free || free == 0 {
			free, lowerBound = max(free, fits), a.moreIfKnown(m, fits)
		}
	}
	return free, lowerBound
}

// takes reports whether m takes so many users more, the last of them too.
func (a *ask) takes(m *model, users int) bool {
	g := m.group
	switch {
	case g.backend.health == Probing && users > 1:
		return false
	case !m.known && a.floor > 0 && users > 1 && g.m()+users > g.ramp.cap: // only an idle backend takes one beyond its cap
		return false
	case !a.inTime(m, g.m()+users-1):
		return false
	}
	return a.fits(m, users)
}

// fits reports whether users more of a's kind are feasible on m, or so many
// fewer if negative, by the rules that depend on m alone.
func (a *ask) fits(m *model, users int) bool {
	g := m.group
	k := g.m() + users
	if spare, capped := g.backend.spare(); capped && users > spare {
		return false
	}
	if a.class == Batch && users > 1 && g.keptOut(a.now) { // it has saved up one place at most
		return false
	}
	if g.ramp.recovered && k > g.ramp.cap && (users > 1 || g.leased() > 0) { // an idle one takes one beyond its cap
		return false
	}
	if _, ok := m.carries(k, extraP(g.promptWaiting(), a.answer(m)), a.floor); !ok && !(m.guessed && users == 1 && g.leased() == 0) {
		return false
	}
	var v verdict
	return a.protects(&v, g, k, g.promptWaiting()+a.prompt) == OK && (a.class != Batch || a.leavesReserve(g, k) && a.leavesPlaces(g.backend, users))
}

// moreIfKnown reports whether it is evidence that stops the next user on m and
// neither speed nor a configured cap.
func (a *ask) moreIfKnown(m *model, users int) bool {
	g := m.group
	k := g.m() + users + 1
	if spare, capped := g.backend.spare(); capped && users+1 > spare || a.class == Batch && !a.leavesPlaces(g.backend, users+1) {
		return false
	}
	if g.ramp.recovered && k > g.ramp.cap {
		return true
	}
	if !a.inTime(m, k-1) {
		return false
	}
	if !m.limitedByEvidence(k, a.floor) {
		return false
	}
	for _, other := range g.models {
		if floor := other.protect(); floor > 0 && !other.limitedByEvidence(k, floor) {
			return false
		}
	}
	return true
}
