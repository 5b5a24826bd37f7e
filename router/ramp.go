package router

import "time"

const (
	// slowStartCap is up to which m an unknown backend is filled at first.
	slowStartCap = 4

	// followCap is the same for who goes behind the prompt that it needs, and would be
	// refused: many come while that is prefilled, which takes seconds, and each adds next
	// to nothing to it.
	followCap = 8

	// rampSteps is how many decode steps at half the cap or more have to be
	// seen before the cap grows.
	rampSteps = 20

	// rampEnd is at which cap a recovered backend of which no curve tells how
	// far it was ever driven counts as warm.
	rampEnd = 64

	// beaten is by how much the streams must be faster than the floor for more
	// to be let in: a mean at the floor fails half the time.
	beaten = 1.1

	// mostGrowth is how many times as many as were seen two levels may let in. Where
	// steps are padded to eight sequences, 4 take as long as 8, and 9 a quarter longer:
	// a slope of nothing says little of what comes after it.
	mostGrowth = 3

	// apart is by which factor two levels of n must differ to tell a slope.
	apart = 1.5
)

// ramp bounds m while a backend has to show what it carries: as long as a
// curve is unknown, on the way beyond what a known curve has visited, and, for
// everybody, after a recovery. It starts at slowStartCap and grows by what the
// streams themselves show: after 20 decode steps at half the cap or more with
// the floor beaten it grows. One level says
// how fast the streams are, and nothing of how that falls: they are taken to share
// one speed. From two levels of n, far enough apart, a straight line in time per token
// says how far the floor holds. Real curves bend below that line.
type ramp struct {
	cap       int      // on m, ≥ slowStartCap
	recovered bool     // the backend was down: the cap holds for everybody
	level     evidence // at cap/2 or more, since the cap last changed
	before    evidence // the first level on which the cap grew, tokens 0 if none

	n       int       // own sequences decoding at the last look, -1 while others waited
	cleanAt time.Time // of the last look of which n held since the one before
}

// cleanFor is how long only clean evidence is taken: of times in which n stood
// still and no prompt was prefilled. The stall by a prefill would count as the
// slope of the curve, and end a slow start early. Under a load that is never
// still, everything is evidence.
const cleanFor = time.Second

// clean reports whether what happened since the last look is evidence of one
// level, and notes the look.
func (p *ramp) clean(g *group, now time.Time) bool {
	n := g.own.decoding
	if g.own.waiting > 0 {
		n = -1
	}
	still := n >= 0 && n == p.n
	p.n = n
	if still || p.cleanAt.IsZero() {
		p.cleanAt = now
	}
	return still || now.Sub(p.cleanAt) > cleanFor
}

// evidence is what own streams did, summed up.
type evidence struct {
	tokens  float64
	seconds float64 // of one sequence
	steps   float64 // decode steps: tokens over the sequences that share a step
	levels  float64 // Σ steps·n
	rough   bool    // the tokens are chunks, which may stand for several: what beats a floor does, what misses one may not
}

// tps is the mean speed of one sequence, n the mean level it was seen at. Both
// are NaN without evidence.
func (e *evidence) tps() float64 { return e.tokens / e.seconds }
func (e *evidence) n() float64   { return e.levels / e.steps }

// recover starts over after an outage with m sequences on the backend. Those
// that survived it show that it carries so many.
func (p *ramp) recover(m int) {
	*p = ramp{cap: max(slowStartCap, m), recovered: true}
}

// see adds what g's streams did since the last look, and moves the cap.
func (p *ramp) see(g *group, got evidence) {
	if got.tokens <= 0 || g.own.decoding <= 0 {
		return
	}
	n := g.n()
	if 2*n < p.cap {
		return
	}
	if p.level.rough != got.rough {
		p.level = evidence{rough: got.rough} // chunks and tokens make no common level
	}
	steps := got.tokens / float64(g.own.decoding)
	p.level.tokens += got.tokens
	p.level.seconds += got.seconds
	p.level.steps += steps
	p.level.levels += steps * float64(n)
	if p.level.steps < rampSteps {
		return
	}
	p.move(n, g.need(), g.promptLoad())
	if p.recovered && p.cap >= g.warm() {
		p.recovered = false
	}
}

