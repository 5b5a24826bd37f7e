package router

import (
	"cmp"
	"math"
	"slices"
)

// The rules of feasibility stand in this file, once: weigh puts them to one
// target. It reads what is known and changes nothing. Who asks says beside how
// many: beside those who are there, to place a request; beside more of the same
// kind, to say how many are free; beside fewer, to say how many have to end
// first. So all of these answers agree, as long as requests come no faster than replicas
// hear of each other: what is shown of room leaves out what others may be placing.

// present is who is on a group and its backend, as the rules count them: as they
// are, or as they would be.
type present struct {
	m      int // sequences, with the foreign ones
	leased int // sequences with a lease
	prompt int // tokens that wait for their prefill
	places int // below the backend's cap, math.MaxInt without one
	alike  int // requests like the one that asks that are thought to be there too
}

// present is who is there now.
func (g *group) present() (c present) {
	c.count(g)
	return c
}

// count makes c who is there now. It is what every decision counts, of every
// target: a copy less is a tenth of its time.
func (c *present) count(g *group) {
	c.leased = g.leased()
	c.m = c.leased + g.foreign.most() + g.spread + g.unheard()
	c.prompt = g.promptWaiting()
	c.places, c.alike = math.MaxInt, 0
	if spare, capped := g.backend.spare(); capped {
		c.places = spare
	}
}

// asTold is who is there by what the others told, whatever they have placed since: what is
// shown of room is of all replicas, and holds for who come as fast as these hear of each
// other.
func (g *group) asTold() present {
	c := g.present()
	c.m -= g.unheard()
	return c
}

// with is c and n requests like a more, as if they had just been placed on g. While
// nobody tells what the others run, each here stands for some of theirs, see silence.
func (a *ask) with(g *group, c present, n int) present {
	sequences, prompt := n*a.weight, n*a.prompt
	more := Load{Waiting: sequences, PromptTokens: prompt}
	far, spread := g.router.peers.beyond(a.now, g.silence, g.counts(), more)
	c.m += sequences + far.Waiting + far.Decoding + spread
	c.leased += sequences + far.Waiting + far.Decoding
	c.prompt += prompt + far.PromptTokens
	c.alike += n
	if c.places != math.MaxInt {
		far, _ := g.router.peers.beyond(a.now, g.backend.silence, g.backend.counts(), more)
		c.places -= max(sequences+far.Waiting+far.Decoding, n)
	}
	return c
}

// leave takes off c so many sequences that have ended.
func (c *present) leave(ended int) {
	c.m -= ended
	c.leased -= ended
	if c.places != math.MaxInt {
		c.places += ended
	}
}

// verdict is what the rules say of one target of a route.
type verdict struct {
	model    *model  // nil: its backend is not configured
	index    int32   // in the route's targets
	m        int32   // sequences there
	low      float64 // what each is believed to get with the request, 0 when unknown
	protect  float64 // highest floor that must hold there
	headroom float64 // least bound over need, +Inf where nothing is needed
	rank     float64 // set by choose, for those that it may take
	reason   Reason
	basis    Basis
	fresh    bool // the curve is unknown
}

// weigh asks the rules about one more of a's kind on v.model, beside c.
func (a *ask) weigh(v *verdict, c *present) {
	v.m = int32(c.m)
	v.reason = a.admitted(v.model, c)
	if a.weight == 0 { // it does not decode: no curve speaks of it
		switch {
		case v.reason == ReasonCap:
			v.basis = ByQuota
		case v.reason != OK:
		case c.places < 1:
			v.reason = ReasonCap
		case !a.leavesHeld(v, c, 0):
			v.reason = ReasonGuarantee
		}
		return
	}
	bears := a.bears(v, c)
	switch {
	case v.reason == ReasonCap:
		v.basis = ByQuota
	case v.reason != OK:
	case bears != OK:
		v.reason = bears
	case !a.pays(v.model, c):
		v.reason, v.basis = ReasonProtects, ByLead
	case v.model.isKeptFrom(a, c):
		v.reason, v.basis = ReasonProtects, ByClearing
	case !a.inTime(v.model, c):
		v.reason = ReasonTTFT
	}
}

// admitted is rule 1 as far as it does not depend on the load: the target is in
// service, is not being tried out by somebody else, and has something left of the
// limits that its backend tells of.
func (a *ask) admitted(m *model, c *present) Reason {
	b := m.group.backend
	if reason := a.service(b); reason != OK {
		return reason
	}
	switch {
	case b.health == Probing && c.alike > 0:
		return ReasonBreaker
	case b.hung && (a.req.Again || a.req.Spare || c.alike > 0 || b.spared(a.now)) && a.passesOver(m):
		return ReasonDown
	case m.rest.rests(a.req.Tenant) && (a.req.Again || a.req.Spare || c.alike > 0 || !m.rest.due(a.now)) && a.passesOver(m):
		return ReasonRefuses
	}
	if _, ok := a.affords(m, c.alike); !ok {
		return ReasonCap
	}
	return OK
}

// service is whether b takes requests.
func (a *ask) service(b *backend) Reason {
	switch {
	case b.health == Down, b.health == Loading, slices.Contains(a.req.Exclude, b.name):
		return ReasonDown
	case b.health == Draining:
		return ReasonDrain
	case b.health == Probing && (a.probed || b.probing(a.now) || a.req.Spare):
		return ReasonBreaker
	}
	return OK
}

