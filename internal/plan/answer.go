package plan

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/arena"
	"github.com/pacer-dev/pacer/internal/report"
	"github.com/pacer-dev/pacer/router"
)

// Answer is what pacer plan --json prints.
type Answer struct {
	Verdict string   `json:"verdict"` // one sentence
	Config  string   `json:"config"`
	Load    Load     `json:"load"`
	Curves  []Rests  `json:"curves"`
	Runs    []Run    `json:"runs"`
	Notes   []string `json:"notes"` // what limits the figures

	// Guarantees is what places that are kept for routes cost the others, by the first
	// policy that goes by curves.
	Guarantees []Guarantee `json:"guarantees,omitempty"`

	// Least is the outcome of a search for replicas, Highest that of a sweep.
	Least   []Least   `json:"least,omitempty"`
	Highest []Highest `json:"highest,omitempty"`

	example bool
	swept   bool
	goal    float64 // of the sweep's plot: the highest that is promised
}

// Load is the load at factor 1.
type Load struct {
	Text         string  `json:"text"`
	Requests     int     `json:"requests"`
	RequestsPerS float64 `json:"requests_per_s"`
	DurationS    float64 `json:"duration_s"`
	PromptTokens float64 `json:"prompt_tokens"` // mean
	OutputTokens float64 `json:"output_tokens"` // mean
}

// What the admin port answers in the same form.
type (
	Rests        = api.PlanCurve
	Run          = api.PlanRun
	Route        = api.PlanRoute
	TPSQuantiles = api.PlanTPS
	Quantiles    = api.PlanQuantiles
	Backend      = api.PlanBackend
	Users        = api.PlanUsers
)

// Guarantee is the places that are kept for a route on a backend, and what they take
// from the others there while nobody uses them.
type Guarantee struct {
	Route   string `json:"route"`
	Backend string `json:"backend"`
	Held    int    `json:"held"` // places
	Costs   []Cost `json:"costs"`
}

// Cost is how many users of a route are let in on a backend where places are kept, one
// after the other onto an idle engine, and how many without any guarantee.
type Cost struct {
	Route   string `json:"route"`
	Users   int    `json:"users"`
	Without *int   `json:"users_without"` // null = nothing known limits them
}

type Least struct {
	Policy   string `json:"policy"`
	Backend  string `json:"backend"`
	Replicas *int   `json:"replicas"` // null = none of those asked for
}

type Highest struct {
	Policy string   `json:"policy"`
	Factor *float64 `json:"factor"` // null = none of those asked for
}

// answer puts runs into the order of the question.
func (p *plan) answer(runs []played) *Answer {
	a := &Answer{Config: p.from, example: p.from == exampleName, swept: p.swept, Notes: []string{}}
	l := &p.load
	a.Load = Load{
		Text: l.String(), Requests: l.summary.Requests, RequestsPerS: float64(l.summary.Requests) / l.took.Seconds(),
		DurationS: l.took.Seconds(), PromptTokens: l.summary.PromptTokens, OutputTokens: l.summary.OutputTokens,
	}
	for _, b := range p.cfg.Backends {
		if c, ok := p.curves[b.Name]; ok {
			a.Curves = append(a.Curves, Rests{
				Backend: b.Name, RestsOn: c.rests, Support: [2]int{c.lo, c.hi}, SecondsPerPromptToken: c.model.D, PromptCost: c.prompt, Slots: c.slots,
			})
		}
	}
	for i := range runs {
		a.Runs = append(a.Runs, p.describe(&runs[i]))
	}
	for _, s := range p.load.shares {
		for _, r := range p.cfg.Routes {
			if s.Weight > 0 && slices.Contains(r.Models, s.Route) {
				a.goal = max(a.goal, p.goal(r.SLO.Attainment))
			}
		}
	}
	switch {
	case p.searched != "":
		p.leastOf(a)
	case p.swept:
		p.highestOf(a)
	}
	for i := range runs {
		if a.Guarantees = runs[i].guarantees(); a.Guarantees != nil {
			break
		}
	}
	a.Verdict = p.verdict(a, runs)
	a.Notes = p.notes(runs, a)
	return a
}

// goal is the share that shall get what it is promised.
func (p *plan) goal(ofRoute float64) float64 { return cmp.Or(p.attainment, ofRoute) }

