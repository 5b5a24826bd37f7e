package profiles

import (
	"math"
	"time"
)

// recountWindows is how many windows a row waits where chunks are no tokens: a minute,
// in which most streams that lived in it end and tell what they held. No more rows wait.
const recountWindows = 12

// waitingRow is a row that is not learned yet, because streams that lived in it may
// still correct what they counted there.
type waitingRow struct {
	row
	newest  int64 // of its windows
	changed bool  // measured since the engine may have changed: see profile.since
}

// counted is what a stream handed over in one window, in what it counts.
type counted struct {
	window  int64
	K, Q, Y float64
}

// count remembers what a stream hands over in a window, so that its usage corrects it
// there. Where there are too many windows the oldest two are one, with as much of the
// older as rows that halve in halfLife have not forgotten by then.
func (h *held) count(window int64, of whose, halfLife time.Duration) {
	c := counted{window: window}
	for i := range h.lives.list {
		e := of(&h.lives.list[i])
		c.K += e.K
		c.Q += e.Q
		c.Y += e.Y
	}
	last := len(h.counted) - 1
	if last >= 0 && h.counted[last].window == window {
		h.counted[last].add(&c)
		return
	}
	if len(h.counted) == recountWindows {
		first, second := &h.counted[0], &h.counted[1]
		left := kept(float64(second.window-first.window)*windowLength.Seconds(), halfLife)
		second.K += left * first.K
		second.Q += left * first.Q
		second.Y += left * first.Y
		h.counted = append(h.counted[:0], h.counted[1:]...)
	}
	h.counted = append(h.counted, c)
}

func (c *counted) add(o *counted) {
	c.K += o.K
	c.Q += o.Q
	c.Y += o.Y
}

// recount corrects the rows of the windows in which a stream counted list, by scale
// times that. What is of rows that were learned goes to the oldest that waits, and what
// is of open windows to the next row, which is theirs.
func (p *profile) recount(list []counted, scale float64) {
	for i := range list {
		r := &p.row
		for j := range p.waiting {
			if w := &p.waiting[j]; w.newest >= list[i].window {
				r = &w.row
				break
			}
		}
		r.K += list[i].K * scale
		r.Q += list[i].Q * scale
		r.Y += list[i].Y * scale
	}
}

// wait keeps a row until it has been corrected.
func (p *profile) wait(r waitingRow) {
	if len(p.waiting) == recountWindows {
		p.learnOldest(1)
	}
	p.waiting = append(p.waiting, r)
}

// learnRows learns the rows that have waited long enough at at, which is all of them
// where a chunk is a token.
func (p *profile) learnRows(at time.Duration) {
	n := len(p.waiting)
	if math.Abs(p.totals().perChunk()-1) > oneToken {
		for n > 0 && p.waiting[n-1].newest+recountWindows > windowOf(at) {
			n--
		}
	}
	p.learnOldest(n)
}

// learnOldest learns the n oldest of the rows that wait.
func (p *profile) learnOldest(n int) {
	for i := range n {
		r := &p.waiting[i]
		smooth := p.smooth(r.row)
		if !(smooth > 0) {
			continue
		}
		p.fold.learn(r.row, smooth)
		if p.since != nil && r.changed {
			p.since.learn(r.row, smooth)
		}
	}
	p.waiting = append(p.waiting[:0], p.waiting[n:]...)
}

// smooth returns the time per step that is predicted for a row as it is learned, 0 for
// one that is none any more with what streams corrected.
func (p *profile) smooth(r row) float64 {
	if !(r.K > 0) || !(r.Q > 0) || !(r.Y > 0) {
		return 0
	}
	if p.shift.valid() { // the curve is of before
		return p.shift.Factor * p.predict(r)
	}
	return p.predict(r)
}

// knows returns what is known, with the rows that wait.
func (p *profile) knows() Sums {
	known := p.known
	for i := range p.waiting {
		r := p.waiting[i].row
		if smooth := p.smooth(r); smooth > 0 {
			known.learn(r, smooth)
		}
	}
	return known
}

// rowSeconds is how many seconds of decoding the rows rest on.
func (p *profile) rowSeconds() float64 {
	t := max(p.known.rows.T, 0)
	for i := range p.waiting {
		t += p.waiting[i].T
	}
	return t
}
