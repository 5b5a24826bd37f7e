package router

import "time"

// RouteState is what the router knows of one route.
type RouteState struct {
	Route          Route
	Waiting        int  // in line
	Free           int  // users of this route that fit now
	FreeLowerBound bool // Free is limited by what was ever visited, not by speed
}

// Routes returns the state of every configured route, in their order.
func (r *Router) Routes(now time.Time) []RouteState {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(now)
	states := make([]RouteState, len(r.routes))
	for i, rt := range r.routes {
		s := RouteState{Route: rt.conf, Waiting: rt.waiting()}
		a := newAsk(now, rt, &Request{})
		for j, m := range rt.models {
			if m == nil || m.backend.health != Up || rt.sharesBackend(j) {
				continue
			}
			free, bound := a.room(j)
			s.Free += free
			s.FreeLowerBound = s.FreeLowerBound || bound
		}
		states[i] = s
	}
	return states
}

// mostRoom bounds the search for room: more users than one engine takes.
const mostRoom = 4096

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
		fits, fails := 0, mostRoom+1
		for step := 1; fits+step < fails; step *= 2 {
			if !a.fits(m, fits+step) {
				fails = fits + step
				break
			}
			fits += step
		}
		for fails-fits > 1 {
			if mid := (fits + fails) / 2; a.fits(m, mid) {
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
	if b.ramp.recovered && k > b.ramp.cap || users >= mostRoom {
		return true
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