// describe is a run as the answer has it.
func (p *plan) describe(r *played) Run {
	out := Run{
		Policy: string(r.policy), Factor: r.factor, Replicas: r.replicas, Kept: api.Unknown(),
		MeasuredS: r.result.Measured.Seconds(), WarmupS: r.warmup.Seconds(), Routes: []Route{}, Backends: []Backend{},
	}
	promised := false
	for _, route := range r.result.Routes {
		if route.Offered > 0 {
			out.Routes = append(out.Routes, p.describeRoute(&route))
			last := &out.Routes[len(out.Routes)-1]
			promised = promised || promises(last)
		}
	}
	out.Holds = true
	for _, route := range out.Routes {
		// Who promises nothing is judged only where nobody does: by who was served.
		if promises(&route) != promised || !route.Attainment.Known() {
			continue
		}
		out.Holds = out.Holds && route.Holds
		if !(out.Kept <= route.Attainment) {
			out.Kept = route.Attainment
		}
	}
	hours := r.result.Measured.Hours()
	sum := Backend{USDPerHour: api.Unknown(), TokensUSDPerHour: api.Unknown()}
	for i, b := range r.result.Backends {
		out.Backends = append(out.Backends, p.describeBackend(r, i, &b, hours))
		last := out.Backends[i]
		sum.OutputTokens += last.OutputTokens
		sum.USDPerHour = plus(sum.USDPerHour, last.USDPerHour)
		sum.TokensUSDPerHour = plus(sum.TokensUSDPerHour, last.TokensUSDPerHour)
	}
	out.USDPerHour, out.TokensUSDPerHour = sum.USDPerHour, sum.TokensUSDPerHour
	out.USDPerMillionOutputTokens = api.Unknown()
	if !slices.ContainsFunc(out.Backends, func(b Backend) bool { return !b.USDPerHour.Known() }) {
		out.USDPerMillionOutputTokens = perMillion(sum.USDPerHour, hours, sum.OutputTokens)
	}
	return out
}

func promises(r *Route) bool { return r.MinTPS > 0 || r.MaxTTFTS > 0 }

// holds tells whether a run keeps every promise.
func (p *plan) holds(r *played) bool { return p.describe(r).Holds }

func (p *plan) describeRoute(r *arena.RouteResult) Route {
	var of config.Route
	for _, c := range p.cfg.Routes {
		if slices.Contains(c.Models, r.Route) {
			of = c
		}
	}
	out := Route{
		Route: r.Route, Class: of.Class, MinTPS: of.SLO.MinTPS, MaxTTFTS: of.SLO.MaxTTFT.Seconds(), Goal: p.goal(of.SLO.Attainment),
		Offered: r.Offered, Met: r.Met, Missed: r.Missed, Unmeasured: r.Unmeasured, Shed: r.Shed, Failed: r.Failed,
		Attainment: api.Number(r.Attainment()), Goodput: api.Number(r.Goodput),
		TPS:    TPSQuantiles{P10: api.Number(r.TPSP10), P50: api.Number(r.TPSP50)},
		TTFT:   Quantiles{P50: r.TTFTP50.Seconds(), P99: r.TTFTP99.Seconds()},
		Waited: Quantiles{P50: r.WaitedP50.Seconds(), P99: r.WaitedP99.Seconds()},
	}
	out.Holds = !(float64(out.Attainment) < out.Goal)
	return out
}

func (p *plan) describeBackend(r *played, i int, b *arena.BackendResult, hours float64) Backend {
	m := r.fleet[i]
	out := Backend{
		Backend: b.Backend, Mean: b.MeanM, Peak: b.PeakM, OutputTokens: b.OutputTokens, Users: []Users{},
		Utilisation: api.Unknown(), USDPerHour: api.Positive(m.hour), TokensUSDPerHour: api.Positive(b.TokensUSD / hours),
	}
	if b.Floor > 0 && b.TrueUsers > 0 {
		out.Utilisation = api.Number(b.MeanM / float64(b.TrueUsers))
	}
	out.USDPerMillionOutputTokens = perMillion(out.USDPerHour, hours, b.OutputTokens)
	for _, floor := range p.floorsOn(m.of) {
		if u, known := r.users(b.Backend, floor); known {
			u.Users = min(u.Users, m.curve.slots)
			out.Users = append(out.Users, u)
		}
	}
	return out
}

// users is up to how many streams on a backend the router lets in one with a floor,
// by what it knows when the load is over; unknown of a policy that goes by no curve.
func (r *played) users(backend string, floor float64) (u Users, known bool) {
	u.MinTPS = floor
	r.rooms(func(route *arena.RouteResult, conf *router.Route, i int) {
		room := route.Room[i]
		if conf.Targets[i].Backend != backend || conf.SLO.MinTPS != floor || known && room.Capacity <= u.Users {
			return
		}
		known, u.Users, u.UsersIsLowerBound = true, room.Capacity, room.CapacityLowerBound
	})
	return u, known
}

