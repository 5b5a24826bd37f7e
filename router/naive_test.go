package router

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// naive holds a router under random events against a second reading of the
// rules, written as they are told and not as they are computed: it counts the
// leases anew for every question. Of the router it reads the caps of slow start,
// the predicted TTFT, what runs there beside Pacer and which curves there are.
type naive struct {
	*bench
	t       *testing.T
	random  *rand.Rand
	leases  []*Lease
	tokens  map[*Lease]float64
	tickets []*Ticket
	remote  map[string]Load
	apart   map[string]bool // whose models are separate
	scaled  int             // of one more here there are so many over all replicas
	levels  map[*model]levels

	outcomes [OutcomeNoBackend + 1]int
}

// levels are those of a target after the last look through its streams, and after the
// one before: by that the last look said who leads.
type levels struct {
	at           time.Time
	last, before Level
}

// note follows the levels. It is called before time passes.
func (w *naive) note() {
	for _, b := range w.backends {
		for _, g := range b.groups {
			for _, m := range g.models {
				if v := w.levels[m]; v.at != g.lookedAt {
					w.levels[m] = levels{g.lookedAt, m.lately.all, v.last}
				}
			}
		}
	}
}

func (w *naive) sleep(d time.Duration) {
	w.note()
	w.bench.sleep(d)
}

func (w *naive) pick(n int) int { return w.random.IntN(n) }

func oneOf[T any](w *naive, xs ...T) T { return xs[w.pick(len(xs))] }

func newNaive(t *testing.T, seed uint64) *naive {
	w := &naive{t: t, random: rand.New(rand.NewPCG(seed, 99)), tokens: map[*Lease]float64{}, scaled: 1, levels: map[*model]levels{}}
	names := []string{"x", "y", "z", "u"}[:1+w.pick(4)]
	if w.pick(2) == 0 {
		w.apart = map[string]bool{names[w.pick(len(names))]: true}
	}
	var routes []Route
	for i := range 1 + w.pick(4) {
		routes = append(routes, w.route(i, names))
	}
	w.bench = newBench(t, names, routes...)
	for i := range w.topo.Backends {
		w.topo.Backends[i].MaxConcurrency = oneOf(w, 0, 0, 0, 1, 5, 12)
	}
	w.configure()
	for _, name := range names {
		if w.pick(4) > 0 {
			w.teach(name)
		}
	}
	return w
}

func (w *naive) route(i int, names []string) Route {
	rt := Route{
		Name: fmt.Sprint("r", i), Class: oneOf(w, Interactive, Interactive, Batch), Prefer: oneOf(w, Headroom, Order, Cheapest, Pack),
		SLO:     SLO{MinTPS: oneOf(w, 0, 15, 30, 30, 45, 1e6), MaxTTFT: oneOf(w, 0, 0, 0, 2*time.Second, time.Millisecond)},
		Reserve: oneOf(w, 1, 1, 0, 3, 50), MaxWaiting: oneOf(w, 0, 1, 3), Targets: []RouteTarget{{Target: w.target(names[0], "m")}},
	}
	if w.apart[names[0]] && w.pick(2) == 0 { // what two models that share a backend have free depends on who takes it
		rt.Targets = append(rt.Targets, RouteTarget{Target: w.target(names[0], "n")})
	}
	for _, name := range names[1:] {
		if w.pick(3) > 0 {
			rt.Targets = append(rt.Targets, RouteTarget{Target: w.target(name, oneOf(w, "m", "m", "n")), OutputPrice: float64(w.pick(3))})
		}
	}
	steps := []Step{{Kind: Queue, Wait: time.Duration(1+w.pick(3000)) * time.Millisecond}, {Kind: Spill, Route: fmt.Sprint("r", w.pick(4))}, {Kind: BestEffort}}
	for _, s := range steps {
		if w.pick(2) == 0 {
			rt.OnInfeasible = append(rt.OnInfeasible, s)
		}
	}
	return rt
}

func (w *naive) target(name, model string) Target {
	return Target{Backend: name, Model: model, Separate: w.apart[name]}
}

