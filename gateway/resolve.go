package gateway

import (
	"slices"
	"strings"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/router"
)

// resolve finds the route of the model, the objective that the headers ask for,
// as far as the key may have it, and the backends that could serve the request.
func (x *exchange) resolve() error {
	if x.request.end.Stored {
		find := x.resolveStored
		if x.request.end.Pinned {
			find = x.resolvePinned
		}
		if err := find(); err != nil {
			return err
		}
		return x.excludeUnfit()
	}
	x.takeDefault()
	model := x.request.parsed.Model
	rt := x.plan.route(model)
	switch {
	case rt != nil && x.tenant.may(rt):
	case model == "":
		return openai.ErrNoModel
	default:
		return &unknownModelError{model: model}
	}
	if x.spills(rt) {
		rt = x.plan.routes[x.bill.spill]
	}
	x.route = rt
	x.tag()
	o, err := parseOverrides(x.request.http.Header)
	if err != nil {
		return err
	}
	if err := x.tenant.grants(rt, o); err != nil {
		return err
	}
	if o.target != "" && !x.plan.reaches(rt, func(t config.Target) bool { return t.Backend == o.target }) {
		return &headerError{header: targetHeader, problem: "names no backend that this route has"}
	}
	x.objective = newObjective(rt, o, x.request.end.Decodes)
	if x.objective.class == router.Batch { // whatever was asked for: batch has no floor
		o.minTPS = new(float64)
	}
	x.overrides = o
	if err := x.resolvePrevious(); err != nil {
		return err
	}
	return x.excludeUnfit()
}

// takeDefault has a request that names no model ask for the one that its endpoint
// has by default, where a route of its key serves that.
func (x *exchange) takeDefault() {
	r := &x.request
	if r.parsed.Model != "" || r.end.Default == "" {
		return
	}
	if rt := x.plan.route(r.end.Default); rt != nil && x.tenant.may(rt) {
		r.parsed.Name(r.end.Default)
	}
}

// plainSteps reports whether path has ids and words alone. The backend, or a proxy
// before it, may clean paths: .. would lead to all that its credential may do.
func plainSteps(path string) bool {
	for step := range strings.SplitSeq(path[1:], "/") {
		if !openai.SaneResponseID(step) {
			return false
		}
	}
	return true
}

// resolvePinned finds the backend that keeps what the key has at a hosted API, such as
// its vector stores: the first that one of its routes leads to, so the same for each
// request, on every replica. Who may name a backend gets that one.
func (x *exchange) resolvePinned() error {
	if !plainSteps(x.request.path) {
		return errUnserved
	}
	o, err := parseOverrides(x.request.http.Header)
	if err != nil {
		return err
	}
	rt, backend, err := x.plan.keeper(x.tenant, o)
	if err != nil {
		return err
	}
	x.route, x.objective.class, x.owner, x.overrides = rt, rt.class, backend, o
	return nil
}

// keeper is the backend that keeps what t has at a hosted API, and the route of t
// that leads there. Who has a key needs allow.account: all who share the backend share
// what its account keeps.
func (p *plan) keeper(t *tenant, o overrides) (rt *route, backend string, err error) {
	for _, b := range p.conf.Backends {
		if !p.backends[b.Name].Keeps() || o.target != "" && o.target != b.Name {
			continue
		}
		is := func(t config.Target) bool { return t.Backend == b.Name }
		for _, r := range p.conf.Routes {
			rt := p.named(r.Models[0])
			if !t.may(rt) || !slices.ContainsFunc(r.Targets, is) {
				continue
			}
			if t.conf != nil && !t.conf.Allow.Account {
				return nil, "", errAccount
			}
			return rt, b.Name, t.grants(rt, o)
		}
	}
	return nil, "", errUnserved
}
