package profiles

import (
	"math"
	"time"
)

const (
	// windowLength is the time one row of the fit covers. The windows of all
	// streams of a Book begin at the same instants.
	windowLength = 5 * time.Second

	// windowGrace is how long a window stays open after its end, for the
	// streams whose next token has yet to come.
	windowGrace = time.Second

	// minRowSteps is how many decode steps make a row; a window with fewer is
	// carried on into the next.
	minRowSteps = 8

	// maxOpenWindows bounds the windows that wait to be closed.
	maxOpenWindows = 2
)

// windowOf returns the index of the window that at lies in.
func windowOf(at time.Duration) int64 {
	if at < 0 {
		return -1
	}
	return int64(at / windowLength)
}

// windowEnd returns when window index ends; the last one that a Duration can
// tell of never does.
func windowEnd(index int64) time.Duration {
	if index >= int64(math.MaxInt64/windowLength) {
		return math.MaxInt64
	}
	return time.Duration(index+1) * windowLength
}

// window is what happened in one group in one window.
type window struct {
	index int64
	promptPool
	parts []*inWindow // by profile.index; nil = none

	occ   *Occupancy    // of its streams; nil = none has one
	shift time.Duration // from time since epoch to that since occ.origin
}

// inWindow is what the streams of one target did in a window.
type inWindow struct {
	cells [NumBins]exposure // of those that are evidence
	seen  float64           // occupied seconds, evidence or not
}

// promptPool is prompt load that has yet to be divided among the targets of a
// backend, each of which takes its share of the decoding time.
type promptPool struct {
	prompts promptLoad // prefilled in the window
	late    promptLoad // corrections to prompts of earlier windows: for the bins, not for the row
	seen    float64    // occupied seconds of all streams of this replica, evidence or not
}

// add adds o multiplied by scale.
func (p *promptPool) add(o *promptPool, scale float64) {
	p.prompts.add(&o.prompts, scale)
	p.late.add(&o.late, scale)
	p.seen += o.seen * scale
}

// of returns what a profile did in w.
func (w *window) of(p *profile) *inWindow {
	for len(w.parts) <= p.index {
		w.parts = append(w.parts, nil)
	}
	if w.parts[p.index] == nil {
		w.parts[p.index] = new(inWindow)
	}
	return w.parts[p.index]
}

// exposure returns the bins of a profile in w.
func (w *window) exposure(p *profile) *[NumBins]exposure { return &w.of(p).cells }

// row is one equation T = a·K + b·Q + c·Y + d·P.
type row struct {
	T, K, Q, Y, P float64

	S       float64 // stream-seconds: no part of it
	windows int     // that it is of
	goesOn  bool    // a long prefill begins in it, and ends later
}

// whole reports whether r may teach.
func (r *row) whole() bool {
	return r.K >= minRowSteps && r.T > 0 && (!r.goesOn || r.windows >= longestRow)
}

// addTo adds the row to the normal equations. smooth is the time per step that
// is predicted for it: the weight K/smooth² makes errors relative. It is never
// the measured time, which would give the luckiest readings most weight.
func (r row) addTo(s *rowSums, smooth float64) {
	w := r.K / (smooth * smooth)
	x1, x2, x3, y := r.Q/r.K, r.Y/r.K, r.P/r.K, r.T/r.K
	s.A00 += w
	s.A01 += w * x1
	s.A02 += w * x2
	s.A03 += w * x3
	s.A11 += w * x1 * x1
	s.A12 += w * x1 * x2
	s.A13 += w * x1 * x3
	s.A22 += w * x2 * x2
	s.A23 += w * x2 * x3
	s.A33 += w * x3 * x3
	s.B0 += w * y
	s.B1 += w * x1 * y
	s.B2 += w * x2 * y
	s.B3 += w * x3 * y
	s.YY += w * y * y
	s.T += r.T
	s.K += r.K
}
