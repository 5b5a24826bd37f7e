package gateway

import (
	"cmp"
	"slices"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/upstream"
)

// excludeUnfit leaves those backends out that cannot serve the request: all but the
// one that stores the response it is about, those that do not speak the endpoint,
// and those whose URL cannot hold the client's name of the model.
func (x *exchange) excludeUnfit() error {
	misnamed, cut, sure := false, false, x.countsSurely()
	path := x.request.path
	var unable error
	for i := range x.plan.conf.Backends {
		conf := &x.plan.conf.Backends[i]
		name := conf.Name
		b := x.plan.backends[name]
		switch {
		case x.owner != "" && name != x.owner, x.overrides.target != "" && name != x.overrides.target, sure && !b.Counts(path, x.modelAt(b)):
		case !x.request.reachable(b):
			cut = true
		case x.translates(b, x.modelAt(b)):
			if !x.mayReach(name) {
				break
			}
			err := x.carries(b, conf.DropParams)
			if err == nil {
				continue
			}
			unable = cmp.Or(unable, err)
		case !b.Serves(path) && !x.request.end.Counts: // what it cannot count, the gateway does
		case b.Deploys(path) && x.misnames(name):
			misnamed = true
		default:
			continue
		}
		x.excluded = append(x.excluded, name)
	}
	if len(x.excluded) == 0 || x.plan.reaches(x.route, func(t config.Target) bool { return !slices.Contains(x.excluded, t.Backend) }) {
		return nil
	}
	if cut {
		return errNoBackend
	}
	if unable != nil {
		return uncarried(unable)
	}
	if misnamed {
		return &unknownModelError{model: x.request.parsed.Model}
	}
	return &endpointError{model: x.request.parsed.Model, path: x.request.http.URL.Path}
}

// mayReach reports whether the request may get to a backend.
func (x *exchange) mayReach(backend string) bool {
	return x.plan.reaches(x.route, func(t config.Target) bool { return t.Backend == backend })
}

// countsSurely reports whether tokens are to be counted, and a backend of the
// route is known to do so.
func (x *exchange) countsSurely() bool {
	end := x.request.end
	return end.Counts && (endpoint.InMessages(end.Path) || end.PartOf(endpoint.Google)) && x.plan.reaches(x.route, func(t config.Target) bool {
		b := x.plan.backends[t.Backend]
		return b != nil && b.Serves(x.request.path) && b.Counts(x.request.path, x.modelAt(b))
	})
}

// misnames reports whether the request may get to backend under a name that its
// client made up, and that is none of a deployment.
func (x *exchange) misnames(backend string) bool {
	model := x.request.parsed.Model
	return x.plan.reaches(x.route, func(t config.Target) bool {
		return t.Backend == backend && clientNames(t.Model) && !upstream.DeploymentName(cmp.Or(config.Expand(t.Model, x.route.name, model), model))
	})
}

// clientNames reports whether the model of a target is, in whole or in part, what
// clients name.
func clientNames(model string) bool {
	_, wild := config.Wildcard(model)
	return model == "" || wild
}

// reaches reports whether a request of rt may get to a target that is good, be
// it by a spill.
func (p *plan) reaches(rt *route, good func(config.Target) bool) bool {
	if slices.ContainsFunc(rt.conf.Targets, good) {
		return true
	}
	if long := p.called(rt.conf.ContextFallback); long != nil && slices.ContainsFunc(long.conf.Targets, good) {
		return true
	}
	for _, s := range rt.conf.OnInfeasible {
		if spill := p.called(s.Spill); spill != nil && slices.ContainsFunc(spill.conf.Targets, good) {
			return true
		}
	}
	return false
}
