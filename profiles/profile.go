package profiles

import (
	"math"
	"sync/atomic"
	"time"
)

// minCalibrations is how many finished streams tokens per chunk has to rest
// on. Forgetting may have eaten a little of the three.
const minCalibrations = 2.5

// maxUnacked bounds the deltas that wait to be acknowledged one by one; beyond
// it the newest are added up. What is on its way to a store that does not
// answer is among the oldest, which are acknowledged first.
const maxUnacked = 3

// profile is what is known about one target: what the store holds, what this
// replica folded since, and what it is gathering. All but target, group, index,
// halfLife and curve are guarded by group.mu.
type profile struct {
	target   Target
	group    *group
	index    int           // in group.profiles
	halfLife time.Duration // of the Book

	known   Sums         // from the store, and unacked on top
	unacked []*Delta     // folded and not in what the store told last, oldest first
	fold    Sums         // gathered since the last fold
	shift   Shift        // of what was known then
	row     row          // windows too thin for a row of their own
	waiting []waitingRow // oldest first, at most recountWindows
	turning turning      // of prompts
	calm    calm         // quiet time of the window that is being judged
	since   *Sums        // of the windows since the engine may have changed; nil = it has not
	windows int          // that it has lasted

	// held are the prompts of windows whose exposures streams still keep,
	// because tokens per chunk is not known; flowing counts the windows closed
	// since it is.
	held    promptPool
	flowing int

	// unmixed are prompt tokens that the mix is to have: nothing was seen to decode yet.
	unmixed float64

	// corrected are the tokens that the mix is to have beside those of the next windows, or
	// below 0 without: usage told of them. What is taken off here is never more than what is
	// added, as other replicas take off as well.
	corrected float64

	// caches: a usage told of cached prompt tokens, and none since then told of none where
	// most of a prompt was expected in a cache. Else what is expected there is a guess, and
	// what is booked goes by what the usage will tell.
	caches bool

	prior    *prior // guarded by Book.mu, as borrowed and pooled are
	borrowed *prior // what the group's other targets know, where there is no prior
	pooled   bool   // it was asked what they know
	stale    bool   // curve is of less than what is known, or of another margin
	curve    atomic.Pointer[Curve]
}

// take adds exposures in chunks to the window and to the next fold.
func (p *profile) take(w *window, list []lived, of whose, perChunk float64) {
	c, own := p.curve.Load(), w.exposure(p)
	for i := range list {
		if e, bin := of(&list[i]), list[i].bin; *e != (exposure{}) {
			p.group.abreast.take(c, e, perChunk)
			own[bin].add(e, perChunk)
			p.fold.bins[bin].take(e, perChunk)
			p.fold.totals.T += e.T
			p.fold.pace.T += e.T
		}
	}
}

// correct makes the tokens in one of what a stream counted to be each, in the bins of
// its life, where they were was: as far as what it handed over is not forgotten.
func (p *profile) correct(list []lived, was, each float64) {
	if each == was {
		return
	}
	for i := range list {
		if e, bin := &list[i].life, list[i].bin; e.Y > 0 {
			by := max(each-was, -mostUncounted*was) * p.remembered(bin, e, was)
			p.group.abreast.got += e.Y * by
			p.corrected += e.Y * by
			p.fold.bins[bin].correct(e, by)
		}
	}
}

// remembered returns how much of e, which holds so many tokens in each, its bin may still
// hold: see share.
func (p *profile) remembered(bin int, e *exposure, each float64) float64 {
	k, f := &p.known.bins[bin], &p.fold.bins[bin]
	return min(share(k.Y+f.Y, e.Y*each), share(k.K+f.K, e.K*each), share(k.R+f.R, e.R*each), share(k.N+f.N, e.N*each))
}

// calibrate learns tokens per chunk from a finished stream.
func (p *profile) calibrate(tokens, chunks float64) {
	t := &p.fold.totals
	t.Calibrations++
	t.Counted += tokens
	t.Chunks += chunks
}

// calibrated reports whether tokens per chunk can be relied on.
func (p *profile) calibrated() bool {
	return p.known.totals.Calibrations+p.fold.totals.Calibrations >= minCalibrations
}

