package profiles

import "math"

// abreast is what all streams of a group got together, and what the curves of
// the moment said that they should get, in tokens since the group is known. A
// stream is held against the others of its time by the difference of two: who is
// slow because the whole engine is shows nothing of how far streams spread, and
// whoever decides by what the running streams get needs no margin for it.
type abreast struct{ got, expected float64 }

// take adds exposures in chunks of so many tokens.
func (a *abreast) take(c *Curve, cells *[NumBins]exposure, perChunk float64) {
	if !c.fitted {
		return
	}
	for i := range cells {
		if e := &cells[i]; e.T > 0 {
			a.got += e.Y * perChunk
			a.expected += e.S / c.tpot(e.S/e.T)
		}
	}
}

const (
	// company is how many times as much as a stream itself its group has to have
	// done in the same time for the others to say how fast the engine was.
	company = 2.0

	// aloneWithin is how far, in ln, a stream without company may be off what
	// its curve says before that is taken for a change of the engine.
	aloneWithin = 0.15
)

// pace is the speed of the whole group since joined, over what its curves said;
// ok is false where a stream that was expected to get so many tokens cannot tell
// it from its own.
func (a *abreast) pace(joined abreast, own float64) (pace float64, ok bool) {
	got, expected := a.got-joined.got, a.expected-joined.expected
	if !(got > 0) || !(expected > 0) {
		return 1, true
	}
	pace = got / expected
	if expected >= company*own {
		return pace, true
	}
	return 1, math.Abs(math.Log(pace)) <= aloneWithin
}
