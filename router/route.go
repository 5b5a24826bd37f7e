package router

import (
	"slices"
	"time"
)

// route is a configured route with its lines and what was learned of it. It
// keeps its identity as long as its name is configured.
type route struct {
	router  *Router
	conf    Route
	policy  Registered // that conf.Prefer names
	weights float64    // of conf.Targets, all together
	models  []*model   // of conf.Targets, in their order; nil where the backend is not configured
	beside  []beside   // of models
	lines   [classes]line
	came    uint64  // requests that were to be placed
	lengths lengths // of its answers, in tokens of one sequence

	uses       []*held // of conf.Targets, in their order: what runs in their groups; nil where the backend is not configured
	left       []*held // of groups that are none of its targets any more, and have leases
	held       []*held // by group, what is guaranteed; nil = nothing
	guaranteed int     // places in all

	promises promises
	rivals   []*route // others that share a backend with it

	probeAt   time.Time     // when an unattainable floor may be probed; zero before the first such request
	probeWait time.Duration // from the last such probe until then; 0 before the first such request
}

// leastGrace is by how much a stream may fall behind its floor for a moment even
// where the last token may not be late: what a short stall costs is made good.
const leastGrace = 250 * time.Millisecond

// probed notes that an unattainable floor is tried, or asked for the first time.
// Where nobody asked for one for long after the next try was due, the time between
// two tries starts again from the shortest.
func (rt *route) probed(now time.Time) {
	if rt.probeWait == 0 || now.Sub(rt.probeAt) >= probeEvery {
		rt.probeWait = probeFirst / 2
	}
	rt.probeWait = min(2*rt.probeWait, probeEvery)
	rt.probeAt = now.Add(rt.probeWait)
}

func (rt *route) grace() time.Duration { return max(rt.conf.SLO.Grace, leastGrace) }

// waiting is how many wait in both lines, and have no place meanwhile.
func (rt *route) waiting() int {
	return rt.lines[Interactive].len() + rt.lines[Batch].len() - rt.moving()
}

// moving is how many stand in both lines who have a place, see Request.Moves.
func (rt *route) moving() int { return rt.lines[Interactive].moving + rt.lines[Batch].moving }

// ahead is how many a newcomer of class would pass of its own route: in its line, and
// for batch in the interactive one. Who waits for a warm place has others to go to, and
// is not passed; nor is who has a place, see Request.Moves.
func (rt *route) ahead(class Class) int {
	n := rt.lines[Interactive].stopping()
	if class == Batch {
		n += rt.lines[Batch].stopping()
	}
	return n
}

// beside is what else of a route's targets stands where one of them does. It is
// found once: to look for it in each answer costs the square of the targets.
type beside struct {
	group, backend bool  // an earlier target has the same
	others         []int // targets on the same backend
}

// meetBeside finds it for all targets of rt.
func (rt *route) meetBeside() {
	rt.beside = make([]beside, len(rt.models))
	on := map[*backend][]int{}
	for i, m := range rt.models {
		if m == nil {
			continue
		}
		b := m.group.backend
		for _, j := range on[b] {
			rt.beside[i].backend = true
			rt.beside[i].group = rt.beside[i].group || rt.models[j].group == m.group
			rt.beside[i].others, rt.beside[j].others = append(rt.beside[i].others, j), append(rt.beside[j].others, i)
		}
		on[b] = append(on[b], i)
	}
}

// sharesGroup reports whether an earlier target has the group of target i.
func (rt *route) sharesGroup(i int) bool { return rt.beside[i].group }

// sharesBackend reports whether an earlier target has the backend of target i.
func (rt *route) sharesBackend(i int) bool { return rt.beside[i].backend }

// meetRivals finds the routes that share a backend with rt.
func (rt *route) meetRivals() {
	rt.rivals = nil
	for _, m := range rt.models {
		if m == nil {
			continue
		}
		for _, other := range m.group.backend.routes {
			if other != rt && !slices.Contains(rt.rivals, other) {
				rt.rivals = append(rt.rivals, other)
			}
		}
	}
}

// want adds delta to the interactive lines that wait for each group.
func (rt *route) want(delta int) {
	for _, m := range rt.models {
		if m != nil {
			m.group.yield.wanted += delta
		}
	}
}
