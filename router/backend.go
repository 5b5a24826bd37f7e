package router

import "time"

// backend is one incarnation of a configured backend: a name that another
// engine stands behind is another incarnation, whose counts start at 0. One that
// is removed and added again is the same as long as leases run there, as of an
// engine that its resolver leaves out for a while. It is what requests are sent
// to: its health, its cap and its one probe are those of all that runs there;
// what is decoded together is counted in its groups. Everything is guarded by
// Router.mu.
//
// Invariant: own is the sum of the weights of the leases here, idle the number
// of those of weight 0; neither is ever negative.
type backend struct {
	router         *Router
	name, engine   string
	maxConcurrency int // 0 = none
	health         Health
	out            bool          // was down since it was last up, and did not hang
	hung           bool          // it shows no life
	triedAt        time.Time     // while it hangs: since when no probe of it was sent
	answers        bool          // while it hangs: its pages answer
	vain           time.Duration // while it hangs: how long after the last probe that nobody is there for the next one goes

	own       int      // own sequences, in all groups
	idle      int      // own requests that do not decode
	elsewhere Load     // of the other replicas, in all groups
	silence   *silence // of them; nil while they tell

	// groups are those of its targets as configured, and behind them the
	// retired ones that have leases still.
	groups []*group
	routes []*route // that have a target here

	probe *Lease // the last one request of a half-open breaker, nil if none runs
}

// leased is the number of sequences with a lease, over all replicas.
func (b *backend) leased() int {
	return b.own + b.elsewhere.Waiting + b.elsewhere.Decoding
}

// spare is how many places the cap leaves, which may be negative; capped is
// false without one. A request that does not decode takes one place.
func (b *backend) spare() (places int, capped bool) {
	return b.maxConcurrency - b.leased() - b.idle, b.maxConcurrency > 0
}

// group returns the group called id, nil if no target is counted there.
func (b *backend) group(id GroupID) *group { return findGroup(b.groups, id) }

func findGroup(groups []*group, id GroupID) *group {
	for _, g := range groups {
		if g.id == id {
			return g
		}
	}
	return nil
}

// share hands what the other replicas run to the groups, as they tell it or, while
// nobody does, as it is thought to be. What was here before the last reload may be
// anywhere, and counts in every group.
func (b *backend) share(now time.Time, told Load) {
	told = told.sane()
	b.elsewhere, _ = b.router.peers.others(now, &b.silence, told, b.counts(), b.router.rand)
	scale := b.router.peers.scale
	left := Load{}
	for _, g := range b.groups {
		if g.retired {
			left.Waiting += g.own.waiting * scale
			left.Decoding += g.own.decoding * scale
			left.PromptTokens += g.own.prompt * scale
		}
	}
	for _, g := range b.groups {
		g.remote, g.spread = b.router.peers.others(now, &g.silence, told.in(g.id), g.counts(), b.router.rand)
		if !g.retired {
			g.remote = g.remote.Plus(left)
		}
		g.shareRemoteFloor()
		g.shareRemotePrice(now)
		g.shareClearing(now)
	}
}

// in returns what of l, which is of a backend, counts in the group called id. What is
// counted otherwise may be anywhere.
func (l Load) in(id GroupID) Load {
	if !id.Separate {
		return l
	}
	anywhere := l
	anywhere.Moves, anywhere.Prompts = nil, nil
	for _, m := range l.Models {
		anywhere = anywhere.less(m)
	}
	anywhere.Models = nil
	return anywhere.Plus(l.Models[id.Model])
}

// counts is what of this replica runs on b, or in g, as far as others are guessed by it.
func (b *backend) counts() (l Load) {
	for _, g := range b.groups {
		own := g.counts()
		l.Waiting, l.Decoding, l.PromptTokens = l.Waiting+own.Waiting, l.Decoding+own.Decoding, l.PromptTokens+own.PromptTokens
	}
	return l
}

func (g *group) counts() Load {
	return Load{Waiting: g.own.waiting, Decoding: g.own.decoding, PromptTokens: g.own.prompt}
}

// become changes the health. Who comes back from being down ramps up.
func (b *backend) become(now time.Time, told BackendHealth) {
	h, hung := told.Health, told.Hung
	if hung && !b.hung {
		b.triedAt, b.vain = now, 0
	}
	b.answers = told.Answers
	if b.hung && !hung {
		for _, g := range b.groups {
			g.price.prefills.heard = now
		}
	}
	b.health, b.hung = h, hung
	b.changed()
	switch h {
	case Down, Probing, Loading:
		b.out = b.out || !hung
	case Up:
		if b.out {
			for _, g := range b.groups {
				g.ramp.recover(g.m())
			}
		}
		b.out = false
	}
	if h != Probing {
		b.probe = nil
	}
}

// probeTimeout is for how long a probe keeps others off: a little longer than a
// breaker waits for its verdict. An answer that is not streamed may take longer,
// and one that a dead engine owes never comes.
const probeTimeout = 3*time.Minute + time.Second

// probing reports whether the one request of a half-open breaker is out.
func (b *backend) probing(now time.Time) bool {
	return b.probe != nil && now.Sub(b.probe.placed) < probeTimeout
}

// hungProbe is how often a backend that shows no life gets a request that others
// could serve, who waits for nothing where it has none: all but those whose page is
// broken show it before, by that or by a stream that goes on.
const hungProbe = 2 * time.Minute

// vainLeast is how soon it is asked again where its pages answer and nobody is there: at
// once, then after this time, and each time after twice as long, up to hungProbe. What
// nobody waits for shows no life, whether it hangs or not.
const vainLeast = 30 * time.Second

// spared reports whether b is spared at the moment, for it hangs.
func (b *backend) spared(now time.Time) bool {
	wait := hungProbe
	if b.answers && b.own+b.idle == 0 {
		wait = b.vain
	}
	return b.hung && now.Sub(b.triedAt) < wait
}

// try notes that a probe goes to b, which hangs.
func (b *backend) try(now time.Time) {
	b.triedAt = now
	b.vain = min(max(2*b.vain, vainLeast), hungProbe)
}

// inService reports whether the backend may be used at all.
func (b *backend) inService() bool { return b.health == Up || b.health == Probing }
