package ask

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/fleet"
	"github.com/pacer-dev/pacer/internal/benchfile"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/internal/report"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/redisstore"
)

// storeTimeout bounds the question to a store, which answers in milliseconds.
const storeTimeout = 5 * time.Second

// fromFiles shows results of a benchmark as a gateway would believe them.
func (q *CurvesQuestion) fromFiles() (*Curves, error) {
	c, err := benchfile.Load(q.Files...)
	if err != nil {
		return nil, report.Usage(err)
	}
	var points []profiles.PriorPoint
	for _, p := range c.Points {
		points = append(points, profiles.PriorPoint{N: p.N, TPS: p.TPS})
	}
	name := filepath.Base(q.Files[0])
	if more := len(q.Files) - 1; more > 0 {
		name += fmt.Sprintf(" and %d more", more)
	}
	target := profiles.Target{Backend: name, Model: c.Model}
	book := profiles.NewBook(profiles.Options{})
	book.Prior(target, points, 0)
	answer := &Curves{From: strings.Join(q.Files, ", ")}
	t := q.Describe(target, book.Curve(target), nil, time.Now())
	t.Kind, t.Load = c.Format, "at the prompt load of the benchmark"
	for i := range t.Points {
		t.Points[i].P = api.Number(math.NaN())
	}
	answer.Targets = append(answer.Targets, t)
	for _, n := range c.Notes {
		answer.Notes = append(answer.Notes, n.String())
	}
	return answer, nil
}

// fromStore reads the sums of the configured targets, and draws their curves as
// a gateway that starts would.
func (q *CurvesQuestion) fromStore(ctx context.Context) (*Curves, error) {
	cfg, err := config.Load(q.Config)
	if err != nil {
		return nil, report.Usage(err)
	}
	if q.Store != "" {
		if cfg.Store, err = config.ParseStore(q.Store); err != nil {
			return nil, report.Usage(fmt.Errorf("--store: %w", err))
		}
	}
	if cfg.Store.Memory {
		return nil, report.Usage(fmt.Errorf("%s keeps its curves in the memory of the gateway; ask it with --admin %s, or name a store with --store redis://HOST:6379/0", q.Config, DefaultAdmin))
	}
	return q.askStore(ctx, cfg)
}

func (q *CurvesQuestion) askStore(ctx context.Context, cfg *config.Config) (*Curves, error) {
	client, err := redisconn.New(cfg.Store)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	cfg = (&fleet.Discovery{Log: slog.New(slog.DiscardHandler)}).Of(ctx, cfg)
	book := profiles.NewBook(profiles.Options{})
	if err := fleet.Believe(book, cfg); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	addrs := strings.Join(cfg.Store.Addrs, ", ")
	sums, err := redisstore.New(client).Load(ctx, book.Targets())
	if err != nil {
		return nil, fmt.Errorf("the store at %s does not answer (%w); check store: in the configuration, or name another with --store redis://HOST:6379/0", addrs, err)
	}
	now := time.Now()
	book.Apply(now, sums, nil)

	kinds := map[string]string{}
	for _, b := range cfg.Backends {
		kinds[b.Name] = b.Kind
	}
	answer := &Curves{From: "the store at " + addrs, Targets: []Target{}}
	for _, target := range book.Targets() {
		var floors []Floor
		for _, r := range fleet.Topology(cfg).Routes {
			for _, rt := range r.Targets {
				if rt.Target == target && r.SLO.MinTPS > 0 {
					floors = append(floors, Floor{Route: r.Name, MinTPS: api.Number(r.SLO.MinTPS)})
				}
			}
		}
		t := q.Describe(target, book.Curve(target), floors, now)
		t.Kind = kinds[target.Backend]
		answer.Targets = append(answer.Targets, t)
	}
	return answer, nil
}

// Describe is a curve at hand as a gateway would show it, with how far it keeps
// floors.
func (q *CurvesQuestion) Describe(target profiles.Target, c *profiles.Curve, floors []Floor, now time.Time) Target {
	points, output := q.Points(now, c)
	t := Target{
		Identity:  api.Identity{Backend: target.Backend, Model: target.Model, Separate: target.Separate},
		Knowledge: api.KnowledgeOf(c), OutputTokens: output, Points: points, Floors: append([]Floor{}, floors...),
	}
	t.explain(q, now)
	if t.Support != nil {
		drawn := q.PointsQuery
		drawn.Levels = lineLevels(2 * t.Support[1])
		t.Line, _ = drawn.Points(now, c)
	}
	t.measure()
	return t
}

// explain puts into words at which prompt load the speeds hold, and how old
// the evidence is.
func (t *Target) explain(q *CurvesQuestion, now time.Time) {
	switch {
	case !math.IsNaN(q.Rho):
		t.Load = fmt.Sprintf("at %.4g prompt tokens per output token", q.Rho)
	case !math.IsNaN(q.PromptTokens) && t.MeanOutputTokens > 0:
		t.Load = fmt.Sprintf("at %.6g prompt tokens a request, which is %.3g per output token (mean answer: %.4g)",
			q.PromptTokens, q.PromptTokens/float64(t.MeanOutputTokens), float64(t.MeanOutputTokens))
	case !math.IsNaN(q.PromptTokens):
		t.Load = fmt.Sprintf("at %.6g prompt tokens a request: unknown before the length of answers is", q.PromptTokens)
	case t.Rho > 0:
		t.Load = fmt.Sprintf("at the usual prompt load (%.3g prompt tokens per output token)", float64(t.Rho))
	case t.TokensSeen > 0:
		t.Load = "at the usual prompt load, which is none so far: no prompt was read while others decoded"
	default:
		t.Load = "at the usual prompt load, of which nothing is known yet"
	}
	asked := !math.IsNaN(q.Rho) || t.MeanOutputTokens > 0 && !math.IsNaN(q.PromptTokens)
	if asked && (t.Fit == nil || t.Fit.D == 0) {
		t.Load += "; what a prompt costs the others is not known yet, so the load changes nothing"
	}
	if t.UpdatedAt != nil {
		t.Age = report.Ago(max(now.Sub(*t.UpdatedAt), 0))
	}
}

// lineLevels are the levels that a curve is drawn at: all up to a few hundred,
// then evenly in log n, and always the last.
func lineLevels(top int) []int {
	const most = 512
	top = min(top, api.MaxLevel)
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