// guarantees are the prices of those of a run.
func (r *played) guarantees() (list []Guarantee) {
	r.rooms(func(route *arena.RouteResult, conf *router.Route, i int) {
		if route.Room[i].Held == 0 || route.Unkept == nil {
			return
		}
		g := Guarantee{Route: conf.Name, Backend: conf.Targets[i].Backend, Held: route.Room[i].Held, Costs: []Cost{}}
		r.rooms(func(other *arena.RouteResult, of *router.Route, j int) {
			if of.Name == conf.Name || of.Targets[j].Backend != g.Backend {
				return
			}
			cost := Cost{Route: of.Name, Users: other.Room[j].Admits}
			if free := other.Unkept[j]; !free.Unlimited {
				cost.Without = &free.Admits
			}
			g.Costs = append(g.Costs, cost)
		})
		list = append(list, g)
	})
	return list
}

// rooms hands over every target of every route whose room is known.
func (r *played) rooms(each func(route *arena.RouteResult, conf *router.Route, target int)) {
	for k := range r.result.Routes {
		route := &r.result.Routes[k]
		for i := range route.Room {
			each(route, &r.routes[k].Route, i)
		}
	}
}

// floorsOn are the floors that routes promise on a backend, rising.
func (p *plan) floorsOn(backend string) []float64 {
	var floors []float64
	for _, r := range p.cfg.Routes {
		for _, t := range r.Targets {
			if t.Backend == backend && r.SLO.MinTPS > 0 && !slices.Contains(floors, r.SLO.MinTPS) {
				floors = append(floors, r.SLO.MinTPS)
			}
		}
	}
	slices.Sort(floors)
	return floors
}

// plus adds what is known.
func plus(a, b api.Number) api.Number {
	switch {
	case !a.Known():
		return b
	case !b.Known():
		return a
	}
	return a + b
}

// perMillion is the cost of a million tokens of which so many came in that time.
func perMillion(usdPerHour api.Number, hours float64, tokens int) api.Number {
	if tokens == 0 {
		return api.Unknown()
	}
	return api.Number(float64(usdPerHour) * hours / float64(tokens) * 1e6)
}

func (p *plan) leastOf(a *Answer) {
	for _, policy := range p.policies {
		least := Least{Policy: string(policy), Backend: p.searched}
		for _, r := range a.Runs { // by rising number
			if r.Policy == string(policy) && r.Holds && least.Replicas == nil {
				least.Replicas = &r.Replicas
			}
		}
		a.Least = append(a.Least, least)
	}
}

// highestOf is up to which factor everything is kept, from the lowest on.
func (p *plan) highestOf(a *Answer) {
	for _, policy := range p.policies {
		highest := Highest{Policy: string(policy)}
		for _, r := range a.Runs { // by rising factor
			if r.Policy != string(policy) {
				continue
			}
			if !r.Holds {
				break
			}
			highest.Factor = &r.Factor
		}
		a.Highest = append(a.Highest, highest)
	}
}

// verdict answers in one sentence, for the first policy.
func (p *plan) verdict(a *Answer, runs []played) string {
	switch {
	case p.searched != "":
		if n := a.Least[0].Replicas; n != nil {
			return fmt.Sprintf("%d of %s keep what is promised (policy %s).", *n, p.searched, a.Least[0].Policy)
		}
		return fmt.Sprintf("No number of %s from %d to %d keeps what is promised (policy %s).", p.searched, p.least, p.most, a.Least[0].Policy)
	case p.swept:
		if f := a.Highest[0].Factor; f != nil {
			return fmt.Sprintf("What is promised is kept up to ×%.3g of this load, %s requests/s (policy %s).", *f, report.Brief(*f*a.Load.RequestsPerS), a.Highest[0].Policy)
		}
		return fmt.Sprintf("Not even ×%.3g of this load is carried as promised (policy %s).", p.factors[0], a.Highest[0].Policy)
	}
	first := a.Runs[0]
	broken := brokenIn(&first)
	switch {
	case len(broken) == 0 && runs[0].extrapolated():
		return fmt.Sprintf("Yes, if curves go on as they are extrapolated: what is promised is kept (policy %s).", first.Policy)
	case len(broken) == 0:
		return fmt.Sprintf("Yes: what is promised is kept (policy %s).", first.Policy)
	}
	return fmt.Sprintf("No: %s (policy %s).", strings.Join(broken, "; "), first.Policy)
}

