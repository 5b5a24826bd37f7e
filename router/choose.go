package router

// tie is how close to the best a rank must be to count as equal: choosing at
// random among equals keeps replicas from running after the same backend.
const tie = 0.95

// spare puts the feasible targets on which a would take a place from a higher
// floor behind the others: who needs that floor has fewer to go to. An interactive
// request without a floor goes where it is fastest: nobody said what is enough.
func (a *ask) spare() {
	if a.weight == 0 || a.floor <= 0 && a.class == Interactive {
		return
	}
	for i := range a.verdicts {
		if v := &a.verdicts[i]; v.reason == OK && v.takesLast(a) {
			v.rank *= lastRank
		}
	}
}

// soon puts the feasible targets where the first token would be late behind those where
// it comes at once.
func (c Choice) soon() {
	if c.ask.weight == 0 {
		return
	}
	for i := range c.ask.verdicts {
		if v := &c.ask.verdicts[i]; v.reason == OK && v.late(c.ask) {
			v.rank *= lateRank
		}
	}
}

// late reports whether somebody waits where v is about for longer than prefill takes,
// or a would stand in the engine's own line for a slot, for longer than its cache there
// saves. The floor says what speed is enough, and nothing says for how long a first
// token may take that need not. Who has no floor stands in line where it is fastest.
func (v *verdict) late(a *ask) bool {
	m := v.model
	return m.group.overdue(a.now) > stallAfter ||
		a.floor > 0 && m.ttft.Queue(int(v.m)+a.weight-1) > a.saved(m).Seconds()
}

// takesLast is scarce for one more of a's kind where v is about, whoever asks next.
func (v *verdict) takesLast(a *ask) bool {
	s, k := &v.model.gist, int(v.m)+a.weight
	switch {
	case !s.current || !s.plain || k != int(s.m)+1:
		return a.scarce(v.model.group, k)
	case s.promised <= a.floor:
		return false
	case s.scarce == notAsked:
		s.scarce = no
		if a.scarce(v.model.group, k) {
			s.scarce = yes
		}
	}
	return s.scarce == yes
}

// scarce reports whether k sequences in g leave a place at a floor within reach
// that is higher than a's. Where that floor is out of reach, or has no place left
// with the newcomer, nobody loses one.
func (a *ask) scarce(g *group, k int) bool {
	if g.promised <= a.floor {
		return false
	}
	for _, m := range g.models {
		if m.promised <= a.floor || !m.known || m.outOfReach(1, m.promised) {
			continue
		}
		if _, _, ok := m.carries(k, extraP(g.promptWaiting(), m.answer), m.promised); ok {
			return true
		}
	}
	return false
}

// lastRank puts a rank below every other one, and lateRank below all those that are
// not multiplied by either.
const (
	lastRank = 1e-12
	lateRank = 1e-9
)

// rankAll ranks the feasible targets, and returns how many there are.
func (a *ask) rankAll() int {
	feasible := 0
	for i := range a.verdicts {
		if v := &a.verdicts[i]; v.reason == OK {
			v.rank = a.rank(v)
			feasible++
		}
	}
	return feasible
}

// best returns the index of a feasible target of the highest rank, at random among
// those within 5 % of it; -1 when there is none.
func (c Choice) best() int {
	verdicts := c.ask.verdicts
	top, ties, only := -1.0, 0, -1
	for i := range verdicts {
		if v := &verdicts[i]; v.reason == OK && v.rank > top {
			top = v.rank
		}
	}
	for i := range verdicts {
		if v := &verdicts[i]; v.reason == OK && v.rank >= top*tie {
			only, ties = i, ties+1
		}
	}
	if ties < 2 {
		return only
	}
	pick := min(int(c.Rand()*float64(ties)), ties-1)
	for i := range verdicts {
		if v := &verdicts[i]; v.reason == OK && v.rank >= top*tie {
			if pick == 0 {
				return i
			}
			pick--
		}
	}
	return only
}

// unknownRank is above every rank of a known target.
const unknownRank = 1e9

// rank says how good a feasible target is for a: headroom where a floor has to
// be met. A request without one goes where it is fastest, but counts only what
// the protected streams there can spare, so that it shuns them as long as
// anything else is as good.
func (a *ask) rank(v *verdict) float64 {
	m := int(v.m)
	switch {
	case a.weight == 0:
		return 1 / float64(1+m+v.model.group.backend.idle)
	case v.fresh && m+a.weight <= v.model.group.ramp.cap:
		return unknownRank / float64(1+m)
	case v.fresh:
		return 1 / float64(1+m)
	case a.floor > 0:
		return v.headroom
	case v.protect > 0:
		return max(v.low, 1e-3) * min(max(v.headroom-1, 0.05), 1)
	}
	return max(v.low, 1e-3)
}

// priceOf is what a is expected to cost on v.
func (a *ask) priceOf(v *verdict) float64 {
	return a.price(&a.route.conf.Targets[v.index], v.model)
}

// leastHarm picks the target in service on which the fewest running streams
// would fall below their floor with a, then the fastest, then the emptiest;
// nil when none is in service or all are at their cap. Batch harms nobody: it
// takes only what the floors leave.
func (a *ask) leastHarm() *verdict {
	var chosen *verdict
	harm, speed, load := 0, 0.0, 0
	var c present
	for i := range a.verdicts {
		v := &a.verdicts[i]
		if v.model == nil || v.reason.outOfService() || v.reason == ReasonCap || a.class == Batch && v.reason != OK && v.reason != ReasonTTFT {
			continue
		}
		if c.count(v.model.group); !a.leavesHeld(v, &c, 0) {
			continue
		}
		h, s, m := a.harm(v.model), v.speed(), v.model.group.m()
		better := h < harm || h == harm && (s > speed || s == speed && m < load)
		if chosen == nil || better {
			chosen, harm, speed, load = v, h, s, m
		}
	}
	return chosen
}

// harm counts the streams running beside target that would fall below their floor.
func (a *ask) harm(target *model) int {
	g := target.group
	k, prompt := g.m()+a.weight, g.promptWaiting()+a.toPrefill(target)
	count := 0
	for _, m := range g.models {
		if m.known {
			low := m.bound(k, extraP(prompt, m.answer))
			count += m.floors.running.above(low, m.solo)
		}
	}
	return count
}

// speed is what the target gives with the request, 0 when unknown.
func (v *verdict) speed() float64 {
	if !v.model.known {
		return 0
	}
	return finite(v.model.expects(v.model.group.m() + 1))
}