// totals returns the totals with what came in since the last fold.
func (p *profile) totals() *totals {
	t := p.known.totals
	t.merge(&p.fold.totals, 0)
	return &t
}

// gather takes the target's share of the prompts of w, and adds what it did
// there to its row; it reports whether the row is whole. It is not while a long
// prefill goes on: then what it brings is in another window than what it takes.
func (p *profile) gather(w *window, goesOn bool) bool {
	p.held.add(&w.promptPool, 1)
	cells := w.exposure(p)
	for i := range cells {
		e := &cells[i]
		p.row.S += e.S
		p.row.T += e.T
		p.row.K += e.K
		p.row.Q += e.Q
		p.row.Y += e.Y
	}
	p.takePrompts(w)
	p.row.windows++
	p.row.goesOn = goesOn
	return p.row.whole()
}

// mostTaken is what part of the time that is known of a bin a window that counts less may
// take off it. Evidence fades, so all of it may be less than what was added: sums below 0
// would be refused where they are added, with all that the target did in that second.
const mostTaken = 0.9

// close adds what the target did in w to the next fold: the second moments of
// its bins, and its row, if that is whole. The seconds of w count by times, where
// that is not 1 as they would have before all that is known was shifted by factor.
func (p *profile) close(w *window, by, factor float64) {
	cells := w.exposure(p)
	if p.since != nil && by == 1 {
		p.remember(w)
	}
	now := 1.0 // what one of its seconds comes to
	if by != 1 {
		now = by * factor
	}
	for i := range cells {
		e, b := &cells[i], &p.fold.bins[i]
		if e.S > 0 {
			more := (by - 1) * factor // they were added once when they came, and shifted since
			known := &p.known.bins[i] // not shifted yet
			most := mostTaken * min((factor*known.S+b.S)/e.S, (factor*known.T+b.T)/e.T)
			more = max(more, min(-most, 0))
			b.S += more * e.S
			b.T += more * e.T
			b.W++
			b.SS += now * now * e.S * e.S
			b.YY += e.Y * e.Y
			b.SY += now * e.S * e.Y
			if p.since != nil && by == 1 {
				b := &p.since.bins[i]
				b.SS += e.S * e.S
				b.SY += e.S * e.Y
			}
		}
	}
	if p.row.whole() {
		p.row.T *= now
		p.wait(waitingRow{row: p.row, newest: w.index, changed: p.since != nil && by == 1})
		p.row = row{}
	}
}

// move shifts all that is known by step, in ln, with the next fold; where spares is
// set, all but what was measured since the engine may have changed.
func (p *profile) move(step float64, spares bool) {
	from := p.known.Shifts
	if p.shift.valid() {
		from = p.shift.To
	}
	next := Shift{From: from, To: from + 1, Factor: math.Exp(step)}
	p.shift = p.shift.then(next)
	for i := range p.waiting {
		if r := &p.waiting[i]; !(spares && r.changed) {
			r.T *= next.Factor
		}
	}
	if spares && p.since != nil {
		p.spare(next)
	}
}

// leastSpared is the share of it below which what was measured since is shifted, too.
const leastSpared = 0.1

// spare leaves as it is what was measured since the engine may have changed: as much of
// it as leaves sums of streams, or next would be refused by the store. What is
// measured is forgotten at the pace of each bin, and since at none.
func (p *profile) spare(next Shift) {
	for share := p.kept(); share > leastSpared; share /= 2 {
		fold, known := p.fold, p.known
		next.spare(&fold, p.since, share)
		if known.Add(Delta{Sums: fold, Shift: p.shift}, p.halfLife); known.Check() == nil {
			p.fold = fold
			return
		}
	}
}

// mixIn books for the mix what came in w: the target's share of the prompts, which is
// its share of the time that was decoded, evidence or not, and the tokens of all its
// streams, of which so many are evidence. Where none decoded they wait.
func (p *profile) mixIn(w *window, tokens float64) {
	for i := range w.prompts.P {
		p.unmixed += w.prompts.P[i] + w.late.P[i]
	}
	p.corrected += tokens
	own, m := w.of(p).seen, &p.fold.mix
	if own > 0 {
		m.T, p.fold.recent.T = m.T+own, p.fold.recent.T+own
		m.P += p.unmixed * own / w.seen
		m.Y += max(p.corrected, 0)
		p.corrected = max(min(p.corrected, 0), -mostTaken*max(p.known.mix.Y, 0))
	}
	if w.seen > 0 {
		p.unmixed = 0
	}
}

