package baseline

import (
	"math"
	"math/rand/v2"

	"github.com/pacer-dev/pacer/router"
)

// ewmaShare is what a finished stream counts in the moving average.
const ewmaShare = 0.2

// movingAverage takes the target with the highest average of tokens/s, each newer
// stream counting ewmaShare. It knows nothing of load. What was never tried goes
// first.
type movingAverage struct {
	random *rand.Rand
	tps    map[router.Target]float64
}

func (m *movingAverage) Pick(c router.Choice) int {
	list := m.random.Perm(c.Len())
	sort(list, func(i int) float64 {
		if tps, ok := m.tps[c.Target(i)]; ok {
			return -tps
		}
		return math.Inf(-1)
	})
	return first(c, list)
}

// Learn takes the speed of a stream.
func (m *movingAverage) Learn(a Answer) {
	old, ok := m.tps[a.Target]
	if !ok {
		old = a.Decoded
	}
	m.tps[a.Target] = old + ewmaShare*(a.Decoded-old)
}