// teach hands some curve to a target of the backend.
func (w *naive) teach(name string) {
	c := carrying(2+w.pick(12), oneOf(w, 20.0, 30, 30, 45), 70)
	c.visited, c.steps = oneOf(w, 0, 0, 1, 3, 6, 20), oneOf(w, 0.0, 100, 1000)
	c.d, c.answer = oneOf(w, 0, 1e-5, 1e-4), oneOf(w, 0.0, 40, 300)
	if w.pick(2) == 0 {
		c.first = profiles.TTFT{Base: 0.05, PerToken: 1e-4, Uncached: 1}
	}
	w.mu.Lock()
	w.Router.learn(w.target(name, oneOf(w, "m", "n")), c)
	w.mu.Unlock()
	w.sleep(scanEvery) // a stream that was too slow may have a floor out of reach
	w.settle(w.tick())
}

func (w *naive) settle(grants []Grant) {
	for _, g := range grants {
		if l := g.Decision.Lease; l != nil {
			w.outcomes[OutcomeGranted]++
			w.leases = append(w.leases, l)
		} else if g.Decision.Refusal == nil {
			w.t.Fatalf("a grant of nothing: %+v", g)
		}
		w.forget(g.Ticket)
	}
}

func (w *naive) forget(gone *Ticket) {
	w.tickets = slices.DeleteFunc(w.tickets, func(t *Ticket) bool { return t == gone })
}

// on counts what runs in g: sequences with a lease and prompt tokens that wait,
// of all replicas.
func (w *naive) on(g *group) (leased, prompts int) {
	for _, l := range w.leases {
		if l.group != g {
			continue
		}
		leased += l.weight
		if l.phase == waiting {
			prompts += l.prompt
		}
	}
	far := w.far(g)
	return leased + far.Waiting + far.Decoding, prompts + far.PromptTokens
}

// far is what other replicas run in g.
func (w *naive) far(g *group) Load {
	if w.scaled > 1 {
		far, _ := w.guess(g.silence, func(l *Lease) bool { return l.group == g })
		return far
	}
	far := w.remote[g.backend.name]
	if g.id.Separate {
		return far.Models[g.id.Model]
	}
	return far
}

// guess is what the other one of two replicas that are silent is thought to run: what
// it had told, as far as it still holds, and of what has come here since, as much
// again. room is what has to be left free for it beside that.
func (w *naive) guess(s *silence, here func(*Lease) bool) (far Load, room int) {
	waits, decodes, prompts := 0, 0, 0
	for _, l := range w.leases {
		switch {
		case !here(l):
		case l.phase == waiting:
			waits, prompts = waits+l.weight, prompts+l.prompt
		default:
			decodes += l.weight
		}
	}
	ours := float64(waits + decodes)
	fade := math.Pow(math.E, -w.now.Sub(w.peers.since).Minutes()/5)
	before, theirs := fade*float64(s.own), fade*float64(s.told.Waiting+s.told.Decoding)
	if ours == 0 && s.own == 0 && s.told.Waiting+s.told.Decoding == 0 {
		return Load{}, 0
	}
	left := 1.0 // of theirs
	if waits+decodes < s.own {
		left = (ours + 1) / float64(s.own+1)
	}
	copied := 0.0 // of ours, how much of each the other has beside what it told
	if ours > before {
		copied = (ours - before) / ours
	}
	whole := func(x float64) int { return int(math.Floor(x + 0.5)) }
	far.Waiting = whole(fade*left*float64(s.told.Waiting) + copied*float64(waits))
	far.Decoding = max(whole(left*theirs+copied*ours)-far.Waiting, 0)
	far.PromptTokens = whole(fade*left*float64(s.told.PromptTokens) + copied*float64(prompts))
	if theirs >= 0.5 && far.Waiting+far.Decoding > 0 {
		far.Floor = s.told.Floor
	}
	full := theirs + copied*ours
	if s.place == 0 { // of the last place here the other has the first half
		full += min(max(ours+1-before, 0), 1)
	}
	return far, max(whole(full)-far.Waiting-far.Decoding, 0)
}

// spread is what a newcomer has to leave free in g for a replica that is silent.
func (w *naive) spread(g *group) int {
	if w.scaled == 1 {
		return 0
	}
	_, room := w.guess(g.silence, func(l *Lease) bool { return l.group == g })
	return room
}

