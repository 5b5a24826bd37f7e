package profiles

import "math"

const (
	// extrapolated is what is left of the bound outside the support: the 90th
	// percentile of the error one doubling beyond it is 15 % on published
	// curves.
	extrapolated = 0.85

	// ownSteps is how many decode steps let a bin speak for itself.
	ownSteps = 30

	// thinSteps and thinWindows are what a bin needs before its own standard
	// error is used; below, and at most, it is maxError.
	thinSteps   = 60
	thinWindows = 8
	maxError    = 0.07

	// confidence is z, in standard errors.
	confidence = 1.0
)

// bound fills in low: the running minimum over m ≤ n of the curve, or the
// bin's own speed where it is lower, less the margin. The running minimum
// keeps a step in the curve from being averaged away; the cap on the error
// keeps a thin bin from poisoning all above it. It starts at the lowest
// visited n, so that what is extrapolated below cannot poison it either.
func (c *Curve) bound(s *Sums) {
	c.low = make([]float64, len(c.tps))
	lo, hi := c.believed()
	var own, off [NumBins]float64
	for i := range s.bins {
		own[i], off[i] = math.Inf(1), c.margin
		if c.source == Learned {
			own[i], off[i] = c.scale*s.bins[i].own(), max(c.margin, confidence*s.bins[i].relativeError())
		}
	}
	running := math.Inf(1)
	for n := lo; n <= len(c.low); n++ {
		i := BinOf(n)
		v := min(c.tps[n-1], own[i]) * (1 - off[i])
		if n > hi {
			v *= extrapolated
		}
		running = min(running, max(v, 0))
		c.low[n-1] = running
	}
	for n := lo - 1; n >= 1; n-- {
		c.low[n-1] = max(c.low[n], extrapolated*(1-c.margin)*c.tps[n-1])
	}
}

// own returns tokens per stream-second of the bin, +Inf where it is too thin
// to say.
func (b *binSums) own() float64 {
	if b.K < ownSteps || !(b.S > 0) {
		return math.Inf(1)
	}
	return b.Y / b.S
}

// relativeError returns the standard error of Y/S relative to it, at most
// maxError, which also stands for bins too thin to tell.
func (b *binSums) relativeError() float64 {
	if e, ok := b.windowError(); ok {
		return min(e, maxError)
	}
	return maxError
}

// windowError returns the standard error of Y/S relative to it, by the ratio
// estimator over windows; ok is false where there are too few.
//
//	var(R) = W/(W−1) · (Σy² − 2R·Σsy + R²·Σs²)/S², R = Y/S
func (b *binSums) windowError() (e float64, ok bool) {
	if b.K < thinSteps || b.W < thinWindows || !(b.S > 0) || !(b.Y > 0) {
		return 0, false
	}
	r := b.Y / b.S
	variance := b.W / (b.W - 1) * (b.YY - 2*r*b.SY + r*r*b.SS) / (b.S * b.S)
	e = math.Sqrt(max(variance, 0)) / r
	return e, finite(e)
}