// followed reports whether a can wait no longer, and most of its prompt is in the cache of m,
// or is by the time that its turn comes.
func (m *model) followed(a *ask) bool {
	return a.insists && a.floor > 0 && !m.known && 2*a.toPrefill(m) < a.prompt
}

// whole adds an answer that came as one piece: nothing else tells of a backend
// that serves no streams.
func (p *ramp) whole(g *group, l *Lease, now time.Time, tokens float64) {
	took := now.Sub(l.placed) - l.first
	if took > 0 {
		p.see(g, evidence{tokens: tokens, seconds: took.Seconds() * float64(l.weight)})
	}
}

// move sets the cap by the level just completed, and starts the next; n decode.
func (p *ramp) move(n int, need, load float64) {
	level := p.level
	p.level = evidence{rough: level.rough}
	if p.before.rough != level.rough {
		p.before = evidence{}
	}
	reach := level.reach(p.before, need, load)
	if reach < 1 {
		// The floor is not kept at this level. By rough counts it may be all the same:
		// then nobody more is let in beside those who are there.
		most := int(level.n())
		if level.rough {
			most = max(most, n)
		}
		p.cap = max(slowStartCap, min(p.cap, most))
		return
	}
	if reach := int(reach + 1e-6); reach > p.cap {
		p.cap = reach
		if p.before.tokens <= 0 {
			p.before = level
		}
	}
}

// reach is how many sequences are believed to keep need, judged by this level
// and an earlier one; 0 when not even this level's do. What was seen is decoding
// alone; load is the seconds that the prompts of each sequence add to every token.
func (e *evidence) reach(before evidence, need, load float64) float64 {
	n, tps := e.n(), e.tps()
	if need <= 0 {
		return 4 * n
	}
	if tps < need {
		return 0
	}
	if tps < beaten*need {
		return n
	}
	allowed, step := 1/(beaten*need), 1/tps+load*n
	if before.tokens <= 0 || n < apart*before.n() {
		// No slope is known: as if each took its share of a fixed speed, but far enough
		// beyond the reserve that batch leaves to tell one, whatever prompts may take: what
		// they do take is seen there.
		return max(n*min(allowed/step, 4), n+2)
	}
	slope := (1/tps-1/before.tps())/(n-before.n()) + load
	if slope <= 0 {
		return mostGrowth * n
	}
	return min(max(n+(allowed-step)/slope, n), mostGrowth*n)
}

// promptLoad is the seconds that the prompts of one sequence more add to every
// token, while as many come as go. Half of it is charged: neither the cost of a
// prompt token nor the length of an answer is known yet, and a guess at both must
// not keep out the users of a fresh gateway.
func (g *group) promptLoad() float64 {
	answer := float64(usualAnswer)
	if m := g.fastest(); m != nil {
		answer = g.usualAnswer(m)
	}
	return g.price.first * g.price.usual.mean() / max(answer, leastAnswer) / 2
}

// need is the floor that the streams of g must beat for its cap to grow: the
// highest that runs there, else the highest promised there, 0 if none.
func (g *group) need() float64 {
	if floor := g.highestFloor(); floor > 0 {
		return floor
	}
	floor := 0.0
	for _, m := range g.models {
		if m.promised <= m.solo {
			floor = max(floor, m.promised)
		}
	}
	return floor
}

// warm is the cap at which a recovered backend needs no ramp any more.
func (g *group) warm() int {
	visited := 0
	for _, m := range g.models {
		visited = max(visited, m.support.hi)
	}
	if visited == 0 {
		return rampEnd
	}
	return visited
}