// unheard is how many sequences the other replica, which tells, has placed since, if it
// does as this one: what it had is the mean of the last two times that it told.
func (w *naive) unheard(g *group) int {
	if w.remote == nil || w.scaled > 1 {
		return 0
	}
	ours := 0.0
	for _, l := range w.leases {
		if l.group == g {
			ours += float64(l.weight)
		}
	}
	return int(max(math.Trunc(w.Router.peers.alike.of(2)*(ours-float64(g.own.before[0]+g.own.before[1])/2)), 0))
}

// below counts the places below a cap that are taken on b, by all replicas.
func (w *naive) below(b *backend) int {
	leased, idle := 0, 0
	for _, l := range w.leases {
		if l.group.backend != b {
			continue
		}
		if leased += l.weight; l.weight == 0 {
			idle++
		}
	}
	far := w.remote[b.name]
	if w.scaled > 1 {
		far, _ = w.guess(b.silence, func(l *Lease) bool { return l.group.backend == b })
	}
	return leased + far.Waiting + far.Decoding + idle
}

// keeps reports whether each of k sequences on m keeps need with so many prompt
// tokens to prefill.
func (w *naive) keeps(m *model, k, prompts int, answer, need float64) bool {
	if need <= 0 {
		return true
	}
	warm := k <= m.group.ramp.cap
	if !m.known {
		leased, _ := w.on(m.group)
		return warm || leased == 0
	}
	c := m.curve.(form)
	extra := float64(prompts) / max(answer, 32)
	charged := func(low float64) float64 { return low / (1 + low*c.d*extra) }
	k = max(k, 1)
	least, most := c.Support()
	// Nothing tells how speed falls where one level alone was seen.
	untold := func(low func(int) float64) bool {
		highest := charged(m.idle)
		if most > 1 {
			highest = low(most)
		}
		return k == most+1 && float64(most) < 1.5*float64(least) && highest >= need
	}
	if v := m.lately.all; k > 1 && v.Steps >= 20 && v.Time >= 3 {
		tps, n := v.Tokens/v.Seconds, max(v.AtN/v.Seconds, 1)
		low := func(k int) float64 { return charged(tps * c.Shape(n) / c.Shape(float64(k)) * (1 - c.Shown())) }
		within := c.visited == 0 || k <= max(c.visited, m.group.ramp.cap, int(1.25*n)+1)
		if low(k) >= need && within || tps >= 1.15*need && float64(k) < n+2 {
			return true
		}
		return untold(low)
	}
	if k == 1 && charged(c.Low(1, 0)) >= need ||
		c.Low(k, extra) >= need || k <= 4 && c.Seen(k) > 0 && 1/(1/c.Seen(k)+c.d*extra) >= 1.1*need {
		return true
	}
	switch {
	case untold(func(n int) float64 { return c.Low(n, extra) }):
		return true
	case most == 0: // a prior is believed everywhere
		return false
	case k < least:
		return c.Low(least, extra)*c.TPS(k)/c.TPS(least) >= need
	case k > most && warm:
		return c.Low(most, extra)*c.TPS(k)/c.TPS(most) >= need
	}
	return false
}

// usual is how long an answer of m is, or else of the route, 256 unless known.
func usual(m *model, rt *route) float64 {
	switch {
	case m.answer > 0:
		return m.answer
	case rt != nil && rt.lengths.weight > 0:
		return rt.lengths.sum / rt.lengths.weight
	}
	return 256
}

