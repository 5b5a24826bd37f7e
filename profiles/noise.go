package profiles

import (
	"math"
	"slices"
)

const (
	// bend is how much published curves differ from the fit at one level, as a
	// standard deviation in ln: what a bin says against the fit is believed as
	// far as its own standard error is smaller.
	bend = 0.03

	// stepError is the error of a single step where nothing tells of it:
	// neighbouring steps share their prompts.
	stepError = 0.6

	// thinSteps and thinWindows are what a bin needs to tell its own standard
	// error.
	thinSteps   = 60
	thinWindows = 8
)

// windowError returns the standard error of Y/S relative to it, by the ratio
// estimator over windows; ok is false where a single window has all there is.
//
//	var(R) = W/(W−1) · (Σy² − 2R·Σsy + R²·Σs²)/S², R = Y/S
func (b *binSums) windowError() (e float64, ok bool) {
	if !(b.W > 1) || !(b.S > 0) || !(b.Y > 0) {
		return 0, false
	}
	r := b.Y / b.S
	variance := b.W / (b.W - 1) * (b.YY - 2*r*b.SY + r*r*b.SS) / (b.S * b.S)
	e = math.Sqrt(max(variance, 0)) / r
	return e, finite(e)
}

// thin reports whether the bin is too thin for its windows to tell its error.
func (b *binSums) thin() bool { return b.K < thinSteps || b.W < thinWindows }

// stepNoise returns the variance of one step's relative error: the median of
// those bins that can tell theirs. A stall, which is in one of them, does not
// move it.
func (s *Sums) stepNoise() float64 {
	var list [NumBins]float64
	n := 0
	for i := range s.bins {
		b := &s.bins[i]
		if e, ok := b.windowError(); ok && !b.thin() {
			list[n] = e * e * b.K
			n++
		}
	}
	if n == 0 {
		return stepError * stepError
	}
	slices.Sort(list[:n])
	return list[n/2]
}

// error returns the standard error of what the bin says of the speed at it,
// relative; noise is that of a step, as a variance. +Inf without steps.
func (b *binSums) error(noise float64) float64 {
	e, ok := b.windowError()
	switch {
	case !(b.K > 0):
		return math.Inf(1)
	case !ok:
		return stepError / math.Sqrt(b.K) // it may all be one stall
	case b.thin():
		return max(e, math.Sqrt(noise/b.K)) // a few windows may agree by chance
	}
	return e
}

// quietError returns the standard error of what the bin says of the speed in quiet
// time, relative, by the windows of that:
//
//	e² = W°/(W° − 1) · Σ(T° − τ·K°)²/T°²
//
// ok is false where there are not two of them.
func (b *binSums) quietError() (e float64, ok bool) {
	if !(b.Wq >= 1.5) || !(b.Tq > 0) { // two windows, of which some is forgotten
		return 0, false
	}
	e = math.Sqrt(b.Wq/(b.Wq-1)*max(b.Vq, 0)) / b.Tq
	return e, finite(e)
}

// thinQuiet is thin of quiet time.
func (b *binSums) thinQuiet() bool { return b.Kq < thinSteps || b.Wq < thinWindows }

// noises are the variances of one step of some bins.
type noises []noise

// noise is that at ln n = x: v, relative, and the freedom that it rests on.
type noise struct{ x, v, freedom float64 }

// at returns the variance of a step at x: the mean of all, by their freedom and how
// near they are.
func (l noises) at(x float64) float64 {
	var sum, weights float64
	for _, q := range l {
		w := q.freedom * nearness(x, q.x, reach)
		sum += w * q.v
		weights += w
	}
	return sum / max(weights, math.SmallestNonzeroFloat64)
}

// quietNoise returns what steps of quiet time vary by. It is a tenth of what steps
// beside prefills do; and where tokens vary from stream to stream, as drafts do, it is
// less the more streams share a step. So each bin goes by those near it.
func (s *Sums) quietNoise() noises {
	var list noises
	for i := range s.bins {
		b := &s.bins[i]
		n, known := b.meanN()
		if e, ok := b.quietError(); ok && known && b.Kq >= visitedSteps {
			list = append(list, noise{math.Log(n), e * e * b.Kq, b.Wq - 1})
		}
	}
	return list
}
