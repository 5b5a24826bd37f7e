package admin

import (
	"net/http"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// serveRoutes answers GET /api/v1/routes.
func (p *port) serveRoutes(w http.ResponseWriter, r *http.Request) {
	window, ok := windowOf(w, r, history.Start, history.Windows())
	if ok {
		now := time.Now()
		send(w, http.StatusOK, p.routes(now, window, p.o.Router.Routes(now)))
	}
}

func (p *port) routes(now time.Time, w history.Window, states []router.RouteState) api.Routes {
	ring := p.o.Metrics.History()
	word, replicas := p.replicas(now, w)
	answer := api.Routes{
		Since: ring.Started().UTC(), Window: w.String(), WindowS: ring.Reach(now, w).Seconds(),
		Replica: word, Replicas: replicas, Verdict: p.verdict(), Routes: []api.Route{},
	}
	causes, losing := p.causes(history.OfRoute), p.o.Watch.Losing()
	for _, state := range states {
		r := p.route(now, w, state, causes[state.Route.Name])
		r.Losing = r.Cause.Cause == nil && slices.Contains(losing, r.Model)
		answer.Routes = append(answer.Routes, r)
	}
	return answer
}

func (p *port) route(now time.Time, w history.Window, state router.RouteState, c history.Cause) api.Route {
	r, ring, goal := state.Route, p.o.Metrics.History(), p.settings().goals[state.Route.Name]
	series := ring.Route(r.Name)
	f := ring.Figures(now, series, w)
	rates := ring.Recent(now, series)
	out := api.Route{
		Model: r.Name, Class: r.Class.String(), Prefer: string(r.Prefer),
		MinTPS:         api.Positive(r.SLO.MinTPS),
		MaxTTFTS:       api.Positive(r.SLO.MaxTTFT.Seconds()),
		AttainmentGoal: api.Positive(goal),
		Results: api.Results{
			Offered: f.Offered(), Met: f.Results[history.Met], Missed: f.Results[history.Missed],
			Unmeasured: f.Results[history.Unmeasured], Shed: f.Results[history.Shed], Failed: f.Results[history.Failed],
			Attainment: api.Number(f.Attainment()), BudgetLeft: api.Number(f.BudgetLeft(goal)),
		},
		Rates:      api.Rates{OfferedPerS: api.Brief(rates.Offered()), MetPerS: api.Brief(rates.Results[history.Met]), ShedPerS: api.Brief(rates.Results[history.Shed])},
		Cause:      causeOf(c),
		TPS:        api.TPSQuantiles{P10: api.Brief(f.TPS.Quantile(0.1)), P50: api.Brief(f.TPS.Quantile(0.5)), P90: api.Brief(f.TPS.Quantile(0.9))},
		TPSStreams: f.TPS.Count(),
		TTFTS:      api.TTFTQuantiles{P50: api.Brief(f.TTFT.Quantile(0.5)), P90: api.Brief(f.TTFT.Quantile(0.9)), P99: api.Brief(f.TTFT.Quantile(0.99))}, TTFTStreams: f.TTFT.Count(),
		Waiting: state.Waiting, FreeIsLowerBound: state.FreeLowerBound,
		Targets: []api.RouteTarget{},
	}
	if state.Guaranteed > 0 {
		out.Guarantee = &api.Guarantee{Places: state.Guaranteed, Held: state.Held, Used: state.Used}
	}
	if !state.Unlimited {
		out.Free = &state.Free
	}
	for i, t := range r.Targets {
		out.Targets = append(out.Targets, targetOf(t.Target, state.Targets[i], r.SLO.MinTPS > 0 && r.Class == router.Interactive))
	}
	return out
}

func targetOf(t profiles.Target, room router.TargetRoom, floored bool) api.RouteTarget {
	rt := api.RouteTarget{Backend: t.Backend, Model: t.Model, Held: room.Held}
	if !room.Unlimited {
		rt.Admits, rt.AdmitsIsLowerBound = &room.Admits, room.AdmitsLowerBound
	}
	if floored {
		rt.Capacity, rt.CapacityIsLowerBound = &room.Capacity, room.CapacityLowerBound
	}
	return rt
}