// objection is the first rule that says no to req on target i of rt; "" if none
// does.
func (w *naive) objection(req *Request, rt *route, i int) string {
	m := rt.models[i]
	if m == nil {
		return "unknown"
	}
	g, b := m.group, m.group.backend
	floor, maxTTFT := rt.conf.SLO.MinTPS, rt.conf.SLO.MaxTTFT
	if req.MinTPS != nil {
		floor = *req.MinTPS
	}
	if rt.conf.Class == Batch || !(floor > 0) {
		floor = 0
	}
	weight := max(req.Sequences, 1)
	leased, prompts := w.on(g)
	k := leased + g.foreign.most() + w.spread(g) + w.unheard(g) + weight
	answer := usual(m, rt)
	shows := false // alone on a target that 300 steps were not seen of
	if c, ok := m.curve.(form); ok && leased <= 0 {
		shows = c.steps > 0 && c.steps < 300 && floor <= 4*m.solo
	}
	switch {
	case b.health == Down, b.health == Loading, b.health == Draining, slices.Contains(req.Exclude, b.name):
		return "service"
	case b.health == Probing && slices.ContainsFunc(w.leases, func(l *Lease) bool { return b.probe == l }):
		return "probing"
	case b.maxConcurrency > 0 && w.below(b)+weight > b.maxConcurrency:
		return "cap"
	case g.ramp.recovered && k > g.ramp.cap && leased > 0:
		return "recovered"
	case !shows && !w.keeps(m, k, prompts, answer, floor):
		return "own floor"
	case !w.protected(g, k, prompts+req.PromptTokens):
		return "protects"
	case req.PromptTokens > 0 && !w.payable(g, req.PromptTokens):
		return "lead"
	case rt.conf.Class == Batch && !(w.reserved(rt, g, k, prompts+req.PromptTokens) && w.placed(rt, b, weight)):
		return "reserve"
	case maxTTFT > 0 && !w.inTime(req, rt, m, k-weight, maxTTFT):
		return "ttft"
	}
	return ""
}

// protected is rule 3.
func (w *naive) protected(g *group, k, prompts int) bool {
	for _, l := range w.leases {
		if l.group != g || l.floor <= 0 || l.floor > l.model.solo {
			continue
		}
		if !w.keeps(l.model, k, prompts, usual(l.model, nil), l.floor) {
			return false
		}
	}
	far, most := w.far(g).Floor, 0.0
	for _, m := range g.models {
		most = max(most, m.promised)
	}
	for _, m := range g.models {
		if far > 0 && far <= m.solo && m.promised >= min(far, most) && !w.keeps(m, k, prompts, usual(m, nil), far) {
			return false
		}
	}
	return true
}

// promptCosts are the seconds of a prompt token by the fit and by first tokens.
func (w *naive) promptCosts(g *group) (fit, first float64) {
	start := 400e-6
	for _, m := range g.models {
		if c, ok := m.curve.(form); ok {
			fit = max(fit, c.d)
		}
	}
	said := fit
	for _, m := range g.models {
		if c, ok := m.curve.(form); ok && c.first.Known() {
			said = max(said, c.first.PerToken*c.first.Uncached)
		}
	}
	if said > 0 {
		start = min(max(said, 50e-6), 400e-6)
	}
	own := g.price.prefills.all()
	return fit, (own.xy + start*9e4) / (own.xx + 9e4)
}

// inTime reports whether the first token comes in time, as far as it can anywhere.
func (w *naive) inTime(req *Request, rt *route, m *model, present int, most time.Duration) bool {
	own := func(m *model) time.Duration {
		_, first := w.promptCosts(m.group)
		return seconds(m.ttft.Base + max(m.ttft.PerToken*m.ttft.Uncached, first)*float64(req.PromptTokens))
	}
	c := m.group.present()
	c.m = present
	waited := w.now.Sub(req.Arrived)
	wait := m.group.ttft(w.now, m, &c) + waited*3/2
	possible := slices.ContainsFunc(rt.models, func(m *model) bool {
		return m != nil && m.group.backend.inService() && own(m) < most
	})
	return wait <= most && req.PromptTokens == 0 || wait+own(m) <= most || !possible && wait <= most
}

