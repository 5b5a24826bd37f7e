package router

import "time"

const (
	// scanEvery is how old a look through a group's streams may be when a
	// decision rests on it.
	scanEvery = 100 * time.Millisecond

	// guardTokens is from how many tokens on a stream's average counts.
	guardTokens = 5

	// stallAfter and stuckAfter bound what silence means. Up to stallAfter
	// plus two token times it may be the rhythm in which progress is told; then
	// it counts as time spent without a token; after stuckAfter it says that
	// something is wrong with this stream (its client does not read, its
	// connection is dead), and nothing about the speed of the backend, which it
	// would otherwise lock until its timeout.
	stallAfter = 1500 * time.Millisecond
	stuckAfter = 5 * time.Second
)

// scan looks through the streams of g, at most every scanEvery: is one of them
// below its floor (the slack guard), and how fast are they (slow start)?
func (g *group) scan(now time.Time) {
	if now.Before(g.scanAt) {
		return
	}
	g.look(now)
}

// look is scan, whenever the last one was.
func (g *group) look(now time.Time) {
	g.scanAt = now.Add(scanEvery)
	g.slow = nil
	var got evidence
	for _, l := range g.streams {
		p := l.progress()
		switch {
		case l.seen.rough && !p.rough: // what was counted before, is counted anew
			l.seen = p
		case p.tokens > l.seen.tokens && p.last > l.seen.last:
			got.tokens += p.tokens - l.seen.tokens
			got.seconds += (p.last - l.seen.last).Seconds() * float64(l.weight)
			got.rough = got.rough || p.rough
			l.seen = p
		}
		if g.slow == nil && l.belowFloor(now, p) {
			g.slow = l
		}
	}
	if g.ramp.clean(g, now) {
		g.ramp.see(g, got)
	}
}

// belowFloor reports whether the stream has fallen below its floor, averaged
// over its life so far. A floor that its target cannot reach alone is not
// guarded: waiting would not mend it. Nor is a stream of which nobody knows how
// many tokens its chunks are: at four to a chunk it would look four times too
// slow, and lock the backend.
func (l *Lease) belowFloor(now time.Time, p progress) bool {
	return l.floor <= l.model.solo && l.averagesBelow(l.floor, now, p)
}

// averagesBelow reports whether the stream, averaged over its life so far, is
// slower than floor; false for a floor of 0, and while that is not known.
func (l *Lease) averagesBelow(floor float64, now time.Time, p progress) bool {
	if floor <= 0 || p.rough || p.tokens < float64(guardTokens*l.weight) {
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
			for _, l := range g.streams {
				if l.averagesBelow(l.asked, now, l.progress()) {
					count++
				}
			}
			below[g.id] = count
		}
	}
	return below
}
