package gateway

import (
	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/router"
)

// resolve finds the route of the model, the objective that the headers ask for,
// as far as the key may have it, and the backends that could serve the request.
func (x *exchange) resolve() error {
	if x.request.end.Stored {
		if err := x.resolveStored(); err != nil {
			return err
		}
		return x.excludeUnfit()
	}
	model := x.request.parsed.Model
	rt := x.plan.route(model)
	switch {
	case rt != nil && x.tenant.may(rt):
	case model == "":
		return openai.ErrNoModel
	default:
		return &unknownModelError{model: model}
	}
	x.route = rt
	o, err := parseOverrides(x.request.http.Header)
	if err != nil {
		return err
	}
	if err := x.tenant.grants(rt, o); err != nil {
		return err
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