// payable reports whether a prompt breaks nobody's lead.
func (w *naive) payable(g *group, prompt int) bool {
	w.note()
	fit, first := w.promptCosts(g)
	cost := max(fit, first)
	_, prompts := w.on(g)
	behind, done := float64(prompts), 0.0
	far, size := w.far(g), float64(prompt)
	if w.remote != nil || w.scaled > 1 {
		size *= 1.3 // somebody else may be placing one, too
	}
	if l := g.own.unserved.front; l != nil {
		behind -= float64(l.prompt)
		began := l.placed
		if g.price.prefills.front.After(began) {
			began = g.price.prefills.front
		}
		done = min(w.now.Sub(began).Seconds()/cost, float64(l.prompt))
	}
	for _, l := range w.leases {
		if l.group != g || l.floor <= 0 {
			continue
		}
		p := l.progress()
		if !l.stream || l.phase != decoding || l.floor > l.model.solo || g.lookedAt.Sub(l.placed)-p.last > 5*time.Second {
			continue
		}
		lead := p.tokens/(l.floor*float64(l.weight)) + l.grace.Seconds() + early(l.model, l.floor) - (g.lookedAt.Sub(l.placed) - l.first).Seconds()
		if p.rough {
			lead = max(lead, l.grace.Seconds()/2-cost*(g.price.prefills.done-l.prefilled))
		}
		if v := w.levels[l.model].before; !(v.Steps >= 20 && v.Time >= 3) && l.averagesBelow(l.floor, g.lookedAt, p) {
			lead = 0
		}
		if lead > -0.5 && 1.2*cost*(float64(prompts)-done+size) > lead {
			return false
		}
	}
	if far.Leads.Streams > 0 && 1.2*cost*(float64(prompts)-done+size) > far.Leads.Least.Seconds() {
		return false
	}
	interactive := slices.ContainsFunc(w.Router.routes, func(rt *route) bool {
		return rt.conf.Class == Interactive && slices.ContainsFunc(rt.models, func(m *model) bool { return m != nil && m.group == g })
	})
	if far.Waiting > 0 && interactive { // else nobody knows their grace
		for _, m := range g.models {
			if m.floors.remote > 0 && m.floors.remote <= m.solo && 1.2*cost*(behind+size) > w.patience(m, m.floors.remote) {
				return false
			}
		}
	}
	for _, l := range w.leases {
		if l.group != g || l.floor <= 0 || l.floor > l.model.solo || l.phase != waiting || !interactive {
			continue
		}
		if 1.2*cost*(behind+size) > w.patience(l.model, l.floor) {
			return false
		}
	}
	return true
}

// patience is for how long who waits on m for its first token may wait behind the
// first in line, in seconds.
func (w *naive) patience(m *model, floor float64) float64 {
	return 0.25 + early(m, floor) // no route here has a grace
}

// early is by how many seconds a token comes before floor has it due, at the speed of the last look.
func early(m *model, floor float64) float64 {
	if m.lately.step == 0 {
		return 0
	}
	return max(1/floor-2*m.lately.step, 0)
}

// reserved is rule 4.
func (w *naive) reserved(rt *route, g *group, k, prompts int) bool {
	kept := w.now.Before(g.yield.denied)
	for _, t := range w.tickets {
		kept = kept || t.class == Interactive && slices.ContainsFunc(t.route.models, func(m *model) bool { return m != nil && m.group == g })
	}
	if kept {
		return g.yield.credit >= 1
	}
	leased, _ := w.on(g)
	for _, m := range g.models {
		promised, floor, reserve, lowest := false, 0.0, rt.conf.Reserve, math.Inf(1)
		for _, other := range w.Router.routes {
			if other.conf.Class == Interactive && other.conf.SLO.MinTPS > 0 && slices.Contains(other.models, m) {
				promised, reserve, lowest = true, max(reserve, other.conf.Reserve), min(lowest, other.conf.SLO.MinTPS)
				if !m.outOfReach(1, other.conf.SLO.MinTPS) {
					floor = max(floor, other.conf.SLO.MinTPS)
				}
			}
		}
		if floor == 0 {
			floor = m.idle / 4
		}
		switch {
		case !promised:
		case !m.known:
			if k+reserve > g.ramp.cap {
				return false
			}
		case w.keeps(m, k+reserve, prompts, usual(m, nil), floor):
		case leased <= 0 && m.outOfReach(1, lowest): // no user has a place there
		case w.keeps(m, 1, 0, 0, floor), k+reserve > slowStartCap:
			return false
		}
	}
	return true
}

