package baseline

import "github.com/pacer-dev/pacer/router"

// byTurns takes each target of a route in turn; the next one takes the turn of one
// that is out of service.
type byTurns struct{}

func (byTurns) Pick(c router.Choice) int {
	return from(c, int(c.Turn()%uint64(max(c.Len(), 1))))
}
