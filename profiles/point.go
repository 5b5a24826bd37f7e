package profiles

import "time"

// Provenance of a point of a curve.
type Provenance uint8

// Where a point stands on.
const (
	Unknown      Provenance = iota
	Prior                   // from the configuration, no evidence yet
	Learned                 // evidence at this n
	Extrapolated            // evidence elsewhere only, or more than what there is at this n, which says otherwise
)

// String returns unknown, prior, learned or extrapolated.
func (p Provenance) String() string {
	switch p {
	case Prior:
		return "prior"
	case Learned:
		return "learned"
	case Extrapolated:
		return "extrapolated"
	default:
		return "unknown"
	}
}

// Point is the curve at one n, with what it rests on. The bin's own speed, not
// smoothed and at the bin's own prompt load, is Tokens/StreamSeconds.
type Point struct {
	N             int
	P             float64 // prompt tokens per decode step the figures hold for
	TPS, Low      float64 // NaN when unknown
	StreamSeconds float64 // of the bin that N lies in, as Tokens and Steps
	Tokens        float64
	Steps         float64
	Updated       time.Time // zero when never
	Source        Provenance
}
