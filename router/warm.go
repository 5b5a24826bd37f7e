package router

import "time"

// A prompt of which a prefix cache has a part is prefilled sooner: its first token
// comes earlier, and nobody who streams beside it stands still for that part. The
// floors say how many may be on a target, and the time of the engine that a request
// takes where it goes: nobody weighs one against the other.

// warmth is what the prefix cache of m is expected to have of a's prompt, in tokens;
// never all of it, for its last token is always computed.
func (a *ask) warmth(m *model) (likely, sure int) {
	w, most := a.cached(m), max(a.prompt-1, 0)
	if w == nil {
		return 0, 0
	}
	likely, sure = max(w.Likely, 0), max(w.Sure, w.within(m.promptCost()), 0)
	if a.insists && w.comes() && m.group.prefills(a.now) { // it goes behind the prompt that brings them
		likely, sure = likely+w.Soon, sure+w.Soon
	}
	return min(likely, most), min(sure, most)
}

// cached is what Warm says of m; nil = nothing.
func (a *ask) cached(m *model) *Warmth {
	if len(a.req.Warm) == 0 {
		return nil
	}
	if s := &a.route.router.scratch; a.number == 0 || s.marked != a.number {
		s.mark(a)
	}
	if m.gist.mark.by != a.number {
		return nil
	}
	return &a.req.Warm[m.gist.mark.at]
}

// mark says on a target which of an ask's Warm is of it: to look for it there, for
// each of a thousand targets, costs the square of them. The zero value says nothing.
type mark struct {
	by uint64 // ask.number
	at int32
}

// mark marks the targets that Warm has something of, those that another ask marked
// meanwhile too. Where many have, Warm is in the order of the route's targets.
func (s *scratch) mark(a *ask) {
	if a.number == 0 {
		s.asks++
		a.number = s.asks
	}
	s.marked = a.number
	targets, next := a.route.conf.Targets, 0
	for i := range a.req.Warm {
		w := &a.req.Warm[i].Target
		var m *model
		if next < len(targets) && targets[next].Target == *w {
			m = a.route.models[next]
			next++
		} else {
			m = a.route.router.model(*w)
		}
		if m != nil && m.gist.mark.by != a.number {
			m.gist.mark = mark{by: a.number, at: int32(i)}
		}
	}
}

// comes reports whether a prompt that is prefilled there brings more of it.
func (w *Warmth) comes() bool { return w != nil && w.Soon > 0 }

// within is how many tokens of Told are not computed, where each that is takes cost:
// the others take no longer than first tokens ever took there.
func (w *Warmth) within(cost float64) int {
	if w.Most <= 0 || cost <= 0 {
		return 0
	}
	return int(float64(w.Told) * max(1-w.Most/cost, 0))
}

// promptCost is what a prompt token of m takes, in seconds: the least that is said of
// it, by which what takes a given time counts the most tokens.
func (m *model) promptCost() float64 {
	if m.cost > 0 {
		return min(m.cost, m.group.price.token)
	}
	return m.group.price.token
}

// toPrefill is how many tokens of a's prompt have to be computed on m, of which
// nobody is sure that they are there already.
func (a *ask) toPrefill(m *model) int {
	if len(a.req.Warm) == 0 {
		return a.prompt
	}
	_, sure := a.warmth(m)
	return a.prompt - sure
}

// draws reports whether a request goes there for it.
func (w *Warmth) draws() bool { return w != nil && !w.Aside }

// saved is how long the prefill of what the cache of m is expected to have would
// take.
func (a *ask) saved(m *model) time.Duration {
	likely, _ := a.warmth(m)
	return seconds(m.prefill * float64(likely))
}

// behind is how far a policy puts a target behind another one that is to be taken
// only where there is no other, as factor on the rank.
const behind = 1e-6

// warmer is the target on which a takes the least time, if that is another one
// than the policy picked, and for its cache: where no cache saves more than a step,
// the policy knows best. Those that the policy puts behind stay there.
func (a *ask) warmer(picked *verdict) *verdict {
	if len(a.req.Warm) == 0 || a.weight == 0 || a.route.conf.NoAffinity || !(picked.rank > 0) {
		return picked
	}
	step := 1 / max(finite(picked.model.expects(int(picked.m)+a.weight)), 1)
	here := a.saved(picked.model) + seconds(step)
	best, least := picked, a.spent(picked)
	for i := range a.verdicts {
		v := &a.verdicts[i]
		if v.reason != OK || v.fresh != picked.fresh || v == picked || !a.cached(v.model).draws() || !(v.rank > behind*picked.rank) || a.saved(v.model) < here {
			continue
		}
		if s := a.spent(v); s < least {
			best, least = v, s
		}
	}
	return best
}

// spent is how many seconds a takes of the engine of v, to prefill what is not there
// and to decode beside the others, after those that are taken by the prompts before it.
func (a *ask) spent(v *verdict) float64 {
	m, k := v.model, int(v.m)
	likely, _ := a.warmth(m)
	prompt := float64(a.prompt - likely)
	before := 1 / max(finite(m.expects(max(k, 1))), 1e-3)
	with := 1 / max(finite(m.expects(k+a.weight)), 1e-3)
	return m.prefill*(float64(m.group.promptWaiting())+prompt) + a.answer(m)*max(with-before, 0)
}
