package router

import (
	"cmp"
	"math"
	"slices"
)

// A route may have places guaranteed: whatever runs there for others, so many of
// its requests find a place. They are split among its targets, and on each of them
// who is not of the route is let in only where the places that are kept, and not
// yet used, can all be taken afterwards: each at the floor of its route, beside all
// who run. The split does not follow who runs where, so what is free on one target
// says nothing about another one.

// Guarantee is how many places are kept for a route at any load. The zero value
// keeps none.
type Guarantee struct {
	Places int     // streams; 0 = Share says
	Share  float64 // of what the route's targets carry at its floor, 0 to 1
}

// None reports whether nothing is kept.
func (g Guarantee) None() bool { return g.Places <= 0 && !(g.Share > 0) }

// held is what runs of a route in one group, and what it has guaranteed there. Guarded
// by Router.mu.
//
// Invariant: used is the sum of the weights of the leases that point here.
type held struct {
	route *route
	group *group
	model *model // the target of the route there that carries most

	carries int  // how many sequences keep the route's floor here
	unseen  bool // so many were never seen here
	most    int  // how many places can be kept here, at most
	places  int  // how many are: never more than most
	used    int  // own sequences of the route's class here
}

// unused is how many sequences are to find a place here still. Who of the route runs
// elsewhere does not count: when it ends there, nobody could give the place back.
func (k *held) unused() int { return max(k.places-k.used*k.group.router.peers.scale, 0) }

// heldFor is how many sequences are kept in g for others than a, unused.
func (a *ask) heldFor(g *group) int {
	held := 0
	for _, k := range g.held {
		if !a.owns(k) {
			held += k.unused()
		}
	}
	return held
}

// owns reports whether k is kept for a: not for what another route spills.
func (a *ask) owns(k *held) bool {
	return k.route == a.route && a.class == k.route.conf.Class && !a.spilled
}

// leavesHeld is the rule of guarantees: with one more of a's kind, and a floor, on
// v.model the places that are kept for others there can still be taken, all at once.
func (a *ask) leavesHeld(v *verdict, c *present, floor float64) bool {
	g := v.model.group
	if a.takesHeld(g, c, floor) {
		return true
	}
	if c.places != math.MaxInt && !a.leavesHeldBelowCap(g.backend, c) {
		return false
	}
	held := a.heldFor(g)
	if held == 0 || a.weight == 0 {
		return true
	}
	k := c.m + a.weight + held
	if g.ramp.recovered && k > g.ramp.cap {
		return false
	}
	for _, m := range g.models {
		need := max(m.protect(), a.heldFloor(m))
		if m == v.model && floor <= m.solo {
			need = max(need, floor)
		}
		if need <= 0 {
			continue
		}
		if _, _, ok := m.carries(k, extraP(c.prompt+a.toPrefill(v.model), m.answer), need); !ok {
			return false
		}
	}
	return true
}

// takesHeld reports whether one more of a's kind takes a place in g that is kept for
// it. Then nobody else loses one: all that are kept fit together. Where more is
// promised than fits, who comes first has it.
func (a *ask) takesHeld(g *group, c *present, floor float64) bool {
	if len(g.held) == 0 || a.weight == 0 {
		return false
	}
	k := a.route.heldIn(g)
	return k != nil && a.owns(k) && floor <= a.route.floor() && k.unused() >= (c.alike*g.router.peers.scale+1)*a.weight
}

// leavesHeldBelowCap is the same for the cap of b, whatever decodes together there.
func (a *ask) leavesHeldBelowCap(b *backend, c *present) bool {
	held := 0
	for _, g := range b.groups {
		held += a.heldFor(g)
	}
	return held == 0 || c.places-max(a.weight, 1) >= held
}

// heldFloor is the highest floor of those for whom places are kept on m, unused.
func (a *ask) heldFloor(m *model) float64 {
	floor := 0.0
	for _, k := range m.group.held {
		if k.model == m && !a.owns(k) && k.unused() > 0 {
			floor = max(floor, k.route.floor())
		}
	}
	return floor
}

