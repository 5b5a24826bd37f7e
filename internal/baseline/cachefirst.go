package baseline

import (
	"math/rand/v2"

	"github.com/pacer-dev/pacer/router"
)

const (
	// cacheShare is which share of a prompt has to be cached for that to count, and
	// imbalanceLeast and imbalanceFactor how many requests more than the emptiest one,
	// and how many times as many, the fullest has when only load counts: what routers
	// that know caches begin with.
	cacheShare      = 0.5
	imbalanceLeast  = 64
	imbalanceFactor = 1.5
)

// cacheFirst takes the target that has most of the prompt in its cache; where no one
// has half of it, or the load is out of balance, the one with the fewest requests.
type cacheFirst struct{ random *rand.Rand }

func (p cacheFirst) Pick(c router.Choice) int {
	list := p.random.Perm(c.Len())
	if len(list) == 0 {
		return -1
	}
	best, least, most := list[0], c.InFlight(list[0]), c.InFlight(list[0])
	for _, i := range list {
		if c.Warm(i) > c.Warm(best) {
			best = i
		}
		least, most = min(least, c.InFlight(i)), max(most, c.InFlight(i))
	}
	balanced := most-least <= imbalanceLeast || float64(most) <= imbalanceFactor*float64(least)
	if balanced && c.Warm(best) > cacheShare && c.Open(best) {
		return best
	}
	return fewest{random: p.random}.Pick(c)
}

// bySession takes the target on which the session's number falls; the next one where
// that is out of service.
type bySession struct{}

func (bySession) Pick(c router.Choice) int {
	return from(c, int(c.Session()*float64(c.Len())))
}
