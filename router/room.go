package router

import (
	"math"
	"time"
)

// RouteState is what the router knows of one route.
type RouteState struct {
	Route   Route
	Waiting int // in line
	Moving  int // in line beside them, who have a place meanwhile, see Request.Moves

	// Free is how many users of this route Place would take now, one after the
	// other, were their prompts short: 0 while somebody waits in line. Of several
	// replicas each says it of all: who come faster than these hear of each other are
	// taken by parts, see unheard. Unlimited
	// says that nothing known would stop them, neither a floor nor a cap; Free is
	// then 0.
	Free           int
	Unlimited      bool
	FreeLowerBound bool // it is what was ever visited that limits Free, not speed

	// Guaranteed is how many places the route has guaranteed; Held, how many of
	// them can be kept now, used or not; Used, how many sequences of this replica
	// are on the targets that they are kept on. All 0 without a guarantee.
	Guaranteed, Held, Used int

	Targets []TargetRoom // in the order of the route's
}

// TargetRoom is the room for users of a route on one of its targets, by the rules
// that Place goes by.
type TargetRoom struct {
	// Admits is how many more are placed there now, one after the other, if all go
	// there; as Free otherwise.
	Admits           int
	Unlimited        bool
	AdmitsLowerBound bool

	// Capacity is up to how many sequences there, whosever, one of this route is
	// let in, or would be if some of those who run had ended; no more than the
	// engine runs at once. 0 without a floor.
	Capacity           int
	CapacityLowerBound bool

	// Held is how many places are kept there for the route, used or not.
	Held int
}

// Routes returns the state of every configured route, in their order. Each is of
// one moment, and they are of one after the other: of thirty routes on a hundred
// backends all takes 30 ms, for which no request should wait.
func (r *Router) Routes(now time.Time) []RouteState {
	r.mu.Lock()
	routes := r.routes // replaced as a whole
	r.advance(now)
	r.mu.Unlock()
	states := make([]RouteState, 0, len(routes))
	for _, rt := range routes {
		if s, ok := r.routeState(now, rt); ok {
			states = append(states, s)
		}
	}
	return states
}

// routeState is that of rt; false = it is not configured any more.
func (r *Router) routeState(now time.Time, rt *route) (RouteState, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.routeOf[rt.conf.Name] != rt {
		return RouteState{}, false
	}
	r.advance(now)
	s := RouteState{Route: rt.conf, Waiting: rt.waiting(), Moving: rt.moving(), Targets: make([]TargetRoom, len(rt.models))}
	a := newAsk(now, rt, &Request{})
	open := rt.ahead(a.class) == 0
	if open {
		a.allRoom(&s)
	}
	for j, m := range rt.models {
		if m != nil {
			s.Targets[j] = a.roomOn(m, open)
		}
	}
	s.keep(rt)
	return s, true
}

// keep adds what is guaranteed to rt.
func (s *RouteState) keep(rt *route) {
	if len(rt.held) > 0 {
		s.Guaranteed = rt.guaranteed
	}
	for _, k := range rt.held {
		s.Held += k.places
		s.Used += k.used
		for i, m := range rt.models {
			if m == k.model && m != nil {
				s.Targets[i].Held = k.places
			}
		}
	}
}

// roomOn is the room on m; open = nobody stands in line before who comes.
func (a *ask) roomOn(m *model, open bool) (room TargetRoom) {
	c := m.group.asTold()
	if open {
		room.Admits, room.AdmitsLowerBound = a.admits(m, c)
	}
	if room.Admits >= endlessRoom {
		room.Admits, room.Unlimited = 0, true
	}
	if a.floor <= 0 {
		return room
	}
	bears := func(n int) bool {
		c, v := a.with(m.group, c, n-1), verdict{model: m}
		return a.bears(&v, &c) == OK
	}
	if more := most(bears); more > 0 {
		if most := m.shown(a, c, more); most < more {
			room.Capacity, room.CapacityLowerBound = c.m+most, true
			return room.within(m.ttft.Slots)
		}
		room.Capacity, c = c.m+more, a.with(m.group, c, more)
	} else {
		c.leave(a.missing(m, c) - 1)
		room.Capacity = c.m
	}
	// What speaks against one more there; whether it is in service is another question.
	next := verdict{model: m}
	next.reason = a.bears(&next, &c)
	room.CapacityLowerBound = a.moreIfKnown(next, &c)
	return room.within(m.ttft.Slots)
}

// within is room where the engine runs so many sequences at once; 0 = that is not known.
func (room TargetRoom) within(slots int) TargetRoom {
	if slots > 0 && room.Capacity > slots {
		room.Capacity, room.CapacityLowerBound = slots, false
	}
	return room
}

// allRoom adds up the room on the backends of a's route.
func (a *ask) allRoom(s *RouteState) {
	taken := make([]int, len(a.route.models)) // by target: the room that was counted there
	probes := 0
	for i, m := range a.route.models {
		if !a.addRoom(s, taken, i) {
			return
		}
		if m != nil && m.group.backend.health == Probing {
			probes += taken[i]
		}
	}
	if probes == 0 {
		return
	}
	// Once these are out, a target that rests may be all that there is.
	a.probed = true
	defer func() { a.probed = false }()
	for i := range taken {
		if m := a.route.models[i]; m != nil && m.group.backend.health != Probing && !a.addRoom(s, taken, i) {
			return
		}
	}
}

