package main

import (
	"context"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fromGateway asks the admin port: for the points, for the line between them,
// and for what the routes promise.
func (o *curvesOptions) fromGateway(ctx context.Context) (*curvesAnswer, error) {
	g, err := newAdminPort(o.admin, o.dial)
	if err != nil {
		return nil, usageError{err}
	}
	g.ask, g.otherwise = "fewer levels with --n", ", or read the store with --config FILE"
	answer := &curvesAnswer{}
	if err := g.get(ctx, "/api/v1/profiles", o.query(o.levels), answer); err != nil {
		return nil, err
	}
	var routes struct {
		Routes []struct {
			Model   string  `json:"model"`
			MinTPS  *figure `json:"min_tps"`
			Targets []struct {
				Backend string `json:"backend"`
				Model   string `json:"model"`
			} `json:"targets"`
		} `json:"routes"`
	}
	if err := g.get(ctx, "/api/v1/routes", nil, &routes); err != nil {
		return nil, err
	}
	top := 0
	for _, t := range answer.Targets {
		if t.Support != nil && (o.backend == "" || t.Backend == o.backend) {
			top = max(top, 2*t.Support[1])
		}
	}
	var lines curvesAnswer
	if top > 0 {
		if err := g.get(ctx, "/api/v1/profiles", o.query(lineLevels(top)), &lines); err != nil {
			return nil, err
		}
	}
	answer.From = g.base
	for i := range answer.Targets {
		t := &answer.Targets[i]
		if t.Points == nil {
			t.Points = []curvesPoint{}
		}
		t.Floors = []curvesFloor{}
		for _, r := range routes.Routes {
			for _, rt := range r.Targets {
				if r.MinTPS != nil && *r.MinTPS > 0 && rt.Backend == t.Backend && rt.Model == t.Model {
					t.Floors = append(t.Floors, curvesFloor{Route: r.Model, MinTPS: *r.MinTPS})
				}
			}
		}
		for _, l := range lines.Targets {
			if l.Backend == t.Backend && l.Model == t.Model && t.Support != nil {
				t.line = slices.DeleteFunc(l.Points, func(p curvesPoint) bool { return p.N > 2*t.Support[1] })
			}
		}
		t.explain(o, time.Now())
		t.measure()
	}
	return answer, nil
}

// query asks for levels at the prompt load of the options.
func (o *curvesOptions) query(levels []int) url.Values {
	q := url.Values{}
	if levels != nil {
		words := make([]string, len(levels))
		for i, n := range levels {
			words[i] = strconv.Itoa(n)
		}
		q.Set("n", strings.Join(words, ","))
	}
	if !math.IsNaN(o.rho) {
		q.Set("rho", strconv.FormatFloat(o.rho, 'g', -1, 64))
	}
	if !math.IsNaN(o.promptTokens) {
		q.Set("prompt_tokens", strconv.FormatFloat(o.promptTokens, 'g', -1, 64))
	}
	return q
}
