package admin

import (
	"net/http"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// serveRoutes answers GET /api/v1/routes.
func (p *port) serveRoutes(w http.ResponseWriter, _ *http.Request) {
	send(w, http.StatusOK, p.routes(time.Now()))
}

func (p *port) routes(now time.Time) api.Routes {
	answer := api.Routes{Since: p.started.UTC(), WindowS: telemetry.Window.Seconds(), Routes: []api.Route{}}
	for _, state := range p.o.Router.Routes(now) {
		answer.Routes = append(answer.Routes, p.route(state))
	}
	return answer
}

func (p *port) route(state router.RouteState) api.Route {
	r, s := state.Route, p.o.Metrics.Route(state.Route.Name)
	out := api.Route{
		Model: r.Name, Class: r.Class.String(), Prefer: string(r.Prefer),
		MinTPS:         api.Positive(r.SLO.MinTPS),
		MaxTTFTS:       api.Positive(r.SLO.MaxTTFT.Seconds()),
		AttainmentGoal: api.Positive(p.settings().goals[r.Name]),
		Offered:        s.Offered, Met: s.Met, Missed: s.Missed,
		Unmeasured: s.Unmeasured, Shed: s.Shed, Failed: s.Failed,
		Attainment: api.Unknown(),
		TPS:        api.TPSQuantiles{P10: api.Brief(s.TPSP10), P50: api.Brief(s.TPSP50), P90: api.Brief(s.TPSP90)},
		TPSStreams: s.TPSCount,
		TTFTS:      api.TTFTQuantiles{P50: api.Brief(s.TTFTP50), P90: api.Brief(s.TTFTP90), P99: api.Brief(s.TTFTP99)}, TTFTStreams: s.TTFTCount,
		Waiting: state.Waiting, FreeIsLowerBound: state.FreeLowerBound,
		Targets: []api.RouteTarget{},
	}
	if !state.Unlimited {
		out.Free = &state.Free
	}
	if judged := s.Met + s.Missed + s.Shed + s.Failed; judged > 0 {
		out.Attainment = api.Number(float64(s.Met) / float64(judged))
	}
	for i, t := range r.Targets {
		out.Targets = append(out.Targets, targetOf(t.Target, state.Targets[i], r.SLO.MinTPS > 0 && r.Class == router.Interactive))
	}
	return out
}

func targetOf(t profiles.Target, room router.TargetRoom, floored bool) api.RouteTarget {
	rt := api.RouteTarget{Backend: t.Backend, Model: t.Model}
	if !room.Unlimited {
		rt.Admits, rt.AdmitsIsLowerBound = &room.Admits, room.AdmitsLowerBound
	}
	if floored {
		rt.Capacity, rt.CapacityIsLowerBound = &room.Capacity, room.CapacityLowerBound
	}
	return rt
}