// placed is rule 4 below the cap of b.
func (w *naive) placed(rt *route, b *backend, weight int) bool {
	if b.maxConcurrency == 0 || w.below(b) == 0 {
		return true
	}
	left := b.maxConcurrency - w.below(b) - weight
	for _, other := range w.Router.routes {
		for _, m := range other.models {
			if m == nil || m.group.backend != b || other.conf.Class != Interactive || other.conf.SLO.MinTPS <= 0 {
				continue
			}
			if left < max(rt.conf.Reserve, other.conf.Reserve) && !m.outOfReach(1, m.promised) {
				return false
			}
		}
	}
	return true
}

func (w *naive) request() Request {
	req := Request{
		Route: oneOf(w, w.topo.Routes...).Name, Arrived: w.now, Stream: w.pick(4) > 0,
		PromptTokens: oneOf(w, 0, 0, 10, 500, 5000, 10_000_000), Sequences: oneOf(w, 0, 1, 1, 1, 3),
		Tenant: fmt.Sprint(w.pick(3)), NoQueue: w.pick(4) == 0,
	}
	if w.pick(4) == 0 {
		floor := oneOf(w, 0, 10, 33, 60, 1e300, -5, math.Inf(1), math.NaN())
		req.MinTPS = &floor
	}
	if w.pick(8) == 0 {
		req.Exclude = []string{"x"}
	}
	return req
}

// place compares what a preview says, what the rules say, and what is done.
func (w *naive) place() {
	req := w.request()
	rt := w.routeOf[req.Route]
	seen, _ := w.Preview(w.now, req)
	waits := rt.ahead(rt.conf.Class) > 0 && !req.NoQueue
	open, objections := false, make([]string, len(rt.models))
	for i := range rt.models {
		objections[i] = w.objection(&req, rt, i)
		open = open || objections[i] == ""
		if c := seen.Candidates[i]; c.Feasible != (objections[i] == "") {
			w.t.Fatalf("%v: preview of %+v: %+v, the rules say %q", w.now.Sub(start), req, c, objections[i])
		}
	}
	if open && seen.Chosen == (Target{}) && (seen.Behind == 0 || !waits) {
		w.t.Fatalf("%v: preview of %+v: it could go, and gets no place behind %d (somebody waits: %v)", w.now.Sub(start), req, seen.Behind, waits)
	}
	d := w.Place(w.now, req)
	if d.Ticket != nil && w.bids(d.Ticket) {
		if !open || waits {
			w.t.Fatalf("%v: %+v bids for a place, and there is none: the rules say %q (somebody waits: %v)", w.now.Sub(start), req, objections, waits)
		}
		d = w.tellBid(d.Ticket)
	}
	outcome := w.outcome(&d)
	w.outcomes[outcome]++
	if seen.Outcome != outcome || d.Refusal != nil && seen.Shed != d.Refusal.Reason {
		w.t.Fatalf("%v: preview %v (%v), place %v: %+v for %+v", w.now.Sub(start), seen.Outcome, seen.Shed, outcome, d, req)
	}
	switch leased := 0; outcome {
	case OutcomePlaced:
		i := slices.IndexFunc(rt.conf.Targets, func(t RouteTarget) bool { return t.Target == d.Lease.Target() })
		if objections[i] != "" || waits {
			w.t.Fatalf("%v: placed %+v on %v, the rules say %q (somebody waits: %v)", w.now.Sub(start), req, d.Lease.Target(), objections[i], waits)
		}
	case OutcomeProbe:
		if leased, _ = w.on(d.Lease.group); leased > 0 {
			w.t.Fatalf("%v: a probe beside %d others", w.now.Sub(start), leased)
		}
	case OutcomeBestEffort:
		i := slices.IndexFunc(rt.conf.Targets, func(t RouteTarget) bool { return t.Target == d.Lease.Target() })
		if rt.conf.Class == Batch && objections[i] != "" && objections[i] != "ttft" {
			w.t.Fatalf("%v: batch on %v, the rules say %q", w.now.Sub(start), d.Lease.Target(), objections[i])
		}
		if b := d.Lease.group.backend; b.maxConcurrency > 0 && w.scaled == 1 && b.leased() > b.maxConcurrency {
			w.t.Fatalf("%v: %d on %s, of at most %d", w.now.Sub(start), b.leased(), b.name, b.maxConcurrency)
		}
	default:
		if open && !waits {
			w.t.Fatalf("%v: %v: %+v, the rules say %q", w.now.Sub(start), outcome, req, objections)
		}
	}
	if d.Lease != nil {
		w.leases = append(w.leases, d.Lease)
	}
	if d.Ticket != nil {
		w.tickets = append(w.tickets, d.Ticket)
	}
	w.settle(w.tick())
}

