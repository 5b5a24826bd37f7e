package profiles

import (
	"math"
	"time"
)

// Curve is TPS(n) of one target as known at one moment: immutable, safe for
// concurrent use. The zero value knows nothing.
//
//	TPS(n) = 1/((A + B·√n + C·n)·e^r(n) + D·ρ·n)
//
// in tokens/s for one of n streams; A, B, C, D in seconds; ρ in prompt tokens for
// each output token, over all n; r(n), in ln, the correction where the bins say
// otherwise than the fit.
//
// ρ·n is the load that n streams bring by themselves. What was prefilled while n
// streams decoded is another: with U users, n = U−1 occurs mostly while the
// prompt of a replacement is prefilled, and n = U only while none is.
type Curve struct {
	source   Provenance // Unknown, Prior, Learned (of any n)
	borrowed bool       // the prior is what the group's other targets know
	fit      Fit
	fitted   bool
	margins  margins
	pace     float64 // ln of what shifts multiplied its seconds by, as far as it is remembered
	lo, hi   int     // support

	// The tables go up to top: twice the support, or maxLevel.
	top int
	tps []float64 // by n−1, up to exactRungs
	low []float64 // by rung, at its top

	// What the tables were made of, and how they go on: fit and correction for
	// the evidence, prior for a prior.
	correction knots
	prior      *prior

	fill       *fill // how many tokens chunks hold by n; nil = as many everywhere
	bins       [NumBins]binPoint
	steps      float64
	tokens     float64
	rho        float64
	meanOutput float64
	ttft       TTFT
	updated    time.Time
}

// binPoint is what a curve says about the evidence of one bin.
type binPoint struct {
	n                  int // mean n of its steps, rounded
	seconds, tokens, k float64
	windows            float64
	contradicts        bool // it says something else than the curve
}

const (
	// maxLevel is the highest n that a curve is drawn for.
	maxLevel = 8192

	// visitedSteps is how many decode steps make a bin visited: then it
	// belongs to the support.
	visitedSteps = 8
)

// Known reports whether the curve can be asked at all: evidence of at least 30
// decode steps, or a prior.
func (c *Curve) Known() bool { return c.source != Unknown }

// Borrowed reports whether the curve is what other targets of the same backend
// know, and nothing of its own: this one may be faster, or slower.
func (c *Curve) Borrowed() bool { return c.source == Prior && c.borrowed }

// PriorTPS returns what the configured prior says of one of n streams, in
// tokens/s, whatever was learned since; NaN where there is none.
func (c *Curve) PriorTPS(n int) float64 {
	if c.prior == nil || c.borrowed {
		return math.NaN()
	}
	return 1 / min(max(c.prior.tpot(float64(max(n, 1))), minTPOT), maxTPOT)
}

// TPS returns tokens/s for one of n streams at the prompt load that they bring; NaN
// when unknown. n below 1 counts as 1.
func (c *Curve) TPS(n int) float64 {
	n = max(n, 1)
	if n <= len(c.tps) {
		return c.tps[n-1]
	}
	if c.source == Unknown {
		return math.NaN()
	}
	return 1 / c.tpot(float64(n))
}

// tpot returns the seconds per token at n and the prompt load that n streams
// bring, as known.
func (c *Curve) tpot(n float64) float64 {
	if c.source == Prior {
		return min(max(c.prior.tpot(n), minTPOT), maxTPOT)
	}
	return c.tpotAt(n, n*c.rho)
}

// tpotAt returns the same at prompt load p, of a curve that is fitted.
func (c *Curve) tpotAt(n, p float64) float64 {
	t := c.fit.tpot(n, 0)*math.Exp(c.correction.at(math.Log(n))) + c.fit.D*p
	return min(max(t, minTPOT), maxTPOT)
}

// Low returns the deciding bound at n when extraP prompt tokens per decode
// step come on top of those that n streams bring. It never rises with n or extraP.
// It is 0 when unknown, and beyond twice the highest visited n. n below 1
// counts as 1, extraP below 0 as 0.
func (c *Curve) Low(n int, extraP float64) float64 {
	n = max(n, 1)
	if n > c.top {
		return 0
	}
	low := c.low[rungOf(n)]
	if !(extraP > 0) || c.fit.D == 0 || low == 0 {
		return low
	}
	// 1/(1/low + D·extraP), in the form that rounding cannot lift above low.
	return low / (1 + low*(c.fit.D*extraP))
}

// MaxConcurrency returns the largest n with TPS(n) ≥ floor; 0 when none. It
// does not look beyond twice the support.
func (c *Curve) MaxConcurrency(floorTPS float64) int {
	n := 0
	for i := len(c.low) - 1; i >= 0 && n == 0; i-- {
		if at := min(rungTop(i), c.top); c.TPS(at) >= floorTPS {
			n = at
		}
	}
	for n < c.top && c.TPS(n+1) >= floorTPS { // on to the next rung, whose top is too slow
		n++
	}
	return n
}

// Support returns the lowest and highest n with evidence, or of the prior's
// points while there is none; 0, 0 when the curve is unknown.
func (c *Curve) Support() (lo, hi int) { return c.lo, c.hi }

// Fit returns the fitted coefficients; ok is false before there is a fit.
func (c *Curve) Fit() (f Fit, ok bool) { return c.fit, c.fitted }

