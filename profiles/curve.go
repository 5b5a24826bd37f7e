package profiles

import "time"

// Fit is TPOT(n) = A + B·√n + C·n + D·p in seconds, all coefficients ≥ 0, with
// p the prompt tokens prefilled per decode step.
type Fit struct{ A, B, C, D float64 }

// Provenance of a point of a curve.
type Provenance uint8

// Where a point stands on.
const (
	Unknown      Provenance = iota
	Prior                   // from the configuration, no evidence yet
	Learned                 // evidence at this n
	Extrapolated            // evidence elsewhere only
)

// String returns unknown, prior, learned or extrapolated.
func (p Provenance) String() string { panic("unwritten") }

// Point is the curve at one n, with what it rests on.
type Point struct {
	N             int
	P             float64 // prompt tokens per decode step the figures hold for
	TPS, Low      float64 // NaN when unknown
	StreamSeconds float64
	Tokens        float64
	Steps         float64
	Updated       time.Time // zero when never
	Source        Provenance
}

// Curve is TPS(n) of one target as known at one moment: immutable, safe for
// concurrent use. The zero value knows nothing.
type Curve struct{}

// Known reports whether the curve can be asked at all: evidence of at least 30
// decode steps, or a prior.
func (c *Curve) Known() bool { panic("unwritten") }

// TPS returns tokens/s for one of n streams at the usual prompt load of n; NaN
// when unknown.
func (c *Curve) TPS(n int) float64 { panic("unwritten") }

// Low returns the deciding bound at n when extraP prompt tokens per decode
// step come on top of the usual prompt load. It never rises with n or extraP.
// It is 0 when unknown, and beyond twice the highest visited n.
func (c *Curve) Low(n int, extraP float64) float64 { panic("unwritten") }

// MaxConcurrency returns the largest n with TPS(n) ≥ floor; 0 when none.
func (c *Curve) MaxConcurrency(floorTPS float64) int { panic("unwritten") }

// Support returns the lowest and highest n with evidence; 0, 0 when none.
func (c *Curve) Support() (lo, hi int) { panic("unwritten") }

// Fit returns the fitted coefficients; ok is false before there is a fit.
func (c *Curve) Fit() (f Fit, ok bool) { panic("unwritten") }

// SecondsPerPromptToken is Fit.D, or 0 when unknown: what one prompt token
// costs the streams that decode meanwhile.
func (c *Curve) SecondsPerPromptToken() float64 { panic("unwritten") }

// Points returns every bin with evidence (or the prior's points), by n.
func (c *Curve) Points() []Point { panic("unwritten") }

// At returns the curve at n and the usual prompt load; AtRho at p = n·rho.
func (c *Curve) At(n int) Point { panic("unwritten") }

// AtRho returns the curve at n and prompt load p = n·rho.
func (c *Curve) AtRho(n int, rho float64) Point { panic("unwritten") }

// Rho is the learned prompt load per output token over all n; Tokens,
// Steps and Updated are totals; MeanOutput is the mean answer in tokens.
func (c *Curve) Rho() float64        { panic("unwritten") }
func (c *Curve) Tokens() float64     { panic("unwritten") }
func (c *Curve) Steps() float64      { panic("unwritten") }
func (c *Curve) MeanOutput() float64 { panic("unwritten") }
func (c *Curve) Updated() time.Time  { panic("unwritten") }
func (c *Curve) Margin() float64     { panic("unwritten") }