// floor is what rt promises, 0 if nothing.
func (rt *route) floor() float64 {
	if rt.conf.Class == Batch || !(rt.conf.SLO.MinTPS > 0) {
		return 0
	}
	return rt.conf.SLO.MinTPS
}

// heldIn is what rt has guaranteed in g, nil if nothing.
func (rt *route) heldIn(g *group) *held {
	for _, k := range rt.held {
		if k.group == g {
			return k
		}
	}
	return nil
}

// use counts the new lease l of a, on that target, among those that a guarantee of its
// route is for, whether it has one or not: it may get one while l runs.
func (a *ask) use(l *Lease, target int32) {
	if k := a.route.uses[target]; a.owns(k) {
		l.held = k
		k.used += l.weight
	}
}

// unuse takes l off again.
func (l *Lease) unuse() {
	if l.held != nil {
		l.held.used -= l.weight
		l.held = nil
	}
}

// running reports whether leases are counted for rt, on targets of now or of before.
func (rt *route) running() bool {
	counted := func(k *held) bool { return k != nil && k.used > 0 }
	return slices.ContainsFunc(rt.uses, counted) || slices.ContainsFunc(rt.left, counted)
}

// meetGuarantees finds the groups in which routes have places guaranteed.
func (r *Router) meetGuarantees() {
	r.guarantees = r.guarantees[:0]
	for _, rt := range r.routes {
		rt.meetUses()
		rt.held = nil
		if rt.conf.SLO.Guarantee.None() {
			continue
		}
		for i, k := range rt.uses {
			if k == nil || rt.sharesGroup(i) {
				continue
			}
			rt.held = append(rt.held, k)
			k.group.held = append(k.group.held, k)
		}
		r.guarantees = append(r.guarantees, rt)
	}
	r.holdPlaces()
}

// meetUses finds where what runs of rt is counted. What is counted there already
// goes on being counted, also where a target was gone for a while.
func (rt *route) meetUses() {
	before := slices.Concat(rt.uses, rt.left)
	rt.uses, rt.left = make([]*held, len(rt.models)), nil
	find := func(list []*held, g *group) *held {
		if i := slices.IndexFunc(list, func(k *held) bool { return k != nil && k.group == g }); i >= 0 {
			return list[i]
		}
		return nil
	}
	for i, m := range rt.models {
		if m == nil {
			continue
		}
		if rt.uses[i] = cmp.Or(find(rt.uses[:i], m.group), find(before, m.group)); rt.uses[i] == nil {
			rt.uses[i] = &held{route: rt, group: m.group}
		}
	}
	for _, k := range before {
		if k != nil && k.used > 0 && !slices.Contains(rt.uses, k) && !slices.Contains(rt.left, k) {
			rt.left = append(rt.left, k)
		}
	}
}

// holdPlaces splits the guarantees among the targets, by what each carries. A split
// stays as long as it is about right: each change leaves a place in one group before
// it is free in the other.
func (r *Router) holdPlaces() {
	for _, step := range []func(*held){(*held).weigh, (*held).leaveHalf} { // which asks what all others carry
		for _, rt := range r.guarantees {
			for _, k := range rt.held {
				step(k)
			}
		}
	}
	for _, rt := range r.guarantees {
		total, carried, split := 0, 0, 0
		rt.shareCaps()
		for _, k := range rt.held {
			if k.carries < endlessRoom { // else there is no share of it
				carried += k.carries
			}
			total += k.most
			split += k.places
		}
		rt.guaranteed = rt.conf.SLO.Guarantee.Places
		if rt.guaranteed <= 0 {
			rt.guaranteed = int(math.Ceil(min(rt.conf.SLO.Guarantee.Share, 1)*float64(carried) - 1e-9))
		}
		want := min(rt.guaranteed, total)
		if split != want || slices.ContainsFunc(rt.held, func(k *held) bool { return k.misfits(want, total) }) {
			rt.split(want, total)
		}
	}
}

