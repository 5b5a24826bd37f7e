package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/benchfile"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/redisstore"
)

// storeTimeout bounds the question to a store, which answers in milliseconds.
const storeTimeout = 5 * time.Second

// fromFiles shows results of a benchmark as a gateway would believe them.
func (o *curvesOptions) fromFiles() (*curvesAnswer, error) {
	c, err := benchfile.Load(o.files...)
	if err != nil {
		return nil, usageError{err}
	}
	var points []profiles.PriorPoint
	for _, p := range c.Points {
		points = append(points, profiles.PriorPoint{N: p.N, TPS: p.TPS})
	}
	name := filepath.Base(o.files[0])
	if more := len(o.files) - 1; more > 0 {
		name += fmt.Sprintf(" and %d more", more)
	}
	target := profiles.Target{Backend: name, Model: c.Model}
	book := profiles.NewBook(profiles.Options{})
	book.Prior(target, points)
	answer := &curvesAnswer{From: strings.Join(o.files, ", ")}
	t := o.describe(target, book.Curve(target), time.Now())
	t.Kind, t.load = c.Format, "at the prompt load of the benchmark"
	for i := range t.Points {
		t.Points[i].P = figure(math.NaN())
	}
	answer.Targets = append(answer.Targets, t)
	for _, n := range c.Notes {
		answer.Notes = append(answer.Notes, n.String())
	}
	return answer, nil
}

// fromStore reads the sums of the configured targets, and draws their curves as
// a gateway that starts would.
func (o *curvesOptions) fromStore(ctx context.Context) (*curvesAnswer, error) {
	cfg, err := config.Load(o.config)
	if err != nil {
		return nil, usageError{err}
	}
	if o.store != "" {
		if cfg.Store, err = config.ParseStore(o.store); err != nil {
			return nil, usageError{fmt.Errorf("--store: %w", err)}
		}
	}
	if cfg.Store.Memory {
		return nil, usageError{fmt.Errorf("%s keeps its curves in the memory of the gateway; ask it with --admin %s, or name a store with --store redis://HOST:6379/0", o.config, defaultAdmin)}
	}
	return o.askStore(ctx, cfg)
}

