package admin

import (
	"context"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/usage"
)

// What was fed in comes out side by side, and what nobody knows is null.
func TestScorecard(t *testing.T) {
	w := newWorld(t)
	w.occupy(t, 1, 4)
	for i := range 10 {
		x := telemetry.Exchange{Route: "chat", Backend: "h200", Outcome: "ok", Counted: true, Result: telemetry.Met, TPS: 40, TTFT: 200 * time.Millisecond}
		if i < 2 {
			x.Outcome, x.Result, x.TPS, x.TTFT = "cut", telemetry.Failed, 0, 0
		}
		w.metrics.Observe(x)
	}
	conf := *w.options.Config()
	conf.Backends = append([]config.Backend{}, conf.Backends...)
	conf.Backends[1].Price = config.Price{Input: 1, Output: 4}
	w.options.Config = inForce(&conf)
	w.options.Usage = func(_ context.Context, from, to usage.Hour) ([]usage.Cell, bool) {
		if to-from != 2 {
			t.Errorf("usage of %d hours is asked for, want this one and the one before", to-from)
		}
		of := func(backend, model, key string) usage.Of { return usage.Of{Backend: backend, Model: model, Key: key} }
		return []usage.Cell{
			{Hour: from, Of: of("h200", h200.Model, "a"), Sums: usage.Sums{Requests: 3, Input: 3000, Cached: 1000, Output: 600, Cost: usage.Dollars(0.008)}},
			{Hour: to - 1, Of: of("h200", h200.Model, "b"), Sums: usage.Sums{Requests: 1, Input: 1000, Output: 200, Cost: usage.Dollars(0.0016)}},
			{Hour: from, Of: of("h200", "another", "a"), Sums: usage.Sums{Requests: 9, Input: 9, Output: 9, Cost: usage.Dollars(1)}},
		}, true
	}
	w.options.BytesPerToken = func(of profiles.Target) float64 {
		return map[profiles.Target]float64{h200: 5, l40s: 2.5}[of] // 0 = not known
	}
	w.handler = New(w.options)
	got := decode[api.Scorecard](t, w.get("/api/v1/scorecard?model=chat"))
	if len(got.Routes) != 1 || len(got.Routes[0].Targets) != 2 || got.UsageReplica != "all" || got.Window != "1h" {
		t.Fatalf("%+v, want chat with two targets", got)
	}
	r := got.Routes[0]
	first, second := r.Targets[0], r.Targets[1]
	if r.N != 4 || r.MinTPS != 30 || r.RankedBy != "text" || first.Backend != "h200" {
		t.Errorf("n %d, floor %v, by %s, first %s; want 4, 30, text, h200: 51 × 5 bytes/s over 55 × 2.5", r.N, r.MinTPS, r.RankedBy, first.Backend)
	}
	is := func(what string, got api.Number, want, share float64) {
		t.Helper()
		if math.IsNaN(want) != math.IsNaN(float64(got)) || !math.IsNaN(want) && !near(float64(got), want, share) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	is("tps at 4", first.AtN.TPS, truth(4), 0.02)
	is("tps now", first.Now.TPS, truth(4), 0.02)
	is("text", first.TextBytesPerS, 5*truth(4), 0.02)
	is("tokens/byte", first.TokensPerByte, 0.2, 1e-9)
	is("failed", first.Window.Failed, 0.2, 1e-9)
	is("tps p50", api.Number(first.Window.TPS.P50), 40, 0.05)
	is("ttft p99", api.Number(first.Window.TTFTS.P99), 0.2, 0.05)
	is("prompt", first.Usage.PromptTokens, 1000, 1e-9)
	is("output", first.Usage.OutputTokens, 200, 1e-9)
	is("cached", first.Usage.Cached, 0.25, 1e-9)
	is("usd", first.Usage.USDPerMillion, 2, 1e-9) // 0.0096 USD for 4,800 tokens
	if first.Now.N != 4 || first.Window.Requests != 10 || first.Usage.Requests != 4 || *first.Usage.USDSource != "usage" {
		t.Errorf("%+v, want n = 4, 10 requests of the backend, 4 of the target, at what they cost", first)
	}
	if !(first.AtN.Low > 0 && first.AtN.Low <= first.AtN.TPS) || first.Full == nil || first.Full.N < 4 || !(first.Full.TPS >= 30) {
		t.Errorf("at n: %+v, full: %+v; want a bound below, and a floor that is kept", first.AtN, first.Full)
	}
	// Nothing was served there: a price for the mix of the route is all there is.
	nan := math.NaN()
	is("price", second.Usage.USDPerMillion, (4000*1+800*4)/4800.0, 1e-6)
	is("failed of none", second.Window.Failed, nan, 0)
	is("tps of none", api.Number(second.Window.TPS.P10), nan, 0)
	is("tps at n = 0", second.Now.TPS, nan, 0)
	is("cached of none", second.Usage.Cached, nan, 0)
	is("prompt of none", second.Usage.PromptTokens, nan, 0)
	if s := second.Usage.USDSource; s == nil || *s != "price" || second.AtN.Source == nil || *second.AtN.Source != "prior" {
		t.Errorf("%+v, want a price and a prior", second)
	}

	got = decode[api.Scorecard](t, w.get("/api/v1/scorecard?model=whatever&n=3"))
	if r := got.Routes[0]; len(got.Routes) != 1 || r.Model != "*" || r.N != 3 || r.Targets[0].Full != nil || r.Targets[0].AtN.TPS.Known() || r.Targets[0].TokensPerByte.Known() {
		t.Errorf("%+v, want the catch-all, of which nothing is known", got.Routes)
	}
	conf.Routes = conf.Routes[:2]
	w.options.Config = inForce(&conf)
	w.handler = New(w.options)
	if rec := w.get("/api/v1/scorecard?model=chta"); rec.Code != http.StatusNotFound {
		t.Errorf("an unknown model: %d %s", rec.Code, rec.Body)
	}
}
