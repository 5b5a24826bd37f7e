package router

import (
	"math"
	"time"
)

const (
	// scanEvery is how old a look through a group's streams may be when a
	// decision rests on it.
	scanEvery = 100 * time.Millisecond

	// leastTokens is from how many tokens on a stream's average counts.
	leastTokens = 5

	// stallAfter and stuckAfter bound what silence means. Up to stallAfter
	// plus two token times it may be the rhythm in which progress is told; then
	// it counts as time spent without a token; after stuckAfter it says that
	// something is wrong with this stream (its client does not read, its
	// connection is dead), and nothing about the speed of the backend, which it
	// would otherwise lock until its timeout.
	stallAfter = 1500 * time.Millisecond
	stuckAfter = 5 * time.Second

	// maxLead is the lead of those who have no floor.
	maxLead = time.Hour
)

// looked is what the last look through the streams of a group found. The zero
// value has not looked.
type looked struct {
	lookedAt time.Time
	scanAt   time.Time     // when the streams are to be looked through again
	lead     time.Duration // least lead of a stream with a floor; maxLead = nobody has one
	least    *Lease        // whose it is
	floored  int           // of how many it is the least
	area     float64       // ∫n dt since the look, up to areaAt, in seconds
	areaAt   time.Time
}

// look looks through the streams of every group that nobody looked at for
// scanEvery.
func (r *Router) look(now time.Time) {
	if now.Before(r.lookAt) {
		return
	}
	r.lookAt = now.Add(scanEvery)
	defer r.holdPlaces()
	for _, b := range r.backends {
		for _, g := range b.groups {
			if !now.Before(g.scanAt) {
				g.look(now)
			}
			if g.scanAt.Before(r.lookAt) {
				r.lookAt = g.scanAt
			}
		}
	}
}

// look looks through the streams of g: how fast are they, and how much of a lead
// do they have over their floors?
func (g *group) look(now time.Time) {
	beside, since := g.beside(now), now.Sub(g.lookedAt)
	for _, m := range g.models {
		m.lately.own.fade(since)
		m.lately.moved = false
		m.lately.step = m.step()
	}
	g.remote.Level.fade(since)
	g.remote.Joint.fade(since)
	g.ends *= math.Exp(-since.Seconds() / levelMemory.Seconds())
	g.told.fade(since)
	g.speed.fade(since)
	g.looked = looked{lookedAt: now, scanAt: now.Add(scanEvery), lead: maxLead, areaAt: now}
	if until := g.clearing.until; !until.IsZero() && !now.Before(until) {
		g.cleared()
	}
	for l := g.own.unserved.front; l != nil; l = l.links.next {
		if now.Sub(l.placed) <= longest {
			g.price.prefilling(now, l.prompt)
		}
	}
	g.prefillUntil(now)
	var got evidence
	for _, l := range g.own.streams {
		p := l.progress()
		g.follow(l, p, beside)
		switch {
		case l.seen.rough && !p.rough: // what was counted before, is counted anew
			l.seen, l.stalled = p, g.speed.stalled
		case p.tokens > l.seen.tokens && p.last-l.seen.last > stuckAfter: // it stood still, which is over
			l.seen = p
		case p.tokens > l.seen.tokens && p.last > l.seen.last:
			tokens, took := p.tokens-l.seen.tokens, (p.last-l.seen.last).Seconds()*float64(l.weight)
			got.tokens += tokens
			got.seconds += took
			got.rough = got.rough || p.rough
			if !p.rough {
				l.model.lately.own.see(tokens, took, beside)
				l.model.lately.moved = true
			}
			l.seen = p
		}
		g.leads(now, l, p)
	}
	for _, m := range g.models {
		if m.lately.moved {
			m.lately.own.Time += min(since, time.Second).Seconds()
		}
	}
	g.level()
	if g.ramp.clean(g, now) {
		g.ramp.see(g, got)
	}
	g.changed()
}

// averagesBelow reports whether the stream, averaged over its life so far, is
// slower than floor; false for a floor of 0, and while that is not known.
func (l *Lease) averagesBelow(floor float64, now time.Time, p progress) bool {
	if floor <= 0 || p.rough || p.tokens < float64(leastTokens*l.weight) {
		return false
	}
	took := p.last - l.first
	silent := now.Sub(l.placed) - p.last
	if silent > stuckAfter {
		return false
	}
	if silent > stallAfter+seconds(2/floor) {
		took += silent
	}
	return p.tokens < floor*float64(l.weight)*took.Seconds()
}

// Below returns, by what is counted together, how many of this replica's streams that decode at
// now average less than the floor they asked for, over their life so far. Other
// than for the guard, it makes no difference how they were placed, or whether
// the floor is within reach: their users wait all the same.
func (r *Router) Below(now time.Time) map[GroupID]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	below := make(map[GroupID]int, len(r.backends))
	for _, b := range r.backends {
		for _, g := range b.groups {
			count := 0
			for _, l := range g.own.streams {
				if l.averagesBelow(l.asked, now, l.progress()) {
					count++
				}
			}
			below[g.id] = count
		}
	}
	return below
}