// brokenIn are the promises that a run does not keep, in words.
func brokenIn(run *Run) (broken []string) {
	for _, r := range run.Routes {
		if run.Holds || r.Holds || !promises(&r) && slices.ContainsFunc(run.Routes, func(r Route) bool { return promises(&r) }) {
			continue
		}
		broken = append(broken, fmt.Sprintf("%s gets what it is promised in %s, and %s is wanted", r.Route, report.Percent(r.Attainment), report.Percent(api.Number(r.Goal))))
	}
	return broken
}

// extrapolated tells whether some machine ran more at once than twice what its
// curve is known for: less is what the router dares as well.
func (r *played) extrapolated() bool {
	for i, b := range r.result.Backends {
		if b.PeakM > 2*r.fleet[i].curve.hi {
			return true
		}
	}
	return false
}

// notes are what a reader has to know of the figures.
func (p *plan) notes(runs []played, a *Answer) []string {
	notes := []string{}
	peak, unpaid := map[string]int{}, map[string]bool{} // by configured backend
	for _, r := range runs {
		for i, b := range r.result.Backends {
			m := r.fleet[i]
			peak[m.of] = max(peak[m.of], b.PeakM)
			unpaid[m.of] = m.hour == 0
		}
	}
	var beyond, priceless []string
	for _, c := range a.Curves {
		if most := peak[c.Backend]; most > c.Support[1] {
			beyond = append(beyond, fmt.Sprintf("%s %d (known up to %d)", c.Backend, most, c.Support[1]))
		}
		if unpaid[c.Backend] {
			priceless = append(priceless, c.Backend)
		}
	}
	if len(beyond) > 0 {
		notes = append(notes, "more requests at once than the curve is known for, beyond which it is extrapolated: "+strings.Join(beyond, ", "))
	}
	if len(priceless) > 0 {
		notes = append(notes, "no usd_per_hour is configured for "+strings.Join(priceless, ", ")+", so the cost of all is not known")
	}
	first, one := a.Runs[0], !p.swept && p.searched == ""
	for _, b := range first.Backends {
		if one && b.OutputTokens == 0 && first.Holds {
			notes = append(notes, b.Backend+" served nobody, so this load is carried without it")
		}
	}
	for _, route := range first.Routes {
		// Requests of one burst share their luck, so this is the least.
		spread := 2 * math.Sqrt(route.Goal*(1-route.Goal)/float64(route.Offered))
		if one && promises(&route) && math.Abs(float64(route.Attainment)-route.Goal) < spread {
			notes = append(notes, fmt.Sprintf("%s: %s of %d requests is too close to %s to call; a longer --duration says more", route.Route, report.Percent(route.Attainment), route.Offered, report.Percent(api.Number(route.Goal))))
		}
	}
	return append(notes, "engines are taken to have memory for all that runs there, and steps vary by 5 %")
}

// CSV writes one row a run and route. Unknown is empty.
func (a *Answer) CSV(out io.Writer) error {
	w := csv.NewWriter(out)
	w.Write([]string{
		"policy", "factor", "replicas", "route", "offered", "met", "missed", "unmeasured", "shed", "failed", "attainment", "goodput_tps",
		"tps_p10", "tps_p50", "ttft_p50_s", "ttft_p99_s", "waited_p50_s", "waited_p99_s", "usd_per_hour", "usd_per_million_output_tokens",
	})
	for _, r := range a.Runs {
		for _, route := range r.Routes {
			row := []string{r.Policy, report.Cell(api.Number(r.Factor)), "", route.Route}
			if r.Replicas > 0 {
				row[2] = strconv.Itoa(r.Replicas)
			}
			for _, n := range []int{route.Offered, route.Met, route.Missed, route.Unmeasured, route.Shed, route.Failed} {
				row = append(row, strconv.Itoa(n))
			}
			for _, f := range []api.Number{
				route.Attainment, route.Goodput, route.TPS.P10, route.TPS.P50, api.Number(route.TTFT.P50), api.Number(route.TTFT.P99),
				api.Number(route.Waited.P50), api.Number(route.Waited.P99), r.USDPerHour, r.USDPerMillionOutputTokens,
			} {
				row = append(row, report.Cell(f))
			}
			w.Write(row)
		}
	}
	w.Flush()
	return w.Error()
}
