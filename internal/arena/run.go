package arena

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/learn"
	"github.com/pacer-dev/pacer/router"
)

const (
	defaultShareDelay = 200 * time.Millisecond

	// drainLimit is how long after the last arrival a request may end. Who has
	// not by then failed.
	drainLimit = 15 * time.Minute

	// peeked is how many requests are looked at beforehand, to know what
	// prompts and answers are like.
	peeked = 4096

	// checkEvery is how many events pass between two looks at the context.
	checkEvery = 4096
)

// epoch is when every scenario starts. It has a monotonic reading, as the times of a
// gateway have: the difference of two costs a fifth so, and tokens ask for several.
var epoch = func() time.Time {
	start, now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Now()
	return now.Add(start.Sub(now))
}()

// world is a scenario as it is played. It belongs to one goroutine.
type world struct {
	s      Scenario
	now    time.Duration
	clock  time.Time // epoch + now
	agenda agenda
	random *rand.Rand // which gateway, which of equals

	engines  []*engine
	byName   map[string]*engine
	gateways []*gateway
	store    *learn.Memory // of all gateways

	lost  bool  // Redis is
	board board // what gateways tell each other of their loads

	ahead []Arrival // peeked at, not played yet
	more  func() (Arrival, bool)
	open  int    // requests that have not ended
	ever  uint64 // requests that came
	last  bool   // no more come

	refused func(*visit, *router.Refusal) // who looks on; nil = nobody

	routes map[string]*routeTally
	tokens int
	played int
}

// Run plays s to its end. It returns ctx's error when ctx ends first.
func Run(ctx context.Context, s Scenario) (Result, error) {
	if err := s.complete(); err != nil {
		return Result{}, err
	}
	began := time.Now()
	more, stop := iter.Pull(s.Load)
	defer stop()
	w := newWorld(s, more)
	if err := w.build(); err != nil {
		return Result{}, err
	}
	if err := w.play(ctx); err != nil {
		return Result{}, err
	}
	r := w.result()
	r.Wall = time.Since(began)
	return r, nil
}

func newWorld(s Scenario, more func() (Arrival, bool)) *world {
	w := &world{
		s: s, clock: epoch, more: more,
		random: rand.New(rand.NewPCG(s.Seed, 1)),
		byName: map[string]*engine{}, routes: map[string]*routeTally{},
	}
	w.store = w.emptyStore()
	_, _ = w.store.Adopt(context.Background(), s.known, true) // it fails when its context ends
	return w
}

// complete checks s and fills in the defaults.
func (s *Scenario) complete() error {
	if s.Policy == "" {
		s.Policy = Pacer
	}
	s.Replicas = max(s.Replicas, 1)
	if s.ShareDelay <= 0 {
		s.ShareDelay = defaultShareDelay
	}
	if s.LearnEvery <= 0 {
		s.LearnEvery = foldEvery
	}
	names := map[string]bool{}
	for _, b := range s.Backends {
		if names[b.Name] {
			return fmt.Errorf("arena: two backends are called %q", b.Name)
		}
		names[b.Name] = true
	}
	for _, f := range s.Faults {
		if f.Kind.ofBackend() && !names[f.Backend] {
			return fmt.Errorf("arena: a fault of a backend %q, which is none", f.Backend)
		}
		if f.Kind == Drift && !(f.Factor > 0) {
			return fmt.Errorf("arena: Fault.Factor is %v, must be positive", f.Factor)
		}
		if f.Kind.ofGateway() && (f.Gateway < 0 || f.Gateway >= s.Replicas) {
			return fmt.Errorf("arena: Fault.Gateway is %d of %d", f.Gateway, s.Replicas)
		}
		if f.Kind == Tenant && f.Users <= 0 {
			return fmt.Errorf("arena: Fault.Users is %d, must be positive", f.Users)
		}
	}
	routes := map[string]bool{}
	for _, r := range s.Routes {
		if routes[r.Name] {
			return fmt.Errorf("arena: two routes are called %q", r.Name)
		}
		routes[r.Name] = true
		for _, t := range r.Targets {
			if !names[t.Backend] {
				return fmt.Errorf("arena: route %q has a target on %q, which is no backend", r.Name, t.Backend)
			}
		}
		if len(r.Targets) == 0 {
			return fmt.Errorf("arena: route %q has no target", r.Name)
		}
	}
	switch {
	case len(s.Backends) == 0:
		return errors.New("arena: Scenario.Backends is empty")
	case len(s.Routes) == 0:
		return errors.New("arena: Scenario.Routes is empty")
	case s.Load == nil:
		return errors.New("arena: Scenario.Load is missing")
	case s.Duration <= 0 || s.Warmup < 0 || s.Warmup >= s.Duration:
		return fmt.Errorf("arena: Duration is %v and Warmup %v: want 0 ≤ Warmup < Duration", s.Duration, s.Warmup)
	case !slices.Contains(Policies(), s.Policy) && !slices.Contains(talkPolicies(), s.Policy):
		return fmt.Errorf("arena: no policy %q", s.Policy)
	}
	return nil
}