// takePrompts books the target's share of the prompts that were prefilled on
// the backend: its share of the occupied time that this replica saw. Seen
// from one of several replicas that is unbiased while prompts are divided as
// streams are.
func (p *profile) takePrompts(w *window) {
	var occupied, tokens float64
	cells := w.exposure(p)
	for i := range cells {
		occupied += cells[i].T
		tokens += cells[i].Y
	}
	p.mixIn(w, tokens)
	share := 0.0
	if occupied > 0 {
		share = occupied / max(p.held.seen, occupied)
	}
	for i := range p.fold.bins {
		prompts := p.held.prompts.P[i] * share
		p.row.P += prompts
		p.fold.bins[i].P += prompts + p.held.late.P[i]*share
		p.fold.bins[i].PN += (p.held.prompts.PN[i] + p.held.late.PN[i]) * share
	}
	p.holdRest(1 - share)
}

// holdRest keeps what the target did not take of the prompts while it may
// still: until tokens per chunk is known, and for two windows more, in which
// the streams hand over what they kept; and while nothing decoded beside them,
// because a prefill that stalls every stream for a whole window shows in the
// next one. Later the rest belongs to other targets and to streams that are no
// evidence.
func (p *profile) holdRest(rest float64) {
	if p.calibrated() {
		p.flowing++
	}
	if p.flowing > 2 && p.held.seen > 0 {
		p.held = promptPool{}
		return
	}
	var held promptPool
	held.add(&p.held, rest)
	p.held = held
}

// predict returns the seconds per step that the fit expects of r, or the mean
// of all there is while there is no fit.
func (p *profile) predict(r row) float64 {
	if f, ok := p.curve.Load().Fit(); ok && r.K > 0 {
		if y := f.A + (f.B*r.Q+f.C*r.Y+f.D*r.P)/r.K; y > minTPOT {
			return y
		}
	}
	var t, k float64
	for i := range p.known.bins {
		t += p.known.bins[i].T + p.fold.bins[i].T
		k += p.known.bins[i].K + p.fold.bins[i].K
	}
	if !(k > 0) {
		return 0
	}
	return t / k
}

// cut ends the fold: it returns what was gathered since the last, and counts it
// among the unacknowledged. ok is false when there was nothing.
func (p *profile) cut(now time.Time, number uint64) (d Delta, ok bool) {
	if p.fold.empty() && !p.shift.valid() {
		return Delta{}, false
	}
	p.ageFirsts()
	d = Delta{Target: p.target, Sums: p.fold, Shift: p.shift}
	d.Sums.Updated = now
	d.Sums.folded = number
	p.fold, p.shift = Sums{}, Shift{}
	p.known.Add(d, p.halfLife)
	if last := len(p.unacked) - 1; len(p.unacked) == maxUnacked {
		p.unacked[last].Join(d, p.halfLife)
		return d, true
	}
	waiting := d
	p.unacked = append(p.unacked, &waiting)
	return d, true
}

// rebase rests what is known on the sums of the store, which hold every fold
// up to acked.
func (p *profile) rebase(base Sums, acked uint64) {
	keep := p.unacked[:0]
	for _, d := range p.unacked {
		if d.Sums.folded > acked {
			keep = append(keep, d)
		}
	}
	clear(p.unacked[len(keep):])
	p.unacked = keep
	p.known = base
	p.known.folded = 0
	for _, d := range p.unacked {
		p.known.Add(*d, p.halfLife)
	}
}

// draw draws the curve anew from a copy of what is known: it takes too long to
// keep streams from handing over meanwhile. Book.mu is held.
func (p *profile) draw(known *Sums, m margins) {
	pr := p.prior
	if pr == nil {
		pr = p.borrowed
	}
	c := newCurve(known, pr, m.all)
	c.margins = m
	c.borrowed = p.prior == nil
	c.ttft = newTTFT(known, c)
	p.curve.Store(c)
	p.stale = false
}

// finite reports whether x is a number.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
