package profiles

// Shape returns the seconds per token at n streams by the fit, at the prompt
// load that n streams usually bring (n·Rho), without drift and without what
// single bins say against it; of a prior alone, what that says. It never falls
// as n rises. What counts is its ratio between two levels: how much slower a
// stream gets from the one to the other. It is 0 when unknown.
//
// The correction by bins is left out on purpose: after a disturbance it says of
// each bin how fast the engine was when that bin was visited last, and two bins
// that were visited at different times would make a step that is none.
func (c *Curve) Shape(n float64) float64 {
	switch {
	case c.source == Unknown:
		return 0
	case !c.fitted:
		return min(max(c.prior.tpot(n), minTPOT), maxTPOT)
	}
	return min(max(c.fit.tpot(n, n*max(c.rho, 0)), minTPOT), maxTPOT)
}
