package router

import "time"

// What a prompt token costs is learned by first tokens, and the square of a prompt's
// length is its weight. So one prompt of 16,000 tokens that was counted as computed, and
// was in the cache, says that prompts are free. Then prompts that take four seconds are
// let in beside streams that can bear one.

// unsure is how well it is known that a prompt has to be computed.
type unsure struct {
	perhaps int  // tokens of it that are counted as computed, and are likely to be cached
	shared  bool // another replica may have sent what it begins with, and not told of it yet
}

const (
	// mostPerhaps is up to which part of a prompt may be cached after all, for its first
	// token to say what a token costs.
	mostPerhaps = 0.25

	// tooSoon is how much sooner than expected a first token comes that is taken for one
	// of a cached prompt, and sooner is what it counts for. Engines that prefill faster
	// than was thought show it by many of them.
	tooSoon = 0.5
	sooner  = 0.5
)

// unsure is that of a's prompt on m.
func (a *ask) unsure(m *model) unsure {
	likely, sure := a.warmth(m)
	return unsure{
		perhaps: max(likely-sure, 0),
		shared:  likely == 0 && a.req.Caches != nil && m.group.router.peers.load.Replicas > 1,
	}
}

// doubt takes the first token of l, at now, where the prompt may have been cached. It
// reports whether it did. together says that other prompts had theirs just before, after l
// was placed: those that are prefilled in one step come soon, cached or not.
func (p *prefills) doubt(now time.Time, l *Lease, began time.Time, together bool) bool {
	u, x, cost := &l.expected.unsure, float64(l.prompt), l.group.price.first
	switch {
	case float64(u.perhaps) > mostPerhaps*x:
		return true
	case u.shared && !together && now.Sub(began).Seconds() < tooSoon*cost*x:
		p.sums, p.at, p.batch = p.kept(now), now, batch{}
		w := min(x*x, startWeight)
		p.sums = p.sums.plus(costSums{xy: w * sooner * cost, xx: w})
		l.group.reprice()
		return true
	}
	return false
}