// SecondsPerPromptToken is Fit.D, or what the prior says, or 0 when unknown: what one
// prompt token costs the streams that decode meanwhile.
func (c *Curve) SecondsPerPromptToken() float64 { return c.fit.D }

// Scale is the speed of the backend over what it was before it became slower, or
// faster, at all n; 1 when it did not, or so long ago that what is known is of
// its speed since. TPS and Low include it.
func (c *Curve) Scale() float64 { return math.Exp(-min(max(c.pace, -mostPace), mostPace)) }

// mostPace bounds what shifts are remembered, in ln.
const mostPace = 5

const (
	// expectSteps is how many known decode steps a bin needs to be held against
	// a window, beside windows enough for it to be believed against the fit, and
	// expectShare how much of the window must lie in such bins.
	expectSteps   = 30
	expectWindows = 2
	expectShare   = 0.8
)

// expect returns the occupied seconds that the curve expects of a window's row,
// 0 when it expects nothing. familiar is whether it knows the levels that the
// window lived at: if not, a difference may be the curve's.
func (c *Curve) expect(r row, cells *[NumBins]exposure) (seconds float64, familiar bool) {
	if !c.fitted {
		return 0, false
	}
	var plain, corrected, all, known float64
	for i := range cells {
		e := &cells[i]
		if e.K <= 0 {
			continue
		}
		t := c.fit.A*e.K + c.fit.B*e.Q + c.fit.C*e.Y
		plain += t
		corrected += t * math.Exp(c.correction.at(math.Log(max(e.Y/e.K, 1))))
		all += e.T
		if b := &c.bins[i]; b.k >= expectSteps && b.windows >= expectWindows {
			known += e.T
		}
	}
	seconds = c.fit.A*r.K + c.fit.B*r.Q + c.fit.C*r.Y
	if plain <= 0 || seconds <= 0 {
		return 0, false
	}
	return seconds*corrected/plain + max(c.fit.D*r.P, 0), known >= expectShare*all
}

// Points returns every bin with evidence (or the prior's points), by n, at the
// prompt load that n streams bring.
func (c *Curve) Points() []Point {
	var points []Point
	for i := range c.bins {
		if c.bins[i].n > 0 {
			points = append(points, c.At(c.bins[i].n))
		}
	}
	if len(points) == 0 && c.prior != nil {
		for _, n := range c.prior.n {
			points = append(points, c.At(n))
		}
	}
	return points
}

// At returns the curve at n and the prompt load that n streams bring.
func (c *Curve) At(n int) Point {
	n = max(n, 1)
	b := &c.bins[BinOf(n)]
	p := Point{
		N: n, P: float64(n) * c.rho, TPS: c.TPS(n), Low: math.NaN(),
		StreamSeconds: b.seconds, Tokens: b.tokens, Steps: b.k,
		Updated: c.updated, Source: c.source,
	}
	if c.source == Unknown {
		return p
	}
	p.Low = c.Low(n, 0)
	if c.source == Learned && (b.k < visitedSteps || b.contradicts) {
		p.Source = Extrapolated
	}
	return p
}

// AtRho returns the curve at n and prompt load p = n·rho. Without a fit the
// load changes nothing.
func (c *Curve) AtRho(n int, rho float64) Point {
	point := c.At(n)
	p := float64(point.N) * rho
	if !c.fitted || !(p >= 0) || math.IsInf(p, 0) {
		return point
	}
	change := c.tpotAt(float64(point.N), point.P) / c.tpotAt(float64(point.N), p)
	point.P = p
	point.TPS = min(point.TPS*change, 1/minTPOT)
	point.Low = min(point.Low*change, point.TPS)
	return point
}

// Seen returns the highest tokens/s that streams were seen to get with n or more
// of them there, whatever prompts were prefilled beside them: what the bins show
// and not what the fit makes of it. A bin needs 30 decode steps to be asked. It
// is 0 when there is none, and for a prior.
func (c *Curve) Seen(n int) float64 {
	tps := 0.0
	for i := range c.bins {
		if b := &c.bins[i]; b.n >= n && b.k >= ownSteps && b.seconds > 0 {
			tps = max(tps, b.tokens/b.seconds)
		}
	}
	return tps
}

// Rho is the learned prompt load per output token over all n.
func (c *Curve) Rho() float64 { return c.rho }

// Tokens is how many tokens the curve rests on, as far as they are not
// forgotten.
func (c *Curve) Tokens() float64 { return c.tokens }

// Steps is how many decode steps the curve rests on, as far as they are not
// forgotten.
func (c *Curve) Steps() float64 { return c.steps }

// MeanOutput is the mean answer in tokens, 0 while unknown.
func (c *Curve) MeanOutput() float64 { return c.meanOutput }

// TTFT is what is known of the time to the first token. It may be known before
// the curve is, and unknown when the curve is known.
func (c *Curve) TTFT() TTFT { return c.ttft }

// Updated is when evidence last came in; zero when never.
func (c *Curve) Updated() time.Time { return c.updated }

// Margin is what the deciding bound takes off the curve at least.
func (c *Curve) Margin() float64 { return c.margins.all }

// Shown is the part of the margin that finished streams have shown to be needed.
// It is 0 where few have finished, or all keep what the curve says.
func (c *Curve) Shown() float64 { return c.margins.shown }
