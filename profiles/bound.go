package profiles

import "math"

const (
	// extrapolated is what is left of the bound outside the support: the 90th
	// percentile of the error one doubling beyond it is 15 % on published
	// curves.
	extrapolated = 0.85

	// ownSteps is how many decode steps let a bin speak for itself.
	ownSteps = 30

	// confidence is z: by how many of its standard errors a bin must be slower
	// than the curve before it may pull the bound down. The lowest of some
	// twenty bins holds for all n above it, and would mostly be the unluckiest.
	confidence = 1.0
)

// bound fills in low, in tokens/s for one of n streams:
//
//	low(n) = min over lo ≤ m ≤ n of min(TPS(m), own(m), rising(m))·(1 − max(margin, τ·e/√(τ² + e²)))
//
// with lo the lowest visited n, margin the share that is taken off at least (0 to
// 1), e the standard error of the bin of m and τ what the fit is off by near it, 3 % at
// least, both relative; times extrapolated above the support. τ·e/√(τ² + e²)
// (unexplained) is what is left to doubt when two sources are weighed by their
// variances: the fit, off by τ, and the bin, off by e. The running minimum keeps a step in the curve from being averaged away. It
// starts at the lowest visited n, so that what is extrapolated below cannot poison it:
//
//	low(n) = max(low(n+1), extrapolated·(1 − margin)·TPS(n))    for n < lo
//
// n goes by rungs: each n up to 512, and above that 64 an octave. A rung has the bound
// of its highest n.
func (c *Curve) bound(s *Sums, against *residuals) {
	c.low = make([]float64, rungOf(c.top)+1)
	lo, hi := c.believed()
	running := math.Inf(1)
	var off *[NumBins]float64
	var other rising
	if c.source == Learned {
		off = s.unexplained(against, &c.correction)
		other = s.rising(c.fit, against, c.hi)
	}
	for i := rungOf(lo); i < len(c.low); i++ {
		n := min(rungTop(i), c.top)
		v, kept := c.TPS(n), 1-c.margins.all
		if bin := BinOf(n); c.source == Learned {
			v = min(v, c.own(n, s.bins[bin].K, against[bin]), c.with(other, n))
			kept = min(kept, 1-off[bin])
		}
		if i > rungOf(hi) {
			kept *= extrapolated
		}
		running = min(running, max(v*kept, 0))
		c.low[i] = running
	}
	for i := rungOf(lo) - 1; i >= 0; i-- {
		c.low[i] = max(c.low[i+1], extrapolated*(1-c.margins.all)*c.TPS(rungTop(i)))
	}
}

// own returns the speed at n, in tokens/s, that the bin of n shows by itself, of so
// many steps:
//
//	own(n) = 1/((A + B·√n + C·n)·exp(r)·(1 − z·e) + D·ρ·n)
//
// with A to D of the fit in seconds, z = confidence, ρ the prompt tokens that are
// prefilled per token of a stream, r, in ln, all that the bin says against the fit,
// and e the relative standard error of that, at the
// prompt load ρ·n of n streams; +Inf where the bin is too thin to say. What its
// tokens took with the prompts that happened to fall beside them is several times
// as far off. A stall that hit a single window is all in e, and is taken off again.
func (c *Curve) own(n int, steps float64, q residual) float64 {
	if !q.says() || steps < ownSteps || confidence*q.e >= 1 {
		return math.Inf(1)
	}
	t := c.fit.tpot(float64(n), 0)*math.Exp(q.r)*(1-confidence*q.e) + c.fit.D*float64(n)*c.rho
	return 1 / min(max(t, minTPOT), maxTPOT)
}
