package ask

import (
	"context"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/report"
)

// fromGateway asks the admin port: for the points, for the line between them,
// and for what the routes promise.
func (q *CurvesQuestion) fromGateway(ctx context.Context) (*Curves, error) {
	g, err := newAdminPort(q.Admin, q.Dial)
	if err != nil {
		return nil, report.Usage(err)
	}
	g.ask, g.otherwise = "fewer levels with --n", ", or read the store with --config FILE"
	var known, lines api.Profiles
	if err := g.get(ctx, "/api/v1/profiles", q.query(q.Levels), &known); err != nil {
		return nil, err
	}
	var routes api.Routes
	if err := g.get(ctx, "/api/v1/routes", nil, &routes); err != nil {
		return nil, err
	}
	top := 0
	for _, t := range known.Targets {
		if t.Support != nil && (q.Backend == "" || t.Backend == q.Backend) {
			top = max(top, 2*t.Support[1])
		}
	}
	if top > 0 {
		if err := g.get(ctx, "/api/v1/profiles", q.query(lineLevels(top)), &lines); err != nil {
			return nil, err
		}
	}
	answer := &Curves{From: g.base}
	for i := range known.Targets {
		answer.Targets = append(answer.Targets, q.targetOf(&known.Targets[i], lines.Targets, routes.Routes))
	}
	return answer, nil
}

// targetOf is t with its line and the floors of its routes.
func (q *CurvesQuestion) targetOf(t *api.Target, lines []api.Target, routes []api.Route) Target {
	out := Target{
		Identity: t.Identity, State: &t.State, Knowledge: t.Knowledge, OutputTokens: t.OutputTokens,
		Points: append([]api.Point{}, t.Points...), Floors: []Floor{},
	}
	for _, r := range routes {
		for _, rt := range r.Targets {
			if r.MinTPS > 0 && rt.Backend == t.Backend && rt.Model == t.Model {
				out.Floors = append(out.Floors, Floor{
					Route: r.Model, MinTPS: r.MinTPS, Capacity: rt.Capacity, CapacityIsLowerBound: rt.CapacityIsLowerBound,
					Admits: rt.Admits, AdmitsIsLowerBound: rt.AdmitsIsLowerBound,
				})
			}
		}
	}
	for _, l := range lines {
		if l.Backend == t.Backend && l.Model == t.Model && t.Support != nil {
			out.Line = slices.DeleteFunc(l.Points, func(p api.Point) bool { return p.N > 2*t.Support[1] })
		}
	}
	out.explain(q, time.Now())
	out.measure()
	return out
}

// query asks for levels at the prompt load of the options.
func (q *CurvesQuestion) query(levels []int) url.Values {
	v := url.Values{}
	if levels != nil {
		words := make([]string, len(levels))
		for i, n := range levels {
			words[i] = strconv.Itoa(n)
		}
		v.Set("n", strings.Join(words, ","))
	}
	if !math.IsNaN(q.Rho) {
		v.Set("rho", strconv.FormatFloat(q.Rho, 'g', -1, 64))
	}
	if !math.IsNaN(q.PromptTokens) {
		v.Set("prompt_tokens", strconv.FormatFloat(q.PromptTokens, 'g', -1, 64))
	}
	return v
}
