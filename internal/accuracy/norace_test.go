//go:build !race

package accuracy

const (
	raceDetector = false
	fewSeeds     = 9
	truthScale   = 1.0
)
