package router

import "math"

// byPrice takes the feasible target that the request is expected to cost least on,
// among equals the one with the most headroom.
type byPrice struct{}

func (byPrice) Pick(c Choice) int {
	a := c.ask
	a.rankAll()
	least := math.Inf(1)
	for i := range a.verdicts {
		if v := &a.verdicts[i]; v.reason == OK {
			least = min(least, a.priceOf(v))
		}
	}
	for i := range a.verdicts {
		if v := &a.verdicts[i]; v.reason == OK && a.priceOf(v) > least {
			v.rank = -1
		}
	}
	return c.best()
}
