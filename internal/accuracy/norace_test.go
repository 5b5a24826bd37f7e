//go:build !race

package accuracy

const (
	raceDetector = false
	fewSeeds     = 15
	truthScale   = 1.0
	fewCurves    = 1000
)