// build makes engines, gateways and the agenda of what is sure to come.
func (w *world) build() error {
	for range peeked {
		a, ok := w.more()
		if !ok {
			break
		}
		w.ahead = append(w.ahead, a)
	}
	for i, b := range w.s.Backends {
		e, err := newEngine(w, i, b)
		if err != nil {
			return err
		}
		w.engines = append(w.engines, e)
		w.byName[b.Name] = e
	}
	for i := range w.s.Routes {
		r := &w.s.Routes[i]
		w.routes[r.Name] = &routeTally{route: r, measured: w.s.Duration - w.s.Warmup}
	}
	for i := range w.s.Replicas {
		w.gateways = append(w.gateways, newGateway(w, i))
	}
	for _, b := range w.s.Backends {
		if b.Joins > 0 {
			w.agenda.enter(b.Joins, &joining{})
		}
	}
	for i := range w.s.Routes {
		if r := &w.s.Routes[i]; r.Joins > 0 {
			w.agenda.enter(r.Joins, &joining{})
		}
	}
	for i := range w.s.Faults {
		w.agenda.enter(w.s.Faults[i].At, &w.s.Faults[i])
	}
	w.expect()
	return nil
}

// play goes from event to event until no request is left.
func (w *world) play(ctx context.Context) error {
	for n := 0; !w.last || w.open > 0; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		e, ok := w.agenda.next()
		if !ok || e.at > w.s.Duration+drainLimit {
			break
		}
		if e.at > w.now {
			w.now, w.clock = e.at, epoch.Add(e.at)
		}
		e.timer.fire(w)
	}
	return nil
}

// coming is the request that comes next. Its time says when.
type coming struct {
	arrival Arrival
	follows bool // another one of the same client, so that it is among the open ones
}

// expect enters the next arrival into the agenda.
func (w *world) expect() {
	var a Arrival
	ok := len(w.ahead) > 0
	if ok {
		a, w.ahead = w.ahead[0], w.ahead[1:]
	} else {
		a, ok = w.more()
	}
	if w.last = !ok || a.At >= w.s.Duration; w.last {
		return
	}
	w.agenda.enter(max(a.At, w.now), &coming{arrival: a})
}

// fire lets the request in.
func (c *coming) fire(w *world) {
	if c.follows {
		w.open--
		if w.now >= w.s.Duration {
			return
		}
	} else {
		w.expect()
	}
	tally := w.routes[c.arrival.Route]
	if tally == nil {
		return // no such route: a 404, which is no load
	}
	w.played++
	w.open++
	v := newVisit(w, tally, c.arrival)
	v.come(w)
}

// fire does what the fault says.
func (f *Fault) fire(w *world) {
	switch f.Kind {
	case Drift:
		w.byName[f.Backend].slow(f.Factor)
	case Kill:
		w.byName[f.Backend].kill()
	case Back:
		w.byName[f.Backend].revive()
	case RedisLost:
		w.lost = true
	case RedisBack:
		w.lost = false
	case Restart, RestartEmpty:
		if f.Kind == RestartEmpty {
			w.store = w.emptyStore()
		}
		for _, g := range w.gateways {
			g.restart()
		}
	case Die:
		w.gateways[f.Gateway].die()
	case Start:
		w.gateways[f.Gateway].start()
	case CutOff:
		w.gateways[f.Gateway].cut = true
	case Mended:
		w.gateways[f.Gateway].cut = false
	case Tenant:
		w.byName[f.Backend].host(f.Users)
	case TenantGone:
		w.byName[f.Backend].evict()
	case RankDies:
		w.byName[f.Backend].killRank()
	case RankBack:
		w.byName[f.Backend].reviveRank()
	}
}

