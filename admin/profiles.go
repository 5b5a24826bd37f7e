package admin

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// profilesAnswer is the body of /api/v1/profiles.
type profilesAnswer struct {
	Targets []targetProfile `json:"targets"`
}

// targetProfile is one target: what runs there, and what is known of its
// speed.
type targetProfile struct {
	targetState
	knowledge
	Points []point `json:"points"`

	// OutputTokens is the mean answer that ?prompt_tokens was divided by.
	OutputTokens *number `json:"output_tokens,omitempty"`
}

// targetState changes with every request.
type targetState struct {
	Backend  string            `json:"backend"`
	Model    string            `json:"model"`              // "" = the client's own name goes up
	Separate bool              `json:"separate,omitempty"` // counted by itself: in_flight is of this model alone
	Kind     string            `json:"kind"`
	Labels   map[string]string `json:"labels,omitempty"`
	Health   string            `json:"health"`  // up | down | loading | draining
	Breaker  string            `json:"breaker"` // closed | half_open | open
	InFlight inFlight          `json:"in_flight"`
	Engine   *engineLoad       `json:"engine"` // what the engine itself counts; null = not known

	// LastError is what went wrong since it last served a request; null = nothing.
	LastError *lastError `json:"last_error"`

	target profiles.Target
}

// inFlight counts sequences on the backend, whatever the model, or of a model
// that is counted by itself those: waiting and
// decoding those of this replica, below_floor the streams among them that average
// less than the floor they asked for, n (decoding) and m (waiting or decoding)
// those of all replicas and of others.
type inFlight struct {
	Waiting    int `json:"waiting"`
	Decoding   int `json:"decoding"`
	BelowFloor int `json:"below_floor"`
	N          int `json:"n"`
	M          int `json:"m"`
}

// engineLoad is what the engine at metrics_url counts, whoever sent it, and what
// of it is taken for the load of others. N and M of in_flight include that.
type engineLoad struct {
	Running int     `json:"running"`
	Waiting int     `json:"waiting"`
	Foreign foreign `json:"foreign"`
	AgeS    number  `json:"age_s"`
}

// lastError is LastError in JSON.
type lastError struct {
	Status  *int      `json:"status"` // null = no answer came, or none that is one
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
}

func lastErrorOf(e LastError) *lastError {
	out := &lastError{Message: e.Message, Since: e.Since.UTC()}
	if e.Status > 0 {
		out.Status = &e.Status
	}
	return out
}

// foreign is sequences that did not come through Pacer.
type foreign struct {
	Waiting  int `json:"waiting"`
	Decoding int `json:"decoding"`
}

// knowledge changes when evidence comes in.
type knowledge struct {
	Scale            number     `json:"scale"`  // g, by which tps and low are already multiplied
	Margin           number     `json:"margin"` // taken off tps for low, at least
	Rho              number     `json:"rho"`    // prompt tokens per output token
	Support          *[2]int    `json:"support"`
	Fit              *fit       `json:"fit"`
	TTFT             *ttft      `json:"ttft"`
	TokensSeen       number     `json:"tokens_seen"`
	MeanOutputTokens number     `json:"mean_output_tokens"`
	UpdatedAt        *time.Time `json:"updated_at"`
}

// fit is seconds per token = a + b·√n + c·n + d·p.
type fit struct {
	A number `json:"a"`
	B number `json:"b"`
	C number `json:"c"`
	D number `json:"d"`
}

// ttft is what is known of the time to the first token: base_s, and the prompt
// tokens, the request's own and those ahead, at that rate; and beyond the slots
// a wait for one. Nothing is null: no prompt was ever noticed in it, or the
// engine never queued.
type ttft struct {
	BaseS             number `json:"base_s"`
	PrefillTokensPerS number `json:"prefill_tokens_per_s"`
	Slots             *int   `json:"slots"`
}

// point is the curve at n and at p prompt tokens per decode step.
type point struct {
	N             int     `json:"n"`
	P             number  `json:"p"`
	TPS           number  `json:"tps"`
	Low           number  `json:"low"`
	AggregateTPS  number  `json:"aggregate_tps"`
	StreamSeconds number  `json:"stream_seconds"`
	Tokens        number  `json:"tokens"`
	Steps         number  `json:"steps"`
	AgeS          number  `json:"age_s"`
	Source        *string `json:"source"` // learned | prior | extrapolated; null = unknown
}

// serveProfiles answers GET /api/v1/profiles.
func (p *port) serveProfiles(w http.ResponseWriter, r *http.Request) {
	// URL.Query leaves out what it cannot read, so n=1;2 would ask for nothing.
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		badQuery(w, "", "the query cannot be read: "+err.Error())
		return
	}
	q, param, err := parseProfileQuery(values)
	if err != nil {
		badQuery(w, param, err.Error())
		return
	}
	now := time.Now()
	answer := profilesAnswer{Targets: []targetProfile{}}
	for _, s := range p.targets(now) {
		c := p.o.Book.Curve(s.target)
		t := targetProfile{targetState: s, knowledge: known(c)}
		t.Points, t.OutputTokens = q.points(now, c)
		answer.Targets = append(answer.Targets, t)
	}
	send(w, http.StatusOK, answer)
}

