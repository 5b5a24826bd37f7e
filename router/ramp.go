package router

import (
	"math"
	"time"
)

const (
	// slowStartCap is up to which m an unknown backend is filled at first.
	slowStartCap = 4

	// rampSteps is how many decode steps at half the cap or more have to be
	// seen before the cap grows.
	rampSteps = 30

	// rampEnd is at which cap a recovered backend of which no curve tells how
	// far it was ever driven counts as warm.
	rampEnd = 64

	// beaten and comfortable are by how much the streams must be faster than
	// the floor: to be doubled (TPS falls by 10–30 % when n doubles, and a
	// stream just at its floor leaves room for nobody), and to be doubled twice
	// on the evidence of one level alone.
	beaten      = 1.05
	comfortable = 1.5

	// apart is by which factor two levels of n must differ to tell a slope.
	apart = 1.5
)

// ramp bounds m while a backend has to show what it carries: as long as a
// curve is unknown, on the way beyond what a known curve has visited, and, for
// everybody, after a recovery. It starts at slowStartCap and grows by what the
// streams themselves show: after 30 decode steps at half the cap or more with
// the floor beaten it doubles. Steps seen at the full cap are steps at half of
// the doubled one, so they count for the next doubling too, if the floor is
// beaten comfortably; and from two levels of n a straight line in time per
// token says how far the floor holds. Real curves bend below that line.
type ramp struct {
	cap       int      // on m, ≥ slowStartCap
	recovered bool     // the backend was down: the cap holds for everybody
	level     evidence // at cap/2 or more, since the cap last changed
	before    evidence // the level on which the cap grew last, tokens 0 if none
}

// evidence is what own streams did, summed up.
type evidence struct {
	tokens  float64
	seconds float64 // of one sequence
	steps   float64 // decode steps: tokens over the sequences that share a step
	levels  float64 // Σ steps·n
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

// see adds what b's streams did since the last look, and moves the cap.
func (p *ramp) see(b *backend, got evidence) {
	if got.tokens <= 0 || b.decoding <= 0 {
		return
	}
	n := b.n()
	if 2*n < p.cap {
		return
	}
	steps := got.tokens / float64(b.decoding)
	p.level.tokens += got.tokens
	p.level.seconds += got.seconds
	p.level.steps += steps
	p.level.levels += steps * float64(n)
	if p.level.steps < rampSteps {
		return
	}
	p.move(b.need())
	if p.recovered && p.cap >= b.warm() {
		p.recovered = false
	}
}

// whole adds an answer that came as one piece: nothing else tells of a backend
// that serves no streams.
func (p *ramp) whole(b *backend, l *Lease, now time.Time, tokens float64) {
	took := now.Sub(l.placed) - l.first
	if took > 0 {
		p.see(b, evidence{tokens: tokens, seconds: took.Seconds() * float64(l.weight)})
	}
}

// move sets the cap by the level just completed, and starts the next.
func (p *ramp) move(need float64) {
	level := p.level
	p.level = evidence{}
	reach := level.reach(p.before, need)
	if reach < 1 { // the floor is not kept at this level
		p.cap = max(slowStartCap, min(p.cap, int(level.n())))
		return
	}
	reach = min(reach, 4*level.n())
	if math.Round(reach) <= float64(p.cap) {
		return
	}
	p.cap = int(math.Round(reach))
	p.before = level
}

// reach is how many sequences are believed to keep need, judged by this level
// and an earlier one; 0 when not even this level's do.
func (e *evidence) reach(before evidence, need float64) float64 {
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
	if before.tokens <= 0 || n < apart*before.n() {
		if tps >= comfortable*need {
			return 4 * n
		}
		return 2 * n
	}
	slope := (1/tps - 1/before.tps()) / (n - before.n())
	if slope <= 0 {
		return 4 * n
	}
	return n + max(1, (1/(beaten*need)-1/tps)/slope)
}

// need is the floor that the streams of b must beat for its cap to grow: the
// highest that runs there, else the highest promised there, 0 if none.
func (b *backend) need() float64 {
	if floor := b.highestFloor(); floor > 0 {
		return floor
	}
	floor := 0.0
	for _, m := range b.models {
		if m.promised <= m.solo {
			floor = max(floor, m.promised)
		}
	}
	return floor
}

// warm is the cap at which a recovered backend needs no ramp any more.
func (b *backend) warm() int {
	visited := 0
	for _, m := range b.models {
		visited = max(visited, m.visited)
	}
	if visited == 0 {
		return rampEnd
	}
	return visited
}