// addRoom counts the room on the group of target i, once for all targets there,
// beside what was taken on others of its backend. It adds to s what was not counted
// before, and reports whether there is a limit.
func (a *ask) addRoom(s *RouteState, taken []int, i int) (limited bool) {
	m := a.route.models[i]
	if m == nil || a.route.sharesGroup(i) {
		return true
	}
	c, elsewhere := m.group.asTold(), 0 // in other groups of the backend
	for _, j := range a.route.beside[i].others {
		elsewhere += taken[j]
	}
	if elsewhere > 0 && m.group.backend.health == Probing {
		return true // the one probe
	}
	if c.places != math.MaxInt {
		c.places -= elsewhere
	}
	free, bound := a.room(i, c)
	if free >= endlessRoom {
		s.Free, s.Unlimited, s.FreeLowerBound = 0, true, false
		return false
	}
	if free > taken[i] || taken[i] == 0 {
		s.Free += free - taken[i]
		s.FreeLowerBound = s.FreeLowerBound || bound
		taken[i] = free
	}
	return true
}

// endlessRoom is more users than any engine takes: where so many fit, there is
// no limit.
const endlessRoom = 1 << 16

// room returns how many more users the group of target i takes beside c, on any of
// the route's targets there, and whether only lack of evidence says so.
func (a *ask) room(i int, c present) (free int, lowerBound bool) {
	g := a.route.models[i].group
	for _, m := range a.route.models[i:] {
		if m == nil || m.group != g {
			continue
		}
		fits, bound := a.admits(m, c)
		if fits > free || free == 0 {
			free, lowerBound = max(free, fits), bound
		}
	}
	return free, lowerBound
}

// admits returns how many like a are placed on m beside c, one after the other,
// and whether only lack of evidence stops the next.
func (a *ask) admits(m *model, c present) (users int, lowerBound bool) {
	fits := most(func(n int) bool { return a.beside(m, a.with(m.group, c, n-1)).reason == OK })
	if shown := m.shown(a, c, fits); shown < fits {
		return shown, true
	}
	if fits == endlessRoom {
		return fits, false
	}
	c = a.with(m.group, c, fits)
	return fits, a.moreIfKnown(a.beside(m, c), &c)
}

// shown is how many of so many like a that fit on m beside c are said to fit where speed has to
// do: they are together no more than twice the most that were ever seen there. The rules go
// on with each that shows more: of prompts that are soon prefilled so many pass by that are
// never there at once.
func (m *model) shown(a *ask, c present, fits int) int {
	if fits < 2 || a.floor <= 0 || m.support.hi <= 0 || !m.known || m.guessed {
		return fits
	}
	seen := max(m.support.hi, m.group.ramp.cap, int(m.lately.all.n()))
	return min(fits, max((2*seen-c.m)/max(a.weight, 1), 1))
}

// most is up to how many feasible says yes, at most endlessRoom. Nothing gets more
// feasible with more users: it doubles, then halves.
func most(feasible func(n int) bool) int {
	fits, fails := 0, endlessRoom+1
	for step := 1; fits+step < fails; step *= 2 {
		if !feasible(fits + step) {
			fails = fits + step
			break
		}
		fits += step
	}
	for fails-fits > 1 {
		if mid := (fits + fails) / 2; feasible(mid) {
			fits = mid
		} else {
			fails = mid
		}
	}
	return fits
}

// beside is the verdict on one more of a's kind on m, beside c.
func (a *ask) beside(m *model, c present) verdict {
	v := verdict{model: m, headroom: math.Inf(1)}
	a.weigh(&v, &c)
	return v
}

// moreIfKnown reports whether it is evidence that speaks against one more beside c,
// and neither speed nor a configured cap.
func (a *ask) moreIfKnown(v verdict, c *present) bool {
	g, k := v.model.group, c.m+a.weight
	if v.reason == ReasonGuarantee {
		k += a.heldFor(g)
	}
	switch {
	case v.reason.outOfService(), v.reason == ReasonCap, v.reason == ReasonTTFT, v.basis == ByLead, v.basis == ByClearing,
		v.reason == ReasonReserve && !a.leavesPlaces(g.backend, c):
		return false
	case g.ramp.recovered && k > g.ramp.cap:
		return true
	case !v.model.limitedByEvidence(k, a.floor):
		return false
	}
	for _, m := range g.models {
		if floor := m.protect(); floor > 0 && !m.limitedByEvidence(k, floor) {
			return false
		}
	}
	return true
}

// missing is how many sequences of c have to end on m before one like a fits by the
// rules that count them, at least 1; as many as run there when nothing less would
// do.
func (a *ask) missing(m *model, c present) int {
	v, gone := verdict{model: m}, 0
	fitsWithout := func(ended int) bool {
		c.leave(ended - gone)
		gone = ended
		return a.bears(&v, &c) == OK
	}
	most := max(c.m, 1)
	fails, fits := 0, 1
	for fits < most && !fitsWithout(fits) {
		fails, fits = fits, min(2*fits, most)
	}
	for fits-fails > 1 {
		if mid := (fits + fails) / 2; fitsWithout(mid) {
			fits = mid
		} else {
			fails = mid
		}
	}
	return fits
}
