package admin

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// targetState is one target, and how it is now.
type targetState struct {
	target profiles.Target
	api.Identity
	api.State
}

func lastErrorOf(e LastError) *api.LastError {
	out := &api.LastError{Message: e.Message, Since: e.Since.UTC(), WithinAnswers: e.Within}
	if e.Status > 0 {
		out.Status = &e.Status
	}
	return out
}

// serveProfiles answers GET /api/v1/profiles.
func (p *port) serveProfiles(w http.ResponseWriter, r *http.Request) {
	values, ok := queryOf(w, r)
	if !ok {
		return
	}
	q, param, err := parseProfileQuery(values)
	if err != nil {
		badQuery(w, param, err.Error())
		return
	}
	now := time.Now()
	answer := api.Profiles{Targets: []api.Target{}}
	for _, s := range p.targets(now, p.o.Router.Routes(now)) {
		c := p.o.Book.Curve(s.target)
		t := api.Target{Identity: s.Identity, State: s.State, Knowledge: api.KnowledgeOf(c)}
		t.Points, t.OutputTokens = q.Points(now, c)
		answer.Targets = append(answer.Targets, t)
	}
	send(w, http.StatusOK, answer)
}

// targets returns the state of every target, sorted by backend, then model:
// those that a route names, and those that were measured all the same.
func (p *port) targets(now time.Time, routes []router.RouteState) []targetState {
	loads := map[string]router.BackendLoad{}
	for _, l := range p.o.Router.Loads() {
		loads[l.Backend] = l
	}
	below := p.o.Router.Below(now)
	conf := p.settings()
	var breakers map[string]string
	if p.o.Breakers != nil {
		breakers = p.o.Breakers()
	}
	var errors map[profiles.Target]LastError
	if p.o.LastErrors != nil {
		errors = p.o.LastErrors()
	}
	ring, causes, admits := p.o.Metrics.History(), p.causes(history.OfBackend), admitted(routes)
	var out []targetState
	for _, t := range p.o.Book.Targets() {
		l, configured := loads[t.Backend]
		b := conf.backends[t.Backend]
		if !configured || t.Separate != b.Separate() {
			continue // of a backend that is gone, or was configured otherwise
		}
		s := targetState{target: t, Identity: identityOf(t, b)}
		s.Admits = admits[t]
		s.TokensPerS, s.Delivered = api.Brief(ring.Recent(now, ring.Backend(t.Backend)).Tokens), api.Brief(p.o.Watch.Delivered(t.Backend))
		if c, has := causes[t.Backend]; has && (c.Model == "" || c.Model == t.Model) {
			s.Cause = causeOf(c)
		}
		s.TokensByText = p.o.ByText != nil && p.o.ByText(t)
		s.InFlight = inFlightOf(l, t)
		s.InFlight.BelowFloor = below[t.GroupID()]
		s.Warm.Predicted, s.Warm.Reported = p.o.Metrics.Warm(t.Backend)
		fates := p.o.Metrics.Fates(t.Backend)
		s.Continued = api.Continued{OK: fates[telemetry.Continued], Lost: fates[telemetry.ContinueLost], Unfit: fates[telemetry.Uncontinuable]}
		s.Health, s.Breaker = healthOf(l)
		if b, ok := breakers[t.Backend]; ok {
			s.Breaker = b
		}
		if e, failed := errors[t]; failed {
			s.LastError = lastErrorOf(e)
		}
		if e := l.Engine; e != nil {
			s.Engine = &api.EngineLoad{
				Running: e.Running, Waiting: e.Waiting,
				Foreign: api.Foreign{Waiting: l.ForeignWaiting, Decoding: l.ForeignDecoding},
				AgeS:    api.Number(max(now.Sub(e.At), 0).Seconds()),
			}
		}
		out = append(out, s)
	}
	return out
}

// identityOf is t, on b, without what may be secret.
func identityOf(t profiles.Target, b config.Backend) api.Identity {
	id := api.Identity{
		Backend: t.Backend, Model: t.Model, Separate: t.Separate, Kind: b.Kind, Labels: b.Labels,
		USDPerHour: api.Positive(b.USDPerHour),
	}
	if u, err := url.Parse(b.URL); err == nil {
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		id.URL = u.String()
	}
	if b.MaxConcurrency > 0 {
		id.MaxConcurrency = &b.MaxConcurrency
	}
	return id
}

// admitted is, for each target, how many more are placed there now: of the route
// that it takes most of, for a floor that it can never give says nothing of the
// others. nil where nothing limits them.
func admitted(routes []router.RouteState) map[profiles.Target]*int {
	out := map[profiles.Target]*int{}
	for _, r := range routes {
		for i, t := range r.Route.Targets {
			room := r.Targets[i]
			if most := out[t.Target]; !room.Unlimited && (most == nil || room.Admits > *most) {
				out[t.Target] = &room.Admits
			}
		}
	}
	return out
}

// inFlightOf is what of l t is counted with.
func inFlightOf(l router.BackendLoad, t profiles.Target) api.InFlight {
	if !t.Separate {
		return api.InFlight{Waiting: l.Waiting, Decoding: l.Decoding, N: l.N, M: l.M}
	}
	for _, m := range l.Models {
		if m.Model == t.Model {
			return api.InFlight{Waiting: m.Waiting, Decoding: m.Decoding, N: m.N, M: m.M}
		}
	}
	return api.InFlight{}
}

// healthOf translates: a backend that is only being tried out is not up, nor is one that
// hangs.
func healthOf(l router.BackendLoad) (health, breaker string) {
	switch l.Health {
	case router.Up:
		if l.Hung {
			return "down", "closed"
		}
		return "up", "closed"
	case router.Probing:
		return "down", "half_open"
	case router.Draining:
		return "draining", "closed"
	case router.Loading:
		return "loading", "closed"
	}
	return "down", "open"
}

// parseProfileQuery returns the parameter that is wrong together with err.
func parseProfileQuery(v url.Values) (q api.PointsQuery, param string, err error) {
	q = api.PointsQuery{Rho: math.NaN(), PromptTokens: math.NaN()}
	for _, list := range v["n"] {
		for word := range strings.SplitSeq(list, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(word))
			if err != nil || n < 1 || n > api.MaxLevel {
				return q, "n", fmt.Errorf("n: %.40q is no level of concurrency; write whole numbers from 1 to %d: n=1,2,4", word, api.MaxLevel)
			}
			if len(q.Levels) == api.MaxLevels {
				return q, "n", fmt.Errorf("n: more than %d levels", api.MaxLevels)
			}
			q.Levels = append(q.Levels, n)
		}
	}
	for _, f := range []struct {
		name string
		into *float64
	}{{"rho", &q.Rho}, {"prompt_tokens", &q.PromptTokens}} {
		if !v.Has(f.name) {
			continue
		}
		if len(v[f.name]) > 1 {
			return q, f.name, fmt.Errorf("%s: is given more than once", f.name)
		}
		x, err := strconv.ParseFloat(v.Get(f.name), 64)
		if err != nil || !(x >= 0) || math.IsInf(x, 0) {
			return q, f.name, fmt.Errorf("%s: %.40q is no number from 0 up", f.name, v.Get(f.name))
		}
		*f.into = x
	}
	if v.Has("rho") && v.Has("prompt_tokens") {
		return q, "prompt_tokens", fmt.Errorf("prompt_tokens: rho is given too; ask for one of them")
	}
	return q, "", nil
}
