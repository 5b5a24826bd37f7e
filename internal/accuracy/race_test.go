//go:build race

package accuracy

// Under the race detector everything takes ten times as long: fewer seeds and
// shorter truths, and a sample of the published curves.
const (
	raceDetector = true
	fewSeeds     = 3
	truthScale   = 0.2
	fewCurves    = 3
)