func (o *curvesOptions) askStore(ctx context.Context, cfg *config.Config) (*curvesAnswer, error) {
	client, err := redisconn.New(cfg.Store, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	cfg = (&discovery{log: slog.New(slog.DiscardHandler)}).of(ctx, cfg)
	topo := topology(cfg)
	// Only to tell the book what the configuration believes.
	p := &program{book: profiles.NewBook(profiles.Options{})}
	priors, err := priorsOf(cfg)
	if err != nil {
		return nil, err
	}
	p.believe(plans{cfg: cfg, topo: topo, priors: priors})
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	addrs := strings.Join(cfg.Store.Addrs, ", ")
	sums, err := redisstore.New(client).Load(ctx, p.book.Targets())
	if err != nil {
		return nil, fmt.Errorf("the store at %s does not answer (%w); check store: in the configuration, or name another with --store redis://HOST:6379/0", addrs, err)
	}
	now := time.Now()
	p.book.Apply(now, sums, nil)

	kinds := map[string]string{}
	for _, b := range cfg.Backends {
		kinds[b.Name] = b.Kind
	}
	answer := &curvesAnswer{From: "the store at " + addrs, Targets: []curvesTarget{}}
	for _, target := range p.book.Targets() {
		t := o.describe(target, p.book.Curve(target), now)
		t.Kind = kinds[target.Backend]
		for _, r := range topo.Routes {
			for _, rt := range r.Targets {
				if rt.Target == target && r.SLO.MinTPS > 0 {
					t.Floors = append(t.Floors, curvesFloor{Route: r.Name, MinTPS: figure(r.SLO.MinTPS)})
				}
			}
		}
		t.measure()
		answer.Targets = append(answer.Targets, t)
	}
	return answer, nil
}

// describe is a curve as the API would show it.
func (o *curvesOptions) describe(target profiles.Target, c *profiles.Curve, now time.Time) curvesTarget {
	t := curvesTarget{
		Backend: target.Backend, Model: target.Model,
		Scale: figure(c.Scale()), Margin: figure(c.Margin()), Rho: figure(c.Rho()), TokensSeen: figure(c.Tokens()),
		MeanOutputTokens: figure(c.MeanOutput()), Points: []curvesPoint{}, Floors: []curvesFloor{},
	}
	if !(c.MeanOutput() > 0) {
		t.MeanOutputTokens = figure(math.NaN())
	}
	if !math.IsNaN(o.promptTokens) {
		mean := t.MeanOutputTokens
		t.OutputTokens = &mean
	}
	lo, hi := c.Support()
	if hi > 0 {
		t.Support = &[2]int{lo, hi}
	}
	if f, ok := c.Fit(); ok {
		t.Fit = &curvesFit{figure(f.A), figure(f.B), figure(f.C), figure(f.D)}
	}
	if first := c.TTFT(); first.Known() {
		t.TTFT = &curvesTTFT{BaseS: figure(first.Base), PrefillTokensPerS: figure(1 / first.PerToken)}
		if first.Slots > 0 {
			t.TTFT.Slots = &first.Slots
		}
	}
	if u := c.Updated(); !u.IsZero() {
		u = u.UTC()
		t.UpdatedAt = &u
	}
	t.explain(o, now)
	at := func(n int) curvesPoint { return pointOf(n, o.at(c, n), now) }
	levels := o.levels
	if levels == nil {
		for _, p := range c.Points() {
			levels = append(levels, p.N)
		}
	}
	for _, n := range levels {
		t.Points = append(t.Points, at(n))
	}
	for _, n := range lineLevels(2 * hi) {
		t.line = append(t.line, at(n))
	}
	return t
}

// at is the curve at n and the prompt load that was asked for.
func (o *curvesOptions) at(c *profiles.Curve, n int) profiles.Point {
	switch {
	case !math.IsNaN(o.rho):
		return c.AtRho(n, o.rho)
	case math.IsNaN(o.promptTokens):
		return c.At(n)
	case c.MeanOutput() > 0:
		return c.AtRho(n, o.promptTokens/c.MeanOutput())
	}
	p := c.At(n)
	p.P, p.TPS, p.Low, p.Source = math.NaN(), math.NaN(), math.NaN(), profiles.Unknown
	return p
}

func pointOf(n int, p profiles.Point, now time.Time) curvesPoint {
	out := curvesPoint{
		N: n, P: figure(p.P), TPS: figure(p.TPS), Low: figure(p.Low), AggregateTPS: figure(float64(n) * p.TPS),
		StreamSeconds: figure(p.StreamSeconds), Tokens: figure(p.Tokens), Steps: figure(p.Steps), AgeS: figure(math.NaN()),
	}
	if !p.Updated.IsZero() {
		out.AgeS = figure(max(now.Sub(p.Updated), 0).Seconds())
	}
	if p.Source != profiles.Unknown {
		out.Source = p.Source.String()
	}
	return out
}

// explain puts into words at which prompt load the speeds hold, and how old
// the evidence is.
func (t *curvesTarget) explain(o *curvesOptions, now time.Time) {
	switch {
	case !math.IsNaN(o.rho):
		t.load = fmt.Sprintf("at %.4g prompt tokens per output token", o.rho)
	case !math.IsNaN(o.promptTokens) && t.MeanOutputTokens > 0:
		t.load = fmt.Sprintf("at %.6g prompt tokens a request, which is %.3g per output token (mean answer: %.4g)",
			o.promptTokens, o.promptTokens/float64(t.MeanOutputTokens), float64(t.MeanOutputTokens))
	case !math.IsNaN(o.promptTokens):
		t.load = fmt.Sprintf("at %.6g prompt tokens a request: unknown before the length of answers is", o.promptTokens)
	case t.Rho > 0:
		t.load = fmt.Sprintf("at the usual prompt load (%.3g prompt tokens per output token)", float64(t.Rho))
	case t.TokensSeen > 0:
		t.load = "at the usual prompt load, which is none so far: no prompt was read while others decoded"
	default:
		t.load = "at the usual prompt load, of which nothing is known yet"
	}
	asked := !math.IsNaN(o.rho) || t.MeanOutputTokens > 0 && !math.IsNaN(o.promptTokens)
	if asked && (t.Fit == nil || t.Fit.D == 0) {
		t.load += "; what a prompt costs the others is not known yet, so the load changes nothing"
	}
	if t.UpdatedAt != nil {
		t.age = ago(max(now.Sub(*t.UpdatedAt), 0))
	}
}

// lineLevels are the levels that a curve is drawn at: all up to a few hundred,
// then evenly in log n, and always the last.
func lineLevels(top int) []int {
	const most = 512
	top = min(top, maxAsked)
	var levels []int
	if top <= most {
		for n := 1; n <= top; n++ {
			levels = append(levels, n)
		}
		return levels
	}
	for i := range most {
		n := int(math.Round(math.Pow(float64(top), float64(i)/(most-1))))
		if len(levels) == 0 || n > levels[len(levels)-1] {
			levels = append(levels, n)
		}
	}
	return levels
}
