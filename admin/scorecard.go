package admin

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/internal/spelling"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/usage"
)

// scoreQuery is what of the scorecard is asked for.
type scoreQuery struct {
	model string // "" = every route
	n     int    // 0 = that of the busiest target
}

// serveScorecard answers GET /api/v1/scorecard.
func (p *port) serveScorecard(w http.ResponseWriter, r *http.Request) {
	q, ok := p.scoreQuery(w, r)
	if !ok {
		return
	}
	now := time.Now()
	word, replicas := p.replicas(now, history.Hour)
	answer := api.Scorecard{
		Time: now.UTC(), Window: history.Hour.String(), WindowS: p.o.Metrics.History().Reach(now, history.Hour).Seconds(),
		Replica: word, Replicas: replicas, Routes: []api.ScoredRoute{},
	}
	s := p.scorer(r.Context(), now, &answer)
	for _, state := range p.o.Router.Routes(now) {
		if q.model == "" || state.Route.Name == q.model {
			answer.Routes = append(answer.Routes, s.route(state, q.n))
		}
	}
	send(w, http.StatusOK, answer)
}

// scoreQuery reads the query; false = the request was answered.
func (p *port) scoreQuery(w http.ResponseWriter, r *http.Request) (q scoreQuery, ok bool) {
	values, ok := queryOf(w, r)
	if !ok {
		return q, false
	}
	if len(values["model"]) > 1 {
		badQuery(w, "model", "model: is given more than once")
		return q, false
	}
	if q.n, ok = wholeOf(w, values, "n", 0, api.MaxLevel); !ok {
		return q, false
	}
	if asked := values.Get("model"); asked != "" {
		if q.model = p.o.Config().RouteName(asked); q.model == "" {
			fail(w, http.StatusNotFound, "model_not_found", fmt.Sprintf("no route serves the model %.200q; %s", asked, spelling.Meant(asked, p.o.Config().RouteNames())))
			return q, false
		}
	}
	return q, true
}

// scorer is what the scores of one answer are made of.
type scorer struct {
	port  *port
	now   time.Time
	loads map[string]router.BackendLoad
	used  map[[2]string]usage.Sums // by backend and model
	named map[[2]string]bool       // targets that name their model
}

// scorer looks up what scores are made of, and says in answer of which hours and
// replicas the usage is.
func (p *port) scorer(ctx context.Context, now time.Time, answer *api.Scorecard) *scorer {
	s := &scorer{port: p, now: now, loads: map[string]router.BackendLoad{}, used: map[[2]string]usage.Sums{}, named: map[[2]string]bool{}}
	for _, l := range p.o.Router.Loads() {
		s.loads[l.Backend] = l
	}
	for _, t := range p.o.Book.Targets() {
		s.named[[2]string{t.Backend, t.Model}] = t.Model != ""
	}
	from, to := usage.HourOf(now)-1, usage.HourOf(now)+1
	answer.UsageFrom, answer.UsageTo, answer.UsageReplica = from.Start(), to.Start(), thisReplica
	if p.o.Usage == nil {
		return s
	}
	cells, all := p.o.Usage(ctx, from, to)
	if all {
		answer.UsageReplica = "all"
	}
	for _, row := range usage.Rows(cells, []string{"backend", "model"}) {
		s.used[[2]string{row.Backend, row.Model}] = row.Sums
	}
	return s
}

// route is one route, its best target first. n = 0 is that of the busiest.
func (s *scorer) route(state router.RouteState, n int) api.ScoredRoute {
	r := state.Route
	floored := r.SLO.MinTPS > 0 && r.Class == router.Interactive
	out := api.ScoredRoute{Model: r.Name, MinTPS: api.Unknown(), N: max(n, 1), Targets: []api.Score{}}
	if floored {
		out.MinTPS = api.Number(r.SLO.MinTPS)
	}
	var mix usage.Sums
	for _, t := range r.Targets {
		mix.Add(s.sums(t.Target))
		if n == 0 {
			out.N = max(out.N, inFlightOf(s.loads[t.Backend], t.Target).N)
		}
	}
	for i, t := range r.Targets {
		score := s.target(t.Target, out.N, mix)
		if floored {
			full := api.SpeedAt(s.port.o.Book.Curve(t.Target), state.Targets[i].Capacity)
			full.NIsLowerBound = state.Targets[i].CapacityLowerBound
			score.Full = &full
		}
		out.Targets = append(out.Targets, score)
	}
	out.RankedBy = rank(out.Targets)
	return out
}