// bids reports whether t stands in line because the other replica has to hear of it first:
// who may have come there meanwhile could not pay for its prompt.
func (w *naive) bids(t *Ticket) bool {
	m := t.bid.model
	if m == nil {
		return false
	}
	cost := 1.2 * 1.3 * m.group.price.token * float64(t.bid.prompt)
	if least := max(m.group.leastGrace+m.early(m.group.promised), 100*time.Millisecond).Seconds(); w.remote == nil || w.scaled > 1 || cost <= least {
		w.t.Fatalf("%v: %+v bids for a place with a prompt of %.3f s, and a grace of %.3f s", w.now.Sub(start), t.req, cost, least)
	}
	return true
}

// tellBid tells the other replica what runs here, and returns what becomes of t: it has a
// place then, where it bade for it or, where it may not go there any more, elsewhere.
func (w *naive) tellBid(t *Ticket) (d Decision) {
	for range t.route.models {
		w.Own(w.now)
		for _, g := range w.Update(w.now, RemoteLoad{Replicas: 2, ByBackend: w.remote}) {
			if g.Ticket == t {
				d = g.Decision
				continue
			}
			w.settle([]Grant{g})
		}
		if d.Lease != nil {
			return d
		}
		if !w.bids(t) {
			break
		}
	}
	w.t.Fatalf("%v: %+v told that it bids, and has no place: %+v", w.now.Sub(start), t.req, w.seen(t.req))
	return d
}

// outcome is what a decision was.
func (w *naive) outcome(d *Decision) Outcome {
	switch last := w.Decisions(1)[0]; {
	case d.Spilled != "":
		return OutcomeSpilled
	case d.Lease != nil && d.Policy == "best_effort":
		return OutcomeBestEffort
	case d.Lease != nil && last.Outcome == OutcomeProbe && last.Time.Equal(w.now): // placed at once may not be kept
		return OutcomeProbe
	case d.Lease != nil:
		return OutcomePlaced
	case d.Ticket != nil:
		return OutcomeQueued
	case d.Refusal.Reason == NoBackend:
		return OutcomeNoBackend
	}
	return OutcomeShed
}

// busy checks that nobody is first in line who could go.
func (w *naive) busy() {
	for _, rt := range w.Router.routes {
		for class := range rt.lines {
			t := rt.lines[class].first()
			for i := range rt.models {
				if t != nil && !w.bids(t) && w.objection(&t.req, rt, i) == "" {
					w.t.Fatalf("%v: the first of %s waits, and the rules let it go: %+v", w.now.Sub(start), rt.conf.Name, t.req)
				}
			}
		}
	}
}

// free takes what Routes calls free, no faster than replicas hear of each other, and
// gives it back.
func (w *naive) free() {
	hear := func() {
		for range 2 {
			if w.remote != nil {
				w.settle(w.Update(w.now, RemoteLoad{Replicas: 2, ByBackend: w.remote}))
			}
		}
	}
	hear()
	i := w.pick(len(w.topo.Routes))
	s := w.Routes(w.now)[i]
	const plenty = 200
	if s.Waiting > 0 || w.scaled > 1 || s.Free >= plenty {
		return // what is free is the fleet's, of which this gateway takes its share
	}
	var taken []*Lease
	count := 0
	for count < plenty {
		d := w.bench.place(s.Route.Name, noQueue)
		if d.Lease != nil {
			taken = append(taken, d.Lease)
		}
		if w.outcome(&d) != OutcomePlaced {
			break
		}
		count++
		hear()
	}
	for _, l := range slices.Backward(taken) {
		w.settle(l.Done(w.now, 0))
	}
	hear()
	if s.Unlimited && count < plenty || !s.Unlimited && count != s.Free {
		w.t.Fatalf("%v: %d were placed on %+v", w.now.Sub(start), count, s)
	}
}
