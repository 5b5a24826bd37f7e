package profiles

import "math"

// newCurve draws the curve of s. margin is what the bound takes off at least;
// pr may be nil.
func newCurve(s *Sums, pr *prior, margin float64) *Curve {
	c := &Curve{margins: margins{all: margin}, pace: s.pace.Ln, prior: pr, updated: s.Updated}
	l, ok := centreOf(s)
	c.describe(s, ok)
	c.fill = s.fill()
	var against *residuals
	switch {
	case ok && l.steps >= minSteps:
		c.source, c.fitted = Learned, true
		c.fit = s.fit(l, pr)
		if !c.fit.plausible(l) {
			c.fit = Fit{A: l.tpot}
		}
		against = s.against(c.fit)
		c.correction = s.corrections(against)
		c.hold(against)
		c.lo, c.hi = support(s, l)
	case pr != nil:
		c.source, c.fit.D = Prior, pr.cost
		c.lo, c.hi = pr.support()
	default:
		return c
	}
	c.tabulate()
	c.bound(s, against)
	return c
}

// describe fills in what s holds, whether or not a curve can be drawn.
func (c *Curve) describe(s *Sums, ok bool) {
	if t := &s.totals; t.Answers > 0 && t.Output > 0 {
		c.meanOutput = min(t.Output/t.Answers, maxLoad)
	}
	if !ok {
		return
	}
	for i := range s.bins {
		b := &s.bins[i]
		c.steps += b.K
		c.tokens += b.Y
		// A bin with less than a step is what a change of n brushed.
		if n, ok := b.meanN(); ok && b.K >= 1 && b.S > 0 {
			c.bins[i] = binPoint{n: inBin(i, n), seconds: b.S, tokens: b.Y, k: b.K, windows: b.W}
		}
	}
	c.rho = s.rho()
}

// mostOff is by how much, in ln, a bin may say otherwise than the curve for what is shown
// there to be learned there.
const mostOff = 0.1

// hold marks the bins that contradict the curve: few steps are hardly believed against
// those at other n, and what is shown there is what these make of it.
func (c *Curve) hold(against *residuals) {
	for i, q := range against {
		c.bins[i].contradicts = q.says() && math.Abs(q.r-c.correction.at(q.x)) > mostOff
	}
}

// inBin rounds a mean n of bin i to a level of that bin.
func inBin(i int, n float64) int {
	lo, hi := BinBounds(i)
	if i == NumBins-1 {
		hi = max(hi, maxLevel)
	}
	return min(max(int(min(math.Round(n), maxLevel)), lo), hi)
}

// support returns the range of the visited bins, or the mean n where every
// bin is too thin to count as visited.
func support(s *Sums, l centre) (lo, hi int) {
	for i := range s.bins {
		n, ok := s.bins[i].meanN()
		if !ok || s.bins[i].K < visitedSteps {
			continue
		}
		hi = inBin(i, n)
		if lo == 0 {
			lo = hi
		}
	}
	if lo == 0 {
		lo = int(min(math.Round(l.n), maxLevel))
		hi = lo
	}
	return lo, hi
}

// tabulate fills in TPS by n.
func (c *Curve) tabulate() {
	_, hi := c.believed()
	c.top = min(2*hi, maxLevel)
	c.tps = make([]float64, min(c.top, exactRungs))
	for i := range c.tps {
		c.tps[i] = 1 / c.tpot(float64(i+1))
	}
}

// believed returns the range in which the bound takes nothing off for
// extrapolation: the support, and what a prior covers.
func (c *Curve) believed() (lo, hi int) {
	lo, hi = c.lo, c.hi
	if c.prior != nil {
		first, last := c.prior.support()
		lo, hi = min(lo, first), max(hi, last)
	}
	return lo, hi
}
