package baseline

import "github.com/pacer-dev/pacer/router"

// byTurns takes each target of a route in turn; the next one takes the turn of one
// that is out of service.
type byTurns struct{}

func (byTurns) Pick(c router.Choice) int {
	for i := range c.Len() {
		if next := int((c.Turn() + uint64(i)) % uint64(c.Len())); c.Open(next) {
			return next
		}
	}
	return -1
}
