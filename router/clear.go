package router

import (
	"math"
	"slices"
	"time"
)

// A prompt that many share may be in the caches of all engines but one. There its first
// prefill would stop streams for longer than they can stand still, again and again, for who
// has just begun has no lead. The engine stays half empty, and those who share the prompt
// are refused for want of room elsewhere. So it is cleared: for some seconds nobody else is
// let in, until the leads of those who are left can pay for that prefill. The first of
// them who comes then goes there, also where a warm place is free.
//
// Replicas tell each other of it, and all clear: else the others would fill the engine.

const (
	// clearFor is how long an engine is cleared at most: most answers end within it, and
	// the leads of the others grow. clearAgain is how long after that it is not cleared again.
	clearFor   = 8 * time.Second
	clearAgain = time.Minute

	// lasts is for how many times levelMemory a prompt that many share is taken to be of
	// use in a cache: a minute.
	lasts = 6.0

	// leastKeptOut is from how many on those who are kept out say that many share a prompt.
	leastKeptOut = 3.0

	// elsewhere is what part of one who is kept out somebody counts for who has a place, and
	// emptier how many times as many have to run there. While others have room nobody is
	// refused because one engine is cleared, and later it would be half empty.
	elsewhere = 0.25
	emptier   = 2
)

// warming is who wants something of the cache of a group. The zero value is nobody.
type warming struct {
	awaited  int // in line, who could go elsewhere and have their prompt cached here
	clearing clearing
}

// clearing is whether a group is cleared for a prompt that many share. The zero value is
// that nobody was kept out.
type clearing struct {
	keptOut float64   // requests that were refused or, in part, went elsewhere, and would have had a place there with what many share in its cache; as of at, fading with levelMemory
	at      time.Time // of the last of them
	until   time.Time // zero = it is not cleared
	next    time.Time // when it may be cleared again
	own     bool      // this replica has it cleared; else another one, or nobody
}

// on reports whether it is cleared at now.
func (c *clearing) on(now time.Time) bool { return !c.until.IsZero() && now.Before(c.until) }

// shared is how many tokens of r's prompt others have sent just now, and are in a cache for
// sure.
func (r *Request) shared() (tokens int) {
	for i := range r.Warm {
		if w := &r.Warm[i]; w.draws() {
			tokens = max(tokens, min(w.Shared, w.Sure))
		}
	}
	return min(tokens, max(r.PromptTokens, 0))
}

// gets reports whether most of so many tokens, which a shares with many, are not in the
// cache of m, and are most of what a would have prefilled there.
func (m *model) gets(a *ask, shared int) bool {
	rest := a.prompt - shared // nobody shares it
	missing := a.toPrefill(m) - rest
	return missing > rest && 2*missing > shared && !a.cached(m).comes()
}

// refuses notes on which targets a, which is refused, would have a place with what many
// share of its prompt in their caches.
func (rt *route) refuses(a *ask) { rt.keepsOut(a, 1, math.MaxInt) }

// placedOn does so for a, which goes to v: on those that are emptier by far.
func (rt *route) placedOn(a *ask, v *verdict) { rt.keepsOut(a, elsewhere, int(v.m)/emptier) }

// keepsOut counts a as so much of one who is kept out of where it would have a place, beside
// fewer than that.
func (rt *route) keepsOut(a *ask, part float64, beside int) {
	if a.preview || a.class == Batch || a.weight == 0 || a.req.Spare || a.req.Again || a.spilled || !rt.followsCaches() {
		return
	}
	shared := a.req.shared()
	if shared == 0 {
		return
	}
	for i := range a.verdicts {
		switch v := &a.verdicts[i]; v.reason {
		case ReasonOwnFloor, ReasonProtects:
			if int(v.m) < beside && v.model.gets(a, shared) && v.model.fits(a, a.prompt-shared) {
				v.model.group.clear(a.now, part)
			}
		}
	}
}

// fits reports whether a would have a place on m with so many tokens to prefill.
func (m *model) fits(a *ask, tokens int) bool {
	less := *a
	less.prompt, less.req.Warm = tokens, nil
	return less.beside(m, m.group.present()).reason == OK
}

// clear notes that one more was kept out of g, or a part of one. It has g cleared where those
// who are kept out while the prompt is of use are as many as g served lately, and no other
// group is cleared. To clear takes no longer than levelMemory, so no more than these are lost.
func (g *group) clear(now time.Time, part float64) {
	c := &g.clearing
	c.keptOut = c.keptOut*math.Exp(-now.Sub(c.at).Seconds()/levelMemory.Seconds()) + part
	c.at = now
	if now.Before(c.next) || now.Before(g.router.clears) || c.keptOut < leastKeptOut || lasts*c.keptOut < g.ends {
		return
	}
	c.own = true
	g.clearUntil(now.Add(clearFor))
}

// clearUntil has g cleared until then, and no other group meanwhile.
func (g *group) clearUntil(then time.Time) {
	g.clearing.until, g.clearing.next, g.router.clears = then, then.Add(clearAgain), then
	g.changed()
}

// cleared ends the clearing of g: its time is over, or the prompt is there.
func (g *group) cleared() {
	g.clearing.keptOut, g.clearing.until, g.clearing.own = 0, time.Time{}, false
	g.changed()
}

// emptyFor is how long a cleared engine may run nothing before all may come again: nobody
// brings the prompt.
const emptyFor = time.Second

// isKeptFrom reports whether m is cleared for others than a. Who has a place kept
// there has it all the same, and who is never refused: that one would go there, too, with
// no floor.
func (m *model) isKeptFrom(a *ask, c *present) bool {
	g := m.group
	if !g.clearing.on(a.now) || m.gets(a, a.req.shared()) || a.takesHeld(g, c, a.floor) || a.route.takesAll() {
		return false
	}
	return g.leased() > 0 || a.now.Sub(g.noted.usedAt) < emptyFor
}

// takesAll reports whether whoever finds no room on rt is served by best effort.
func (rt *route) takesAll() bool {
	return slices.ContainsFunc(rt.conf.OnInfeasible, func(s Step) bool { return s.Kind == BestEffort })
}

// cleared is the target that was cleared for what a brings, and that can pay for it; nil =
// there is none.
func (rt *route) cleared(a *ask) *verdict {
	if !a.now.Before(rt.router.clears) || len(a.req.Warm) == 0 || rt.conf.NoAffinity {
		return nil
	}
	for i := range a.verdicts {
		if v := &a.verdicts[i]; v.reason == OK && v.model.group.clearing.on(a.now) && v.model.gets(a, a.req.shared()) {
			return v
		}
	}
	return nil
}

// shareClearing takes what another replica says of clearing g.
func (g *group) shareClearing(now time.Time) {
	c := &g.clearing
	left := g.remote.Clearing
	switch {
	case left > 0 && !c.on(now) && !now.Before(c.next):
		g.clearUntil(now.Add(min(left, clearFor)))
	case left <= 0 && c.on(now) && !c.own:
		g.cleared()
	}
}