// bears is what the rules say that depend on how many run there: the cap, slow
// start, the floor of the request, those of the running, the reserve, and what is
// kept for other routes. It notes
// in v what the answer rests on.
func (a *ask) bears(v *verdict, c *present) Reason {
	m := v.model
	g := m.group
	v.fresh = !m.known
	k := c.m + a.weight
	own := false
	v.low, v.basis, own = a.keeps(m, k, extraP(c.prompt, a.answer(m)), a.floor)
	if !own && c.leased <= 0 && (v.fresh || m.guessed || m.thin(a.floor)) { // one shows what it takes
		v.basis, own = BySlowStart, true
	}
	if a.floor > 0 && m.known {
		v.headroom = v.low / a.floor
	}
	if a.floor <= 0 {
		v.basis = NoBasis
	}
	protects, basis := a.protects(v, c)
	switch {
	case c.places < a.weight:
		return ReasonCap
	case g.ramp.recovered && k > g.ramp.cap && c.leased > 0:
		v.basis = BySlowStart
		return ReasonSlowStart
	case !own && (v.fresh || m.guessed):
		return ReasonSlowStart
	case !own:
		return ReasonOwnFloor
	case protects != OK:
		v.basis = basis
		return protects
	case a.class == Batch && !(a.leavesReserve(m, c) && a.leavesPlaces(g.backend, c)):
		return ReasonReserve
	case !a.leavesHeld(v, c, a.floor):
		return ReasonGuarantee
	}
	return OK
}

// protects is rule 3: whoever runs beside v.model with a floor keeps it with one
// more of a's kind. It notes the highest such floor and the least headroom in v.
// Streams without a floor are skipped.
func (a *ask) protects(v *verdict, c *present) (Reason, Basis) {
	k, prompt := c.m+a.weight, c.prompt+a.toPrefill(v.model)
	reason, basis := OK, NoBasis
	for _, m := range v.model.group.models {
		floor := m.protect()
		if m == v.model && c.alike > 0 && a.floor <= m.solo {
			floor = max(floor, a.floor)
		}
		if floor <= 0 {
			continue
		}
		v.protect = max(v.protect, floor)
		bound, by, ok := a.keeps(m, k, extraP(prompt, m.answer), floor)
		if m.known {
			v.headroom = min(v.headroom, bound/floor)
		}
		if ok || reason != OK {
			continue
		}
		reason, basis = ReasonProtects, by
		if !m.known || m.guessed {
			reason = ReasonSlowStart
		}
	}
	return reason, basis
}

// leavesReserve is rule 4: with one more of a's kind and the reserve on top, the floor
// that batch leaves on each target of g still holds. While interactive
// requests are kept out nothing is left for batch, but for what it has saved up.
func (a *ask) leavesReserve(target *model, c *present) bool {
	g := target.group
	if g.keptOut(a.now) {
		return g.yield.credit-float64(c.alike) >= 1
	}
	k := c.m + a.weight
	for _, m := range g.models {
		if m.promised <= 0 {
			continue
		}
		reserve := max(m.reserve, a.route.conf.Reserve)
		if !m.known {
			// Slow start, which lets anyone on an idle backend, leaves
			// room for the reserve even there.
			if k+reserve > g.ramp.cap {
				return false
			}
			continue
		}
		need, most := m.leftByBatch()
		if _, _, ok := m.carries(k+reserve, extraP(c.prompt+a.toPrefill(target), m.answer), need); ok && k+reserve <= most {
			continue
		}
		if c.leased <= 0 && m.outOfReach(1, m.promises[len(m.promises)-1]) {
			continue // no user has a place there, and one of batch shows how fast it is
		}
		// Where the floor is not believed even of a single stream, and was
		// never tried, a few of batch show what it takes.
		if _, _, alone := m.carries(1, 0, need); alone || k+reserve > slowStartCap {
			return false
		}
	}
	return true
}

// crowdedByBatch is the part of a single stream's speed below which batch slows nobody
// down: three quarters of the most that an engine puts out are reached there.
const crowdedByBatch = 0.25

// leftByBatch is the highest floor promised on m that is within reach, and most how many
// sequences batch may bring there. Where none is within reach because the engine became slow,
// it is as much less as the engine is slower, and no more than were seen before: batch takes
// as many places as it did. Levels that are known tell soon when the engine is well again, and
// whoever has a floor there finds no crowd. Else batch may have the engine, and not fill it
// for good.
func (m *model) leftByBatch() (need float64, most int) {
	for _, floor := range m.promises {
		if !m.outOfReach(1, floor) {
			return floor, math.MaxInt
		}
	}
	if slower := m.curve.Scale(); slower < soundScale {
		for _, floor := range m.promises {
			if !m.outOfReach(1, slower*floor) {
				return slower * floor, cmp.Or(m.support.hi, math.MaxInt)
			}
		}
	}
	return crowdedByBatch * m.idle, math.MaxInt
}

// leavesPlaces is rule 4 for the cap of b, whatever decodes together there: with
// one more of a's kind the reserve still fits below it. One that comes to an
// idle backend is let in, or a cap no larger than the reserve would keep batch out
// for ever.
func (a *ask) leavesPlaces(b *backend, c *present) bool {
	return c.places == math.MaxInt || c.places-a.weight >= a.reserveOn(b) || c.places == b.maxConcurrency
}

// reserveOn is the largest reserve of the floors on b that leavesReserve counts.
func (a *ask) reserveOn(b *backend) int {
	reserve := 0
	for _, g := range b.groups {
		for _, m := range g.models {
			if m.promised > 0 && !m.outOfReach(1, m.promised) {
				reserve = max(reserve, m.reserve, a.route.conf.Reserve)
			}
		}
	}
	return reserve
}
