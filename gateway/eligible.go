package gateway

import (
	"slices"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/upstream"
)

// excludeUnfit leaves those backends out that cannot serve the request: all but the
// one that stores the response it is about, those that do not speak the endpoint,
// and those whose URL cannot hold the client's name of the model.
func (x *exchange) excludeUnfit() error {
	misnamed, sure := false, x.countsSurely()
	for i := range x.plan.conf.Backends {
		name := x.plan.conf.Backends[i].Name
		b := x.plan.backends[name]
		switch {
		case x.owner != "" && name != x.owner, !b.Serves(x.request.path), sure && !b.Counts():
		case b.Deploys(x.request.path) && !upstream.DeploymentName(x.request.parsed.Model) && x.plan.passesName(x.route, name):
			misnamed = true
		default:
			continue
		}
		x.excluded = append(x.excluded, name)
	}
	if len(x.excluded) == 0 || x.plan.reaches(x.route, func(t config.Target) bool { return !slices.Contains(x.excluded, t.Backend) }) {
		return nil
	}
	if misnamed {
		return &unknownModelError{model: x.request.parsed.Model}
	}
	return &endpointError{model: x.request.parsed.Model, path: x.request.http.URL.Path, counts: x.request.end.Counts}
}

// countsSurely reports whether tokens are to be counted, and a backend of the
// route is known to do so.
func (x *exchange) countsSurely() bool {
	return x.request.end.Counts && x.plan.reaches(x.route, func(t config.Target) bool {
		b := x.plan.backends[t.Backend]
		return b != nil && b.Counts()
	})
}

// passesName reports whether a request of rt may get to backend under the name
// that its client gave the model.
func (p *plan) passesName(rt *route, backend string) bool {
	return p.reaches(rt, func(t config.Target) bool { return t.Backend == backend && t.Model == "" })
}

// reaches reports whether a request of rt may get to a target that is good, be
// it by a spill.
func (p *plan) reaches(rt *route, good func(config.Target) bool) bool {
	if slices.ContainsFunc(rt.conf.Targets, good) {
		return true
	}
	for _, s := range rt.conf.OnInfeasible {
		if spill := p.routes[s.Spill]; s.Spill != "" && spill != nil && slices.ContainsFunc(spill.conf.Targets, good) {
			return true
		}
	}
	return false
}
