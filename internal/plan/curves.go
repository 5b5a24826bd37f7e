package plan

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/arena"
	"github.com/pacer-dev/pacer/internal/ask"
	"github.com/pacer-dev/pacer/internal/presets"
	"github.com/pacer-dev/pacer/internal/report"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/sim"
)

// truth is what a plan takes for the truth about a backend.
type truth struct {
	model  sim.Model // the speed of n streams by themselves, and the cost of a prompt token
	slots  int       // sequences that run together; the others wait
	lo, hi int       // levels that are known; beyond them the law is continued

	// told is what the gateway believes at the start: what the configuration
	// says, or, where a gateway has learned, what it has.
	told       []profiles.PriorPoint
	promptCost float64 // seconds of a prompt token; 0 = nobody says
	learned    bool

	rests  string // what the speeds rest on, in words
	prompt string // and what the cost of a prompt does
}

// usualSlots is the number of sequences that engines run together unless told
// otherwise: vLLM's max_num_seqs.
const usualSlots = 256

// learnCurves finds the curve of each backend: what a gateway or a store has
// learned, else the prior of the configuration.
func (p *plan) learnCurves(ctx context.Context, q *Question) error {
	learned, err := q.learnedCurves(ctx)
	if err != nil {
		return err
	}
	if err := p.takeCurves(learned); err != nil {
		return report.Usage(err)
	}
	return nil
}

// takeCurves finds them where learned is what was learned; nil = nothing.
func (p *plan) takeCurves(learned *ask.Curves) error {
	p.curves = map[string]truth{}
	var missing []string
	for _, b := range p.cfg.Backends {
		if !p.used(b.Name) {
			continue
		}
		c, ok := p.learnedCurve(b.Name, learned)
		if !ok {
			c, ok = p.priorCurve(b)
		}
		if !ok {
			missing = append(missing, b.Name)
			continue
		}
		c.slots = max(c.slots, 1)
		p.curves[b.Name] = c
	}
	if len(missing) == 0 {
		return nil
	}
	how := "give each a prior: in " + p.from + " (the name of a published curve, as pacer sim --list prints them; points such as { 1: 52, 8: 47, 64: 31 }; or { file: bench.json })"
	if learned == nil {
		how += ", or name a gateway that has learned them with --admin " + ask.DefaultAdmin
	}
	of := strings.Join(missing, ", ")
	if learned != nil {
		of += " (" + learned.From + " has learned none; it knows " + strings.Join(learned.Backends(), ", ") + ")"
	}
	return fmt.Errorf("no curve is known of %s; %s", of, how)
}

// used tells whether a route has a target on the backend.
func (p *plan) used(backend string) bool {
	return slices.ContainsFunc(p.cfg.Routes, func(r config.Route) bool {
		return slices.ContainsFunc(r.Targets, func(t config.Target) bool { return t.Backend == backend })
	})
}

// learnedCurves asks the gateway or the store for its curves without prompts;
// nil when neither is named.
func (q *Question) learnedCurves(ctx context.Context) (*ask.Curves, error) {
	asked := ask.CurvesQuestion{PointsQuery: api.PointsQuery{Rho: 0, PromptTokens: math.NaN()}, Dial: q.Dial}
	switch {
	case q.Admin != "":
		asked.Admin = q.Admin
	case q.Store != "":
		asked.Config, asked.Store = q.Config, q.Store
	default:
		return nil, nil
	}
	return asked.Ask(ctx)
}

// learnedCurve is the slowest of what was learned of the models of a backend:
// they share its batch.
func (p *plan) learnedCurve(backend string, answer *ask.Curves) (truth, bool) {
	if answer == nil {
		return truth{}, false
	}
	var out truth
	slowest := map[int]float64{}
	var tokens float64
	var newest time.Duration = -1
	found := 0
	for _, t := range answer.Targets {
		if t.Backend != backend && partOf(t.Backend, t.Model) != backend || t.Support == nil || !(t.TokensSeen > 0) {
			continue
		}
		if out.lo == 0 || t.Support[0] < out.lo {
			out.lo = t.Support[0]
		}
		out.hi = max(out.hi, t.Support[1])
		for _, point := range spread(t.Line, t.Support[0], t.Support[1]) {
			tps := float64(point.TPS)
			if old, twice := slowest[point.N]; !twice || tps < old {
				slowest[point.N] = tps
			}
		}
		if d := promptCost(&t); d > out.model.D {
			out.model.D = d
		}
		if t.TTFT != nil && t.TTFT.Slots != nil {
			out.slots = *t.TTFT.Slots
		}
		tokens += float64(t.TokensSeen)
		if t.UpdatedAt != nil {
			if age := max(time.Since(*t.UpdatedAt), 0); newest < 0 || age < newest {
				newest = age
			}
		}
		found++
	}
	if len(slowest) == 0 {
		return truth{}, false
	}
	for n, tps := range slowest {
		out.model.Table = append(out.model.Table, sim.Point{N: n, TPS: tps})
	}
	slices.SortFunc(out.model.Table, func(a, b sim.Point) int { return a.N - b.N })
	out.learned = true
	out.rests = fmt.Sprintf("learned from %s tokens at %s, n = %d to %d", report.Count(tokens), answer.From, out.lo, out.hi)
	if newest >= 0 {
		out.rests += ", the newest " + report.Ago(newest) + " old"
	}
	if found > 1 {
		out.rests += fmt.Sprintf("; the slowest of its %d models", found)
	}
	out.prompt = "as learned"
	p.complete(&out)
	return out, true
}

