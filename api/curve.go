package api

import (
	"math"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// KnowledgeOf is what c rests on.
func KnowledgeOf(c *profiles.Curve) Knowledge {
	k := Knowledge{
		Scale:            Number(c.Scale()),
		Margin:           Number(c.Margin()),
		Rho:              Number(c.Rho()),
		TokensSeen:       Number(c.Tokens()),
		MeanOutputTokens: Positive(c.MeanOutput()),
		UpdatedAt:        Instant(c.Updated()),
	}
	if lo, hi := c.Support(); hi > 0 {
		k.Support = &[2]int{lo, hi}
	}
	if f, ok := c.Fit(); ok {
		k.Fit = &Fit{Number(f.A), Number(f.B), Number(f.C), Number(f.D)}
	}
	if t := c.TTFT(); t.Known() {
		k.TTFT = &TTFT{BaseS: Number(t.Base), PrefillTokensPerS: Number(1 / t.PerToken)}
		if t.Slots > 0 {
			k.TTFT.Slots = &t.Slots
		}
	}
	return k
}

// Instant returns t in UTC for JSON, nil when it never was.
func Instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Bounds of one question: it is a person or a script that asks.
const (
	MaxLevels    = 1024    // of concurrency, in one question
	MaxLevel     = 1 << 20 // of each
	MaxDecisions = 1000    // in one answer
	MaxFind      = 128     // bytes that decisions are looked for
	MaxMarks     = 1000    // of the timeline, in one answer
)

// PointsQuery says at which levels, and at which prompt load, a curve is asked.
type PointsQuery struct {
	Levels       []int   // nil = every bin with evidence
	Rho          float64 // prompt tokens per output token; NaN = the learned load
	PromptTokens float64 // of a request; NaN = not asked
}

// Points answers q from c. output is the mean answer that PromptTokens was
// divided by, nil when none was needed. Without a mean answer the load is
// unknown, and so is the speed.
func (q PointsQuery) Points(now time.Time, c *profiles.Curve) (points []Point, output *Number) {
	levels := q.Levels
	if levels == nil {
		for _, pt := range c.Points() {
			levels = append(levels, pt.N)
		}
	}
	points = make([]Point, len(levels))
	for i, n := range levels {
		points[i] = pointOf(now, n, q.at(c, n))
	}
	if !math.IsNaN(q.PromptTokens) {
		mean := Positive(c.MeanOutput())
		output = &mean
	}
	return points, output
}

// at is the curve at n and the prompt load that is asked for.
func (q PointsQuery) at(c *profiles.Curve, n int) profiles.Point {
	switch {
	case !math.IsNaN(q.Rho):
		return c.AtRho(n, q.Rho)
	case math.IsNaN(q.PromptTokens):
		return c.At(n)
	case c.MeanOutput() > 0:
		return c.AtRho(n, q.PromptTokens/c.MeanOutput())
	}
	p := c.At(n)
	p.P, p.TPS, p.Low, p.Source = math.NaN(), math.NaN(), math.NaN(), profiles.Unknown
	return p
}

func pointOf(now time.Time, n int, pt profiles.Point) Point {
	out := Point{
		N: n, P: Number(pt.P), TPS: Number(pt.TPS), Low: Number(pt.Low),
		AggregateTPS:  Number(float64(n) * pt.TPS),
		StreamSeconds: Number(pt.StreamSeconds), Tokens: Number(pt.Tokens), Steps: Number(pt.Steps),
		AgeS: Unknown(),
	}
	if !pt.Updated.IsZero() {
		out.AgeS = Number(max(now.Sub(pt.Updated), 0).Seconds())
	}
	if pt.Source != profiles.Unknown {
		source := pt.Source.String()
		out.Source = &source
	}
	return out
}
