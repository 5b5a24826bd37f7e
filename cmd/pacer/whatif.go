package main

import (
	"context"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/plan"
	"github.com/pacer-dev/pacer/profiles"
)

// plan plays what the admin port is asked.
func (p *program) plan(ctx context.Context, q api.PlanQuestion, offered map[string]float64, progress func(share float64)) (*api.Plan, error) {
	curves := map[profiles.Target]*profiles.Curve{}
	for _, t := range p.book.Targets() {
		curves[t] = p.book.Curve(t)
	}
	w := plan.WhatIf{PlanQuestion: q, Config: p.fleet.Config(), Curves: curves, Offered: offered}
	return w.Answer(ctx, progress)
}
