package router

// assigned is the target that a split route gives the request to, nil where the
// route has no split, or that target cannot take it now: then the policy chooses
// among those that can.
func (a *ask) assigned() *verdict {
	total := a.route.weights
	if !(total > 0) {
		return nil
	}
	at := a.req.Split * total
	for i := range a.route.conf.Targets {
		w := a.route.conf.Targets[i].Weight
		if at < w {
			if v := &a.verdicts[i]; a.open(v) {
				return v
			}
			return nil
		}
		at -= w
	}
	return nil
}
