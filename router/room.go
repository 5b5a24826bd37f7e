package router

import "time"

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
	for i, m := range a.route.models {
		if m == nil || a.service(m.backend) != OK || a.route.sharesBackend(i) {
			continue
		}
		free, bound := a.room(i)
		if free >= endlessRoom {
			s.Free, s.Unlimited, s.FreeLowerBound = 0, true, false
			return
		}
		s.Free += free
		s.FreeLowerBound = s.FreeLowerBound || bound
	}
}

// endlessRoom is more users than any engine takes: where so many fit, there is
// no limit.
const endlessRoom = 1 << 16

// room returns how many more users the backend of target i takes on any of the
// route's targets there, and whether only lack of evidence says so.
func (a *ask) room(i int) (free int, lowerBound bool) {
	b := a.route.models[i].backend
	if b.scan(a.now); b.slow != nil {
		return 0, false
	}
	for _, m := range a.route.models[i:] {
		if m == nil || m.backend != b {
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
	b := m.backend
	switch {
	case b.health == Probing && users > 1:
		return false
	case !m.known && a.floor > 0 && users > 1 && b.m()+users > b.ramp.cap: // only an idle backend takes one beyond its cap
		return false
	case a.maxTTFT > 0 && b.ttft(a.now, m, b.m()+users-1) > a.maxTTFT:
		return false
	}
	return a.fits(m, users)
}

// fits reports whether users more of a's kind are feasible on m, or so many
// fewer if negative, by the rules that depend on m alone.
func (a *ask) fits(m *model, users int) bool {
	b := m.backend
	k := b.m() + users
	if b.maxConcurrency > 0 && b.leased()+users+b.idle > b.maxConcurrency {
		return false
	}
	if b.ramp.recovered && k > b.ramp.cap {
		return false
	}
	if _, _, ok := m.carries(k, extraP(b.promptWaiting(), a.answer(m)), a.floor); !ok {
		return false
	}
	var v verdict
	return a.protects(&v, b, k, b.promptWaiting()+a.prompt) == OK && (a.class != Batch || a.leavesReserve(b, k))
}

// moreIfKnown reports whether it is evidence that stops the next user on m and
// neither speed nor a configured cap.
func (a *ask) moreIfKnown(m *model, users int) bool {
	b := m.backend
	k := b.m() + users + 1
	if b.maxConcurrency > 0 && b.leased()+users+1+b.idle > b.maxConcurrency {
		return false
	}
	if b.ramp.recovered && k > b.ramp.cap {
		return true
	}
	if a.maxTTFT > 0 && b.ttft(a.now, m, k-1) > a.maxTTFT {
		return false
	}
	if !m.limitedByEvidence(k, a.floor) {
		return false
	}
	for _, other := range b.models {
		if floor := other.protect(); floor > 0 && !other.limitedByEvidence(k, floor) {
			return false
		}
	}
	return true
}
