package ask

import (
	"context"
	"slices"

	"github.com/pacer-dev/pacer/api"
)

// tellApart puts, for each candidate of d that is out of service, what its backend's
// state says in the place of the reason, whose word is the same for all states. Where
// the gateway does not tell, the reason stays.
func (g *adminPort) tellApart(ctx context.Context, d *api.Decision) {
	out := func(c api.Candidate) bool { return c.Reason == "down" }
	var known api.Profiles
	if !slices.ContainsFunc(d.Candidates, out) || g.get(ctx, "/api/v1/profiles", nil, &known) != nil {
		return
	}
	for i := range d.Candidates {
		c := &d.Candidates[i]
		for j := range known.Targets {
			if t := &known.Targets[j]; out(*c) && t.Backend == c.Backend {
				c.Reason = stateOf(t)
			}
		}
	}
}

// stateOf says why a target that takes nobody is out of service.
func stateOf(t *api.Target) string {
	switch kind := text(t.Cause.Kind); {
	case kind == "backend_down" || kind == "loading":
		return text(t.Cause.Cause)
	case t.Breaker == "open" && t.LastError != nil:
		return "its breaker is open: " + t.LastError.Message
	case t.Breaker == "open":
		return "its breaker is open"
	case t.Health == "loading":
		return "its model is loading"
	case t.Health == "down":
		return "down"
	}
	return "out of service a moment ago"
}
