package router

// tightest takes the feasible target with the least headroom, so that others stay
// empty; an unknown one as by headroom.
type tightest struct{}

func (tightest) Pick(c Choice) int {
	a := c.ask
	feasible := a.rankAll()
	for i := range a.verdicts {
		if v := &a.verdicts[i]; v.reason == OK && !v.fresh {
			v.rank = 1 / (v.rank + 1e-9)
		}
	}
	if feasible > 1 {
		a.spare()
	}
	return c.best()
}