// shareCaps has the groups of one backend share its cap: each alone would have all of
// it.
func (rt *route) shareCaps() {
	for i, k := range rt.held {
		b := k.group.backend
		on := func(o *held) bool { return o.group.backend == b }
		if b.maxConcurrency <= 0 || len(b.groups) < 2 || slices.ContainsFunc(rt.held[:i], on) {
			continue
		}
		for _, count := range []func(*held) *int{func(o *held) *int { return &o.carries }, func(o *held) *int { return &o.most }} {
			all, left := 0, b.maxConcurrency
			for _, o := range rt.held[i:] {
				if on(o) {
					all += *count(o)
				}
			}
			for _, o := range rt.held[i:] {
				if n := count(o); on(o) && all > left {
					part := (left**n + all - 1) / all
					all, left, *n = all-*n, left-part, part
				}
			}
		}
	}
}

// uneven is how far a part may be from its share, of all that is kept, before the
// places are split anew.
const uneven = 0.25

// misfits reports whether k's part of want places, of total that can be kept, cannot
// be kept, or is far from its share.
func (k *held) misfits(want, total int) bool {
	share := float64(want) * float64(k.most) / float64(max(total, 1))
	return k.places > k.most || math.Abs(float64(k.places)-share) > max(uneven*float64(want), 1)
}

// split hands out want places, of total that can be kept.
func (rt *route) split(want, total int) {
	for _, k := range rt.held {
		k.places = 0
		if total > 0 {
			k.places = min(int(math.Ceil(float64(want)*float64(k.most)/float64(total))), k.most)
		}
		want -= k.places
		total -= k.most
	}
}

// weigh finds how many sequences carry the floor of the route in k's group, and whether
// so many were ever seen there.
func (k *held) weigh() {
	k.model, k.carries, k.most, k.unseen = nil, 0, 0, false
	b := k.group.backend
	if !b.inService() || b.hung {
		return
	}
	for _, m := range k.route.models {
		if m == nil || m.group != k.group {
			continue
		}
		n, unseen := m.carriesMost(k.route.floor())
		if k.model == nil || n > k.carries {
			k.model, k.carries, k.unseen = m, n, unseen
		}
	}
	if k.group.ramp.recovered && k.carries > k.group.ramp.cap {
		k.carries, k.unseen = k.group.ramp.cap, true
	}
	if b.maxConcurrency > 0 && k.carries >= b.maxConcurrency {
		k.carries, k.unseen = b.maxConcurrency, false
	}
	k.most = k.carries
}

// leaveHalf has all routes together keep no more than half of what k's group carries at the
// highest of their floors, where so many were never seen: the others have to show what more it
// takes. Else it stands idle beside refusals, and nobody ever does.
func (k *held) leaveHalf() {
	if !k.unseen || k.carries == 0 {
		return
	}
	least, routes, before := k.carries, 0, 0
	for _, o := range k.group.held {
		if o == k {
			before = routes
		}
		if o.carries > 0 {
			least, routes = min(least, o.carries), routes+1
		}
	}
	k.most = (least/2 + before) / routes // of all routes the sum is least/2
}

// carriesMost is how many sequences keep floor here when no prompt waits, and whether it is
// evidence and not speed that ends there, or speed where nobody ever was: what is only
// continued there may be far too slow.
func (m *model) carriesMost(floor float64) (n int, lowerBound bool) {
	n = most(func(k int) bool {
		_, _, ok := m.carries(k, 0, floor)
		return ok
	})
	if slots := m.ttft.Slots; slots > 0 && n >= slots {
		return slots, false
	}
	hi := m.support.hi
	return n, n < endlessRoom && (hi > 0 && n > hi || m.limitedByEvidence(n+1, floor))
}