// target is one target at n. mix is what all targets of its route used.
func (s *scorer) target(t profiles.Target, n int, mix usage.Sums) api.Score {
	p, c, load := s.port, s.port.o.Book.Curve(t), s.loads[t.Backend]
	health, _ := healthOf(load)
	out := api.Score{
		Backend: t.Backend, Model: t.Model, Kind: p.settings().backends[t.Backend].Kind, Health: health,
		AtN: api.SpeedAt(c, n), Now: api.SpeedAt(c, inFlightOf(load, t).N), CurveTokens: api.Number(c.Tokens()),
		Window: s.window(t.Backend), Usage: s.usage(t, mix),
		TokensPerByte: api.Unknown(), TextBytesPerS: api.Unknown(),
	}
	if p.o.BytesPerToken != nil {
		if bytes := p.o.BytesPerToken(t); bytes > 0 {
			out.TokensPerByte = api.Number(1 / bytes)
			out.TextBytesPerS = out.AtN.TPS * api.Number(bytes)
		}
	}
	return out
}

// window is what the history has of a backend.
func (s *scorer) window(backend string) api.ScoreWindow {
	ring := s.port.o.Metrics.History()
	f := ring.Figures(s.now, ring.Backend(backend), history.Hour)
	return api.ScoreWindow{
		Requests: f.Offered(), Failed: api.Number(float64(f.Results[history.Failed]) / float64(f.Offered())), // NaN of none
		TPS:        api.TPSQuantiles{P10: api.Brief(f.TPS.Quantile(0.1)), P50: api.Brief(f.TPS.Quantile(0.5)), P90: api.Brief(f.TPS.Quantile(0.9))},
		TPSStreams: f.TPS.Count(),
		TTFTS:      api.TTFTQuantiles{P50: api.Brief(f.TTFT.Quantile(0.5)), P90: api.Brief(f.TTFT.Quantile(0.9)), P99: api.Brief(f.TTFT.Quantile(0.99))}, TTFTStreams: f.TTFT.Count(),
	}
}

// sums is what was used of t. A target without a model of its own has what no other
// target of its backend names.
func (s *scorer) sums(t profiles.Target) usage.Sums {
	if t.Model != "" {
		return s.used[[2]string{t.Backend, t.Model}]
	}
	var sum usage.Sums
	for at, used := range s.used {
		if at[0] == t.Backend && !s.named[at] {
			sum.Add(used)
		}
	}
	return sum
}

func (s *scorer) usage(t profiles.Target, mix usage.Sums) api.ScoreUsage {
	used := s.sums(t)
	requests := float64(used.Requests)
	out := api.ScoreUsage{
		Requests:     used.Requests,
		PromptTokens: api.Positive(float64(used.Input) / requests), OutputTokens: api.Positive(float64(used.Output) / requests),
		Cached:        api.Positive(float64(used.Cached) / float64(used.Input)),
		USDPerMillion: api.Unknown(),
	}
	if used.Input+used.Output > 0 {
		mix = used
	}
	source, cost := "usage", used.Cost
	if cost <= 0 || used.Input+used.Output == 0 {
		source, cost = "price", s.priced(t, mix)
	}
	if tokens := mix.Input + mix.Output; tokens > 0 && cost > 0 {
		out.USDPerMillion, out.USDSource = api.Number(1e6*cost.USD()/float64(tokens)), &source
	}
	return out
}

// priced is what the tokens of mix would cost at t; 0 = it has no price.
func (s *scorer) priced(t profiles.Target, mix usage.Sums) usage.Money {
	known := s.port.settings()
	b, there := known.backends[t.Backend]
	if !there {
		return 0
	}
	price, _ := known.conf.PriceOf(&b, t.Model)
	return usage.Price(price).Of(usage.Tokens{Input: mix.Input, Cached: mix.Cached, Output: mix.Output, Reasoning: mix.Reasoning})
}

// rank brings targets into the order of what a stream gets at the common level, the
// best first, and says in what that was counted.
func rank(targets []api.Score) (by string) {
	by, speed := "text", func(s *api.Score) api.Number { return s.TextBytesPerS }
	if slices.ContainsFunc(targets, func(s api.Score) bool { return s.AtN.TPS.Known() && !s.TextBytesPerS.Known() }) {
		by, speed = "tokens", func(s *api.Score) api.Number { return s.AtN.TPS }
	}
	// Those that are not known are NaN, which is less than any, and come last.
	slices.SortStableFunc(targets, func(a, b api.Score) int { return cmp.Compare(speed(&b), speed(&a)) })
	return by
}