// anyGateway draws the one that a request comes to.
func (w *world) anyGateway() *gateway {
	if len(w.gateways) == 1 {
		return w.gateways[0]
	}
	alive := make([]*gateway, 0, len(w.gateways))
	for _, g := range w.gateways {
		if !g.dead {
			alive = append(alive, g)
		}
	}
	switch {
	case len(alive) == 0:
		return w.gateways[0]
	case len(alive) > 1 && w.s.Lopsided > 0 && w.random.Float64() < w.s.Lopsided:
		return alive[0]
	case len(alive) > 1 && w.s.Lopsided > 0:
		alive = alive[1:]
	}
	return alive[w.random.IntN(len(alive))]
}

func (w *world) emptyStore() *learn.Memory {
	return &learn.Memory{Now: func() time.Time { return w.clock }}
}

// topology is what the gateways are configured with.
func (w *world) topology() router.Topology {
	t := router.Topology{Replicas: w.s.Replicas}
	capped := w.s.Policy == LeastCapped // who set the caps knew of no other engine
	for i, b := range w.s.Backends {
		switch {
		case capped && b.Joins == 0:
			b.MaxConcurrency = max(int(cmp.Or(w.s.caps, 1)*float64(w.engines[i].cap)+0.5), 1)
		case capped, b.Joins > w.now:
			continue
		}
		t.Backends = append(t.Backends, router.Backend{Name: b.Name, MaxConcurrency: b.MaxConcurrency})
	}
	for _, r := range w.s.Routes {
		if r.Joins > w.now {
			continue
		}
		route := r.Route
		route.SLO.Grace = r.Grace
		if w.s.Policy.compared() {
			route.Prefer = router.Prefer(w.s.Policy)
		}
		route.NoAffinity = route.NoAffinity || w.s.Cold
		if capped {
			route.SLO.MinTPS, route.Reserve = 0, 0
		}
		t.Routes = append(t.Routes, route)
	}
	return t
}

// joining is a backend or a route that the gateways are told of.
type joining struct{}

func (*joining) fire(w *world) {
	for _, g := range w.gateways {
		if !g.dead {
			g.deliver(g.router.Update(w.clock, router.Configure{Topology: w.topology()}))
		}
	}
}

// targets returns every target that some route names, each once.
func (w *world) targets() []profiles.Target {
	var list []profiles.Target
	for _, r := range w.s.Routes {
		for _, t := range r.Targets {
			if !slices.Contains(list, t.Target) {
				list = append(list, t.Target)
			}
		}
	}
	return list
}

// floored reports whether r promises a floor.
func (r *Route) floored() bool { return r.Class == router.Interactive && r.SLO.MinTPS > 0 }

// on reports whether r has a target on the backend.
func (r *Route) on(backend string) bool {
	return slices.ContainsFunc(r.Targets, func(t router.RouteTarget) bool { return t.Backend == backend })
}

// room asks a gateway what it lets in when all is over, with guarantees and without.
func (w *world) room(r *Result) {
	g := w.gateways[0].router
	for i, state := range g.Routes(w.clock) {
		r.Routes[i].Room = state.Targets
	}
	t := w.topology()
	if !slices.ContainsFunc(t.Routes, func(rt router.Route) bool { return !rt.SLO.Guarantee.None() }) {
		return
	}
	for i := range t.Routes {
		t.Routes[i].SLO.Guarantee = router.Guarantee{}
	}
	g.Update(w.clock, router.Configure{Topology: t})
	for i, state := range g.Routes(w.clock) {
		r.Routes[i].Unkept = state.Targets
	}
}

// result sums up.
func (w *world) result() Result {
	r := Result{Policy: w.s.Policy, Measured: w.s.Duration - w.s.Warmup, Requests: w.played, Tokens: w.tokens}
	for i := range w.s.Routes {
		r.Routes = append(r.Routes, w.routes[w.s.Routes[i].Name].result())
	}
	if w.s.Policy.learns() {
		w.room(&r)
	}
	for _, e := range w.engines {
		r.Backends = append(r.Backends, e.result())
	}
	return r
}
