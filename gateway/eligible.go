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
func (o *order) excludeUnfit() error {
	misnamed, cut, sure := false, false, o.countsSurely()
	path := o.request.path
	var unable error
	for i := range o.setup.conf.Backends {
		conf := &o.setup.conf.Backends[i]
		name := conf.Name
		b := o.setup.backends[name]
		switch {
		case o.owner != "" && name != o.owner, o.overrides.target != "" && name != o.overrides.target, sure && !b.Counts(path, o.modelAt(b)):
		case !o.request.reachable(b):
			cut = true
		case o.translates(b, o.modelAt(b)):
			if !o.mayReach(name) {
				break
			}
			err := o.carries(b, conf.DropParams)
			if err == nil {
				continue
			}
			unable = cmp.Or(unable, err)
		case !b.Serves(path) && !o.request.end.Counts: // what it cannot count, the gateway does
		case b.Deploys(path) && o.misnames(name):
			misnamed = true
		default:
			continue
		}
		o.excluded = append(o.excluded, name)
	}
	if len(o.excluded) == 0 || o.setup.reaches(o.route, func(t config.Target) bool { return !slices.Contains(o.excluded, t.Backend) }) {
		return nil
	}
	if cut {
		return errNoBackend
	}
	if unable != nil {
		return uncarried(unable)
	}
	if misnamed {
		return &unknownModelError{model: o.request.parsed.Model}
	}
	return &endpointError{model: o.request.parsed.Model, path: o.request.http.URL.Path}
}

// mayReach reports whether the request may get to a backend.
func (o *order) mayReach(backend string) bool {
	return o.setup.reaches(o.route, func(t config.Target) bool { return t.Backend == backend })
}

// countsSurely reports whether tokens are to be counted, and a backend of the
// route is known to do so.
func (o *order) countsSurely() bool {
	end := o.request.end
	return end.Counts && (endpoint.InMessages(end.Path) || end.PartOf(endpoint.Google)) && o.setup.reaches(o.route, func(t config.Target) bool {
		b := o.setup.backends[t.Backend]
		return b != nil && b.Serves(o.request.path) && b.Counts(o.request.path, o.modelAt(b))
	})
}

// misnames reports whether the request may get to backend under a name that its
// client made up, and that is none of a deployment.
func (o *order) misnames(backend string) bool {
	model := o.request.parsed.Model
	return o.setup.reaches(o.route, func(t config.Target) bool {
		return t.Backend == backend && clientNames(t.Model) && !upstream.DeploymentName(cmp.Or(config.Expand(t.Model, o.route.name, model), model))
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
func (p *setup) reaches(rt *route, good func(config.Target) bool) bool {
	if slices.ContainsFunc(rt.conf.Targets, good) {
		return true
	}
	if long := p.called(rt.conf.ContextFallback); long != nil && slices.ContainsFunc(long.conf.Targets, good) {
		return true
	}
	return slices.ContainsFunc(rt.conf.OnInfeasible, func(s config.Step) bool {
		spill := p.called(s.Spill)
		return spill != nil && slices.ContainsFunc(spill.conf.Targets, good)
	})
}
