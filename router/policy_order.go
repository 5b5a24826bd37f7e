package router

// byOrder takes the first feasible target in the order of the configuration.
type byOrder struct{}

func (byOrder) pick(_ *Router, a *ask) *verdict {
	for i := range a.verdicts {
		if a.verdicts[i].reason == OK {
			return &a.verdicts[i]
		}
	}
	return nil
}
