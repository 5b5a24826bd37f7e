//go:build race

package accuracy

// Nothing here is concurrent, and under the race detector everything takes ten
// times as long: a few rows, which keep the code that they share alive.
const (
	raceDetector = true
	fewSeeds     = 5
	truthScale   = 0.25
)
