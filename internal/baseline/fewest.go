package baseline

import (
	"math/rand/v2"

	"github.com/pacer-dev/pacer/router"
)

// fewest takes the target with the fewest requests in flight: of all, or of so
// many drawn at random.
type fewest struct {
	random  *rand.Rand
	choices int // 0 = all
}

func (p fewest) Pick(c router.Choice) int {
	list := p.random.Perm(c.Len())
	drawn := list
	if p.choices > 0 {
		drawn = list[:min(p.choices, len(list))]
	}
	sort(drawn, func(i int) float64 { return float64(c.InFlight(i)) })
	return first(c, list)
}