// promptCost is the seconds that a prompt token takes from those who decode, or
// from its own first token; 0 when unknown.
func promptCost(t *ask.Target) float64 {
	if t.Fit != nil && t.Fit.D > 0 {
		return float64(t.Fit.D) / max(float64(t.Scale), 0.01)
	}
	if t.TTFT != nil && t.TTFT.PrefillTokensPerS > 0 {
		return 1 / float64(t.TTFT.PrefillTokensPerS)
	}
	return 0
}

// spread takes of a line what a table needs: every level up to 8, then eight an
// octave, within the support.
func spread(line []api.Point, lo, hi int) []api.Point {
	var out []api.Point
	next := 0.0
	for _, p := range line {
		if p.N < lo || p.N > hi || !(p.TPS > 0) {
			continue
		}
		if n := float64(p.N); n <= 8 || n >= next || p.N == hi {
			out = append(out, p)
			next = n * math.Pow(2, 1.0/8)
		}
	}
	return out
}

// priorCurve is what the configuration says.
func (p *plan) priorCurve(b config.Backend) (truth, bool) {
	var out truth
	if b.Prior.Preset != "" {
		preset, _ := presets.Lookup(b.Prior.Preset) // the configuration was checked
		out.model = arena.Published(preset)
		out.promptCost = out.model.D
		out.rests = "the published curve " + preset.Name
		out.prompt = "as its published first tokens"
	} else {
		for n, tps := range b.Prior.Points {
			out.model.Table = append(out.model.Table, sim.Point{N: n, TPS: tps})
		}
		slices.SortFunc(out.model.Table, func(a, b sim.Point) int { return a.N - b.N })
		out.rests = fmt.Sprintf("the %d points of its prior", len(out.model.Table))
	}
	if len(out.model.Table) == 0 {
		return truth{}, false
	}
	out.lo, out.hi = out.model.Table[0].N, out.model.Table[len(out.model.Table)-1].N
	out.rests += fmt.Sprintf(", n = %d to %d; no token was seen", out.lo, out.hi)
	for _, point := range out.model.Table {
		out.told = append(out.told, profiles.PriorPoint{N: point.N, TPS: point.TPS})
	}
	p.complete(&out)
	return out, true
}

// complete fills in what a curve does not tell.
func (p *plan) complete(c *truth) {
	switch {
	case c.slots > 0:
	case p.slots > 0:
		c.slots = p.slots
	default:
		c.slots = max(usualSlots, c.hi)
	}
	switch {
	case c.model.D > 0:
	case p.prefill > 0:
		c.model.D, c.prompt = 1/p.prefill, "as --prefill says"
	default:
		c.model.D, c.prompt = c.model.StepSeconds(1, 0)/publishedRatio(), "assumed, as published curves of that speed have it; --prefill says better"
	}
}

// publishedRatio is how many prompt tokens an engine reads in the time of one
// decode step of one sequence: the median of the published curves.
func publishedRatio() float64 {
	var ratios []float64
	for _, p := range presets.List() {
		m := arena.Published(p)
		ratios = append(ratios, m.StepSeconds(1, 0)/m.D)
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

// tps is the speed of one of n streams when each output token comes with rho
// prompt tokens of others.
func (c *truth) tps(n int, rho float64) float64 {
	return 1 / c.model.StepSeconds(n, float64(n)*rho)
}

// believed is what a gateway with this curve in its memory starts from.
func (c *truth) believed(rho float64) []profiles.PriorPoint {
	if !c.learned {
		return c.told
	}
	var points []profiles.PriorPoint
	for _, point := range c.model.Table {
		points = append(points, profiles.PriorPoint{N: point.N, TPS: c.tps(point.N, rho)})
	}
	return points
}
