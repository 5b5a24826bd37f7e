package gateway

import (
	"github.com/pacer-dev/pacer/gateway/limit"
	"github.com/pacer-dev/pacer/internal/tracing"
)

// order is what one request is about: what its client sent, for whom and under which
// configuration, where it may go, and what it is to get. The steps before the first
// attempt fill it in, in their turn; the attempts at it read it. It belongs to the
// goroutine of its exchange, but for what a roundTrip reads of its request.
type order struct {
	g       *Gateway
	setup   *setup // the configuration it began with
	request request

	tenant *tenant
	permit *limit.Permit
	memory holding

	route     *route
	owner     string   // the one backend that stores the response this is about; "" = any
	excluded  []string // backends that cannot serve it
	overrides overrides
	objective objective
	bill      bill

	prompt promptEstimate
	warmth warmth
	speech speech        // the request for backends of another dialect
	span   *tracing.Span // nil = nobody follows it
}

// newExchange is the journey of r, which is t's, under the configuration p.
func (g *Gateway) newExchange(p *setup, t *tenant, r request) *exchange {
	return &exchange{
		order:     order{g: g, setup: p, tenant: t, request: r, memory: holding{budgets: budgets{all: &g.buffered, tenant: t.held}}},
		placement: placement{g: g},
	}
}
