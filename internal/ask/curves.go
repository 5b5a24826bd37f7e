package ask

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/report"
	"github.com/pacer-dev/pacer/internal/spelling"
)

// CurvesQuestion says which curves are asked for, and where. Its PointsQuery
// says at which levels and at which prompt load.
type CurvesQuestion struct {
	api.PointsQuery

	Files  []string // results of benchmarks; none = a gateway or a store
	Admin  string   // URL of an admin port
	Store  string   // URL of a store; "" = that of the configuration
	Config string   // file that names the targets in a store; "" = ask a gateway

	Backend string // "" = all

	// Dial replaces the network; nil means TCP.
	Dial Dial
}

// Curves is the answer of /api/v1/profiles, with where it is from and what the
// routes promise.
type Curves struct {
	From    string   `json:"from"` // URL, store or files
	Targets []Target `json:"targets"`
	Notes   []string `json:"notes,omitempty"` // what was left out, with its line
}

// Target is the curve of one target, and what it rests on.
type Target struct {
	api.Identity
	*api.State // nil = nobody is there who knows
	api.Knowledge
	OutputTokens *api.Number `json:"output_tokens,omitempty"`
	Points       []api.Point `json:"points"`
	Floors       []Floor     `json:"floors"`

	// Line is every level, or many, from 1 to twice the support: what is drawn.
	Line []api.Point `json:"-"`

	Load string `json:"-"` // prompt load that the speeds hold for, in words
	Age  string `json:"-"` // of the newest evidence, in words; "" = none
}

// Floor is what a route promises, and how far the target keeps it by its curve, at the
// prompt load of the answer. A lower bound is where knowledge ends, not speed.
type Floor struct {
	Route             string     `json:"route"`
	MinTPS            api.Number `json:"min_tps"`
	Holds             int        `json:"holds"` // largest n whose TPS meets the floor; 0 = none
	HoldsIsLowerBound bool       `json:"holds_is_lower_bound"`

	// Capacity and Admits are those of the gateway, as in /api/v1/routes: up to how many
	// streams there one of the route is let in, and how many more now. Null in a store
	// or a file, where nobody decides.
	Capacity             *int `json:"capacity"`
	CapacityIsLowerBound bool `json:"capacity_is_lower_bound"`
	Admits               *int `json:"admits"`
	AdmitsIsLowerBound   bool `json:"admits_is_lower_bound"`
}

// measure fills in how far the floors are kept, by the line.
func (t *Target) measure() {
	for i := range t.Floors {
		f := &t.Floors[i]
		last := len(t.Line) - 1
		for j, p := range t.Line {
			if p.TPS >= f.MinTPS {
				f.Holds, f.HoldsIsLowerBound = p.N, j == last
			}
		}
	}
}

// CSV writes one row a point. Unknown is empty.
func (a *Curves) CSV(out io.Writer) error {
	w := csv.NewWriter(out)
	w.Write([]string{"backend", "model", "n", "p", "tps", "low", "aggregate_tps", "stream_seconds", "tokens", "steps", "age_s", "source"})
	for _, t := range a.Targets {
		for _, p := range t.Points {
			row := []string{t.Backend, t.Model, strconv.Itoa(p.N)}
			for _, f := range []api.Number{p.P, p.TPS, p.Low, p.AggregateTPS, p.StreamSeconds, p.Tokens, p.Steps, p.AgeS} {
				row = append(row, report.Cell(f))
			}
			w.Write(append(row, sourceOf(p)))
		}
	}
	w.Flush()
	return w.Error()
}

// sourceOf is where a point is from; "" = unknown.
func sourceOf(p api.Point) string {
	if p.Source == nil {
		return ""
	}
	return *p.Source
}

// Ask asks where the question says.
func (q *CurvesQuestion) Ask(ctx context.Context) (*Curves, error) {
	var answer *Curves
	var err error
	switch {
	case len(q.Files) > 0:
		answer, err = q.fromFiles()
	case q.Config != "":
		answer, err = q.fromStore(ctx)
	default:
		answer, err = q.fromGateway(ctx)
	}
	if err != nil {
		return nil, err
	}
	if q.Backend == "" {
		return answer, nil
	}
	known := answer.Backends()
	answer.Targets = slices.DeleteFunc(answer.Targets, func(t Target) bool { return t.Backend != q.Backend })
	if len(answer.Targets) == 0 {
		return nil, report.Usage(fmt.Errorf("no backend %q; %s", q.Backend, spelling.Meant(q.Backend, known)))
	}
	return answer, nil
}

// Backends are the names of the backends, each once.
func (a *Curves) Backends() []string {
	var names []string
	for _, t := range a.Targets {
		if !slices.Contains(names, t.Backend) {
			names = append(names, t.Backend)
		}
	}
	return names
}
