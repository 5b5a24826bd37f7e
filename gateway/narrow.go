package gateway

import "slices"

// narrow leaves those backends out that cannot serve the request: all but the
// one that keeps the answer it is about, and those that do not speak the
// endpoint.
func (x *exchange) narrow() error {
	for i := range x.plan.conf.Backends {
		name := x.plan.conf.Backends[i].Name
		if x.pinned != "" && name != x.pinned || !x.plan.backends[name].Serves(x.path) {
			x.excluded = append(x.excluded, name)
		}
	}
	if len(x.excluded) > 0 && !x.plan.reaches(x.route, func(name string) bool { return !slices.Contains(x.excluded, name) }) {
		return &endpointError{model: x.req.Model, path: x.path, counts: x.end.counts}
	}
	return nil
}

// reaches reports whether a request of rt may get to a backend that is good, be
// it by a spill.
func (p *plan) reaches(rt *route, good func(backend string) bool) bool {
	has := func(r *route) bool {
		for _, t := range r.conf.Targets {
			if good(t.Backend) {
				return true
			}
		}
		return false
	}
	if has(rt) {
		return true
	}
	for _, s := range rt.conf.OnInfeasible {
		if spill := p.routes[s.Spill]; s.Spill != "" && spill != nil && has(spill) {
			return true
		}
	}
	return false
}
