package profiles

import (
	"math"
	"sync"
	"time"
)

// group is what decodes together: the profiles of a backend's models, which share
// its steps, or of a separate one alone; and the windows that are open there.
//
// Lock order: Book.mu before group.mu, which is a leaf.
type group struct {
	mu       sync.Mutex
	profiles []*profile
	windows  []*window // open ones, oldest first, at most maxOpenWindows
	drift    drift
	unjudged judged // of the last windows
	far      int    // windows in a row that were far too slow, whatever is doubted
	abreast  abreast
	miscount float64 // mean square of what streams correct of their count, in ln

	// attainment is the share of streams that shall keep their floor, and grace
	// the seconds that they may take longer.
	attainment, grace float64
	margins           margins // what that takes; guarded by Book.mu, not by mu

	pool  pool
	trail trail

	remains []remains // of streams that have ended, at most maxRemains
	piece   lives     // the one that is being booked: memory that is used again
}

// adapt works out the margin from what the streams of all targets delivered.
// Book.mu is held.
func (g *group) adapt() {
	var all deliverySums
	g.mu.Lock()
	rough := false
	for _, p := range g.profiles {
		all.merge(&p.known.deliveries, 0)
		rough = rough || math.Abs(p.known.totals.perChunk()-1) > oneToken
	}
	attainment := g.attainment
	g.mu.Unlock()
	g.margins = all.margin(attainment, rough)
}

// windowAt returns the open window of that index, or the one that takes what
// comes too late for it. g.mu is held.
func (g *group) windowAt(index int64) *window {
	for _, w := range g.windows {
		if w.index >= index {
			return w
		}
	}
	if len(g.windows) == maxOpenWindows {
		g.closeOldest()
	}
	w := &window{index: index}
	g.windows = append(g.windows, w)
	return w
}

// closeUntil closes the windows that ended before at, and any from a future
// that at is not in, which a clock set back leaves behind. g.mu is held.
func (g *group) closeUntil(at time.Duration) {
	g.bookRemains(at)
	g.trail.judge(at, !g.drift.unsettled())
	for len(g.windows) > 0 {
		w := g.windows[0]
		if windowEnd(w.index)+windowGrace > at && w.index <= windowOf(at)+1 {
			return
		}
		g.closeOldest()
	}
}

// farWindow is how many standard deviations of a window's residual one window
// may be off: what is farther is a hiccup, or the first of another speed. A hiccup of
// seconds has one whole window and ends within the next, which needs no foreignDoubt to
// be of it. Where a second one is as far, the engine may have changed.
const farWindow = 4.0

// foreignDoubt is by how much, in ln, the fit may be off where it was never
// seen: 0.15 is usual one doubling beyond, and knees come on top.
const foreignDoubt = 0.3

// closeOldest makes the rows of the oldest window, and holds what the curves
// expected of it against what was measured. A window that is far too slow tells
// how n and prompts compare, and not how fast the engine is: that its seconds
// count as what was expected keeps a hiccup out of what is known. If the next ones
// are as slow, the engine has changed, and all that is known is shifted. g.mu is
// held.
func (g *group) closeOldest() {
	w := g.windows[0]
	g.windows = append(g.windows[:0], g.windows[1:]...)
	w.sharePrompts()
	var all judged
	for _, p := range g.profiles {
		cells := w.exposure(p)
		if !p.gather(w, g.trail.crosses(windowEnd(w.index), p)) {
			continue
		}
		if e, familiar := p.curve.Load().expect(p.row, cells); e > 0 {
			all.add(judged{measured: p.row.T, expected: e, streams: p.row.S / (float64(p.row.windows) * windowLength.Seconds())})
			if !familiar {
				all.foreign += p.row.T
			}
		}
	}
	by, step := g.judge(all)
	spares := g.spares(w, step)
	for _, p := range g.profiles {
		if step != 0 {
			if by == 1 && spares {
				p.remember(w)
			}
			p.move(step, spares)
		}
		p.suspect(step == 0 && g.drift.suspects())
		p.close(w, by, math.Exp(step))
	}
	if step != 0 {
		g.pool = pool{} // what is borrowed has to be drawn anew
	}
}

// judge holds the seconds that a window's rows took against those that the curves
// expected; foreign of them were at levels that no curve knows. It returns by what the
// window's seconds count, and by how much, in ln, all that is known has to be shifted.
func (g *group) judge(all judged) (by, step float64) {
	if !(all.expected > 0) {
		return 1, 0
	}
	streams := all.streams
	g.unjudged.add(all)
	if g.unjudged.measured < leastJudged {
		return 1, 0
	}
	t := g.unjudged
	g.unjudged = judged{}
	residual, doubt := math.Log(t.measured/t.expected), 0.0
	if t.foreign > (1-expectShare)*t.measured {
		doubt = foreignDoubt
	}
	memory, age := g.memory()
	if age < judgedFrom {
		g.drift.learn(residual)
		return 1, 0
	}
	by = 1
	chance := math.Sqrt(g.miscount / max(streams, 1))
	far, hiccup := residual-farWindow*math.Hypot(g.drift.deviation(), chance), g.far == 1
	if far > doubt {
		g.far++
	} else {
		g.far = 0
	}
	if age >= matureSeconds && (g.far > 0 || hiccup && far > 0) {
		by = t.expected / t.measured
	}
	return by, g.drift.see(residual, doubt, chance, memory)
}

// judged is what windows took, of the targets whose rows are whole, in seconds, and how
// many streams were seen there on average.
type judged struct{ measured, expected, foreign, streams float64 }

func (j *judged) add(o judged) {
	j.measured += o.measured
	j.expected += o.expected
	j.foreign += o.foreign
	j.streams += o.streams
}

// seeMiscount takes what a stream that counted so many tokens in one of what it counts
// was told to have had.
func (g *group) seeMiscount(counted, told float64) {
	if off := math.Log(told / counted); finite(off) {
		g.miscount += spreadFollow * (off*off - g.miscount)
	}
}

// leastJudged is how many seconds of its own streams a replica judges an engine by: less
// is carried on. One of many replicas, or one with little traffic, has a few steps of a
// window, and those are off by half now and then.
const leastJudged = 1.0

// spares reports whether a shift by step leaves what was measured since the change as
// it is. It does not where the engine has become so much slower that all windows counted
// as expected: those that did not are of something else. Windows that are too fast always
// count as measured. Nor where another replica relays as well, which may find the same
// change: a store takes one shift of both, and would have what the other one left out.
func (g *group) spares(w *window, step float64) bool {
	alone := g.trail.foreign == 0 || windowEnd(w.index) > g.trail.foreign+time.Minute
	return alone && step <= farWindow*g.drift.deviation()+foreignDoubt
}

// judgedFrom is how many seconds of decoding the rows rest on before windows are held
// against them, and matureSeconds before a window that is far too slow counts as expected:
// until then it is as good evidence as the rows.
const judgedFrom, matureSeconds = 20, 60

// memory returns by how much, in ln, shifts have multiplied the seconds that the targets of
// g rest on, and how many seconds those are.
func (g *group) memory() (ln, seconds float64) {
	var pace float64
	for _, p := range g.profiles {
		t := p.rowSeconds()
		pace += t * (p.known.pace.Ln + p.shift.Pace())
		seconds += t
	}
	if !(seconds > 0) {
		return 0, 0
	}
	return pace / seconds, seconds
}
