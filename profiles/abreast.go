package profiles

import "math"

// abreast is what all streams of a group got together, and what the curves of
// the moment said that they should get, in tokens since the group is known. The
// difference of two says how fast the engine was in the time between: who is slow
// because all are shows nothing of how far streams spread, and whoever decides by
// what the running streams get needs no margin for it.
type abreast struct{ got, expected float64 }

// take adds an exposure in chunks of so many tokens.
func (a *abreast) take(c *Curve, e *exposure, perChunk float64) {
	if c.fitted && e.T > 0 {
		a.got += e.Y * perChunk
		a.expected += e.S / c.tpot(e.S/e.T)
	}
}

const (
	// abreastWithin is how far, in ln, the speed of the whole group may be off its
	// curves while a stream runs for the stream to say how far streams spread:
	// noise and usual prompts slow all of them by less, an engine that stumbles by
	// more.
	abreastWithin = 0.15

	// company is how many times as much as the stream itself its group has to have
	// done in the same time for the others to say how fast the engine was.
	company = 2.0
)

// usual reports whether the group ran at about the speed of its curves since
// joined, as far as that can be told beside a stream that was expected to get own
// tokens itself.
func (a *abreast) usual(joined abreast, own float64) bool {
	got, expected := a.got-joined.got, a.expected-joined.expected
	return !(got > 0) || expected < company*own || math.Abs(math.Log(got/expected)) <= abreastWithin
}
