package admin

import (
	"math"
	"net/http"
	"sort"
	"time"

	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// routesAnswer is the body of /api/v1/routes. Counts are since Since, quantiles
// over the last WindowS seconds.
type routesAnswer struct {
	Since   time.Time      `json:"since"`
	WindowS float64        `json:"window_s"`
	Routes  []routeFigures `json:"routes"`
}

// routeFigures is what a route promised and what it gave.
type routeFigures struct {
	Model          string `json:"model"`
	Class          string `json:"class"`
	Prefer         string `json:"prefer"`
	MinTPS         number `json:"min_tps"`    // null = no floor
	MaxTTFTS       number `json:"max_ttft_s"` // null = no limit
	AttainmentGoal number `json:"attainment_goal"`

	// Offered = Met + Missed + Unmeasured + Shed + Failed.
	Offered    uint64 `json:"offered"`
	Met        uint64 `json:"met"`
	Missed     uint64 `json:"missed"`
	Unmeasured uint64 `json:"unmeasured"`
	Shed       uint64 `json:"shed"`
	Failed     uint64 `json:"failed"`

	// Attainment is Met/(Met + Missed + Shed + Failed): of all requests offered
	// but those that were served and could not be judged. Null while there are
	// none.
	Attainment number `json:"attainment"`

	TPS         tpsQuantiles  `json:"tps"`
	TPSStreams  uint64        `json:"tps_streams"` // that the quantiles rest on
	TTFTS       ttftQuantiles `json:"ttft_s"`
	TTFTStreams uint64        `json:"ttft_streams"`

	Waiting          int  `json:"waiting"` // in line
	Free             *int `json:"free"`    // users it would take now; null = no floor and no cap limits them
	FreeIsLowerBound bool `json:"free_is_lower_bound"`

	Targets []routeTarget `json:"targets"`
}

type tpsQuantiles struct {
	P10 brief `json:"p10"`
	P50 brief `json:"p50"`
	P90 brief `json:"p90"`
}

type ttftQuantiles struct {
	P50 brief `json:"p50"`
	P90 brief `json:"p90"`
	P99 brief `json:"p99"`
}

// routeTarget is one target of a route. Capacity is the largest n at which its
// curve meets the floor, Admits the largest at which its bound does, by which
// is decided; both null without a floor or a curve. A lower bound is one where
// not the speed ends, but what is known of it: twice the n that was seen.
type routeTarget struct {
	Backend              string `json:"backend"`
	Model                string `json:"model"`
	Capacity             *int   `json:"capacity"`
	CapacityIsLowerBound bool   `json:"capacity_is_lower_bound"`
	Admits               *int   `json:"admits"`
	AdmitsIsLowerBound   bool   `json:"admits_is_lower_bound"`
}

// serveRoutes answers GET /api/v1/routes.
func (p *port) serveRoutes(w http.ResponseWriter, _ *http.Request) {
	send(w, http.StatusOK, p.routes(time.Now()))
}

func (p *port) routes(now time.Time) routesAnswer {
	answer := routesAnswer{Since: p.started.UTC(), WindowS: telemetry.Window.Seconds(), Routes: []routeFigures{}}
	for _, state := range p.o.Router.Routes(now) {
		answer.Routes = append(answer.Routes, p.route(state))
	}
	return answer
}

func (p *port) route(state router.RouteState) routeFigures {
	r, s := state.Route, p.o.Metrics.Route(state.Route.Name)
	out := routeFigures{
		Model: r.Name, Class: r.Class.String(), Prefer: r.Prefer.String(),
		MinTPS:         positive(r.SLO.MinTPS),
		MaxTTFTS:       positive(r.SLO.MaxTTFT.Seconds()),
		AttainmentGoal: positive(p.settings().goals[r.Name]),
		Offered:        s.Offered, Met: s.Met, Missed: s.Missed,
		Unmeasured: s.Unmeasured, Shed: s.Shed, Failed: s.Failed,
		Attainment: number(math.NaN()),
		TPS:        tpsQuantiles{brief(s.TPSP10), brief(s.TPSP50), brief(s.TPSP90)},
		TPSStreams: s.TPSCount,
		TTFTS:      ttftQuantiles{brief(s.TTFTP50), brief(s.TTFTP90), brief(s.TTFTP99)}, TTFTStreams: s.TTFTCount,
		Waiting: state.Waiting, FreeIsLowerBound: state.FreeLowerBound,
		Targets: []routeTarget{},
	}
	if !state.Unlimited {
		out.Free = &state.Free
	}
	if judged := s.Met + s.Missed + s.Shed + s.Failed; judged > 0 {
		out.Attainment = number(float64(s.Met) / float64(judged))
	}
	for _, t := range r.Targets {
		out.Targets = append(out.Targets, targetOf(t.Target, p.o.Book.Curve(t.Target), r.SLO.MinTPS))
	}
	return out
}

func targetOf(t profiles.Target, c *profiles.Curve, floorTPS float64) routeTarget {
	rt := routeTarget{Backend: t.Backend, Model: t.Model}
	if !(floorTPS > 0) || !c.Known() {
		return rt
	}
	holds, taken := c.MaxConcurrency(floorTPS), admits(c, floorTPS)
	rt.Capacity, rt.CapacityIsLowerBound = &holds, c.TPS(holds+1) >= floorTPS
	rt.Admits, rt.AdmitsIsLowerBound = &taken, taken > 0 && c.Low(taken+1, 0) == 0
	return rt
}

// admits returns the largest n whose bound meets the floor, 0 when none.
func admits(c *profiles.Curve, floorTPS float64) int {
	_, hi := c.Support()
	// The bound never rises with n, and is 0 beyond twice the support.
	return sort.Search(2*hi, func(i int) bool { return c.Low(i+1, 0) < floorTPS })
}
