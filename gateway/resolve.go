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
func (o *order) resolve() error {
	if o.request.end.Stored {
		find := o.resolveStored
		if o.request.end.Pinned {
			find = o.resolvePinned
		}
		if err := find(); err != nil {
			return err
		}
		return o.excludeUnfit()
	}
	o.takeDefault()
	model := o.request.parsed.Model
	rt := o.setup.route(model)
	switch {
	case rt != nil && o.tenant.may(rt):
	case model == "":
		return openai.ErrNoModel
	default:
		return &unknownModelError{model: model}
	}
	if err := o.reserve(rt); err != nil {
		return err
	}
	if o.spills(rt) {
		rt = o.setup.routes[o.bill.spill]
	}
	o.route = rt
	o.tag()
	asked, err := parseOverrides(o.request.http.Header)
	if err != nil {
		return err
	}
	if err := o.tenant.grants(rt, asked); err != nil {
		return err
	}
	if asked.target != "" && !o.setup.reaches(rt, func(t config.Target) bool { return t.Backend == asked.target }) {
		return &headerError{header: targetHeader, problem: "names no backend that this route has"}
	}
	o.objective = newObjective(rt, asked, o.request.end.Decodes)
	if o.objective.class == router.Batch { // whatever was asked for: batch has no floor
		asked.minTPS = new(float64)
	}
	o.overrides = asked
	if err := o.resolvePrevious(); err != nil {
		return err
	}
	return o.excludeUnfit()
}

// takeDefault has a request that names no model ask for the one that its endpoint
// has by default, where a route of its key serves that.
func (o *order) takeDefault() {
	r := &o.request
	if r.parsed.Model != "" || r.end.Default == "" {
		return
	}
	if rt := o.setup.route(r.end.Default); rt != nil && o.tenant.may(rt) {
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
func (o *order) resolvePinned() error {
	if !plainSteps(o.request.path) {
		return errUnserved
	}
	asked, err := parseOverrides(o.request.http.Header)
	if err != nil {
		return err
	}
	rt, backend, err := o.setup.keeper(o.tenant, asked)
	if err != nil {
		return err
	}
	o.route, o.objective.class, o.owner, o.overrides = rt, rt.class, backend, asked
	return nil
}

// keeper is the backend that keeps what t has at a hosted API, and the route of t
// that leads there. Who has a key needs allow.account: all who share the backend share
// what its account keeps.
func (p *setup) keeper(t *tenant, o overrides) (rt *route, backend string, err error) {
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