// targets returns the state of every target, sorted by backend, then model:
// those that a route names, and those that were measured all the same.
func (p *port) targets(now time.Time) []targetState {
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
	var out []targetState
	for _, t := range p.o.Book.Targets() {
		l, configured := loads[t.Backend]
		b := conf.backends[t.Backend]
		if !configured || t.Separate != b.Separate() {
			continue // of a backend that is gone, or was configured otherwise
		}
		s := targetState{Backend: t.Backend, Model: t.Model, Separate: t.Separate, Kind: b.Kind, Labels: b.Labels, target: t}
		s.InFlight = inFlightOf(l, t)
		s.InFlight.BelowFloor = below[t.GroupID()]
		s.Health, s.Breaker = healthOf(l.Health)
		if b, ok := breakers[t.Backend]; ok {
			s.Breaker = b
		}
		if e, failed := errors[t]; failed {
			s.LastError = lastErrorOf(e)
		}
		if e := l.Engine; e != nil {
			s.Engine = &engineLoad{
				Running: e.Running, Waiting: e.Waiting, Foreign: foreign{l.ForeignWaiting, l.ForeignDecoding},
				AgeS: number(max(now.Sub(e.At), 0).Seconds()),
			}
		}
		out = append(out, s)
	}
	return out
}

// inFlightOf is what of l t is counted with.
func inFlightOf(l router.BackendLoad, t profiles.Target) inFlight {
	if !t.Separate {
		return inFlight{Waiting: l.Waiting, Decoding: l.Decoding, N: l.N, M: l.M}
	}
	for _, m := range l.Models {
		if m.Model == t.Model {
			return inFlight{Waiting: m.Waiting, Decoding: m.Decoding, N: m.N, M: m.M}
		}
	}
	return inFlight{}
}

// healthOf translates: a backend that is only being tried out is not up.
func healthOf(h router.Health) (health, breaker string) {
	switch h {
	case router.Up:
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

func known(c *profiles.Curve) knowledge {
	k := knowledge{
		Scale:            number(c.Scale()),
		Margin:           number(c.Margin()),
		Rho:              number(c.Rho()),
		TokensSeen:       number(c.Tokens()),
		MeanOutputTokens: positive(c.MeanOutput()),
		UpdatedAt:        instant(c.Updated()),
	}
	if lo, hi := c.Support(); hi > 0 {
		k.Support = &[2]int{lo, hi}
	}
	if f, ok := c.Fit(); ok {
		k.Fit = &fit{number(f.A), number(f.B), number(f.C), number(f.D)}
	}
	if t := c.TTFT(); t.Known() {
		k.TTFT = &ttft{BaseS: number(t.Base), PrefillTokensPerS: number(1 / t.PerToken)}
		if t.Slots > 0 {
			k.TTFT.Slots = &t.Slots
		}
	}
	return k
}

// profileQuery says which points are asked for.
type profileQuery struct {
	levels       []int   // nil = every bin with evidence
	rho          float64 // prompt tokens per output token; NaN = the learned load
	promptTokens float64 // of a request; NaN = not asked
}

// Bounds of one question: it is a person or a script that asks.
const (
	maxLevels = 1024
	maxLevel  = 1 << 20
)

// parseProfileQuery returns the parameter that is wrong together with err.
func parseProfileQuery(v url.Values) (q profileQuery, param string, err error) {
	q = profileQuery{rho: math.NaN(), promptTokens: math.NaN()}
	for _, list := range v["n"] {
		for word := range strings.SplitSeq(list, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(word))
			if err != nil || n < 1 || n > maxLevel {
				return q, "n", fmt.Errorf("n: %.40q is no level of concurrency; write whole numbers from 1 to %d: n=1,2,4", word, maxLevel)
			}
			if len(q.levels) == maxLevels {
				return q, "n", fmt.Errorf("n: more than %d levels", maxLevels)
			}
			q.levels = append(q.levels, n)
		}
	}
	for _, f := range []struct {
		name string
		into *float64
	}{{"rho", &q.rho}, {"prompt_tokens", &q.promptTokens}} {
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

// points answers q from c. output is the mean answer that was divided by, nil
// when none was needed; without one the load is unknown, and so is the speed.
func (q profileQuery) points(now time.Time, c *profiles.Curve) (points []point, output *number) {
	at := c.At
	if !math.IsNaN(q.rho) {
		at = func(n int) profiles.Point { return c.AtRho(n, q.rho) }
	}
	if !math.IsNaN(q.promptTokens) {
		mean := positive(c.MeanOutput())
		output = &mean
		rho := q.promptTokens / float64(mean)
		at = func(n int) profiles.Point {
			if math.IsNaN(rho) {
				pt := c.At(n)
				pt.P, pt.TPS, pt.Low, pt.Source = math.NaN(), math.NaN(), math.NaN(), profiles.Unknown
				return pt
			}
			return c.AtRho(n, rho)
		}
	}
	levels := slices.Clone(q.levels)
	if levels == nil {
		for _, pt := range c.Points() {
			levels = append(levels, pt.N)
		}
	}
	points = []point{}
	for _, n := range levels {
		points = append(points, pointOf(now, n, at(n)))
	}
	return points, output
}

func pointOf(now time.Time, n int, pt profiles.Point) point {
	out := point{
		N: n, P: number(pt.P), TPS: number(pt.TPS), Low: number(pt.Low),
		AggregateTPS:  number(float64(n) * pt.TPS),
		StreamSeconds: number(pt.StreamSeconds), Tokens: number(pt.Tokens), Steps: number(pt.Steps),
		AgeS: number(math.NaN()),
	}
	if !pt.Updated.IsZero() {
		out.AgeS = number(max(now.Sub(pt.Updated), 0).Seconds())
	}
	if pt.Source != profiles.Unknown {
		source := pt.Source.String()
		out.Source = &source
	}
	return out
}
