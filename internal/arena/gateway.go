package arena

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/internal/baseline"
	core "github.com/pacer-dev/pacer/internal/breaker"
	"github.com/pacer-dev/pacer/prefix"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/learn"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/router/peers"
	"github.com/pacer-dev/pacer/share"
)

// foldEvery is how often what was gathered is folded, shared and handed to
// the router, as in profiles/learn, unless the scenario says otherwise.
const foldEvery = time.Second

// gateway is one replica: the real router and the real book.
type gateway struct {
	world    *world
	index    int
	router   *router.Router
	book     *profiles.Book // nil for a policy that learns nothing
	policies map[router.Prefer]router.Registered
	breakers []breaker

	prefixes *prefix.Index
	chain    prefix.Chain // of the request that is placed

	waiting bool // a look at the lines is due
	dead    bool
	cut     bool // it does not reach Redis

	lives   uint64         // how often it was started
	learner *learn.Learner // nil as book
	judge   share.Judge
	others  map[string]router.Load // what the router heard of them last
	news    uint64                 // of the router, as told
}

// replica is the name by which the store and the others know it.
func (g *gateway) replica() string { return fmt.Sprint(g.index, " ", g.lives) }

// The timers of a gateway.
type (
	learning   struct{ g *gateway }
	sharing    struct{ g *gateway }
	newsworthy struct{ g *gateway }
	looking    struct{ g *gateway }
)

func newGateway(w *world, index int) *gateway {
	g := &gateway{world: w, index: index}
	g.start()
	// Replicas are not in step with each other.
	phase := func(period time.Duration) time.Duration {
		return period * time.Duration(index+1) / time.Duration(w.s.Replicas)
	}
	if w.s.Policy.learns() {
		w.agenda.enter(phase(w.s.LearnEvery), &learning{g})
	}
	if w.s.Replicas > 1 {
		w.agenda.enter(phase(w.s.ShareDelay), &sharing{g})
	}
	return g
}

// start makes a gateway that knows what the configuration and the store say.
func (g *gateway) start() {
	w := g.world
	random := rand.New(rand.NewPCG(w.s.Seed, uint64(100+g.index)+1000*g.lives))
	g.lives++
	g.dead = false
	g.policies = baseline.Policies(baseline.Options{
		Random: random, Now: func() time.Time { return w.clock },
		Weight: func(t router.Target) float64 { return w.byName[t.Backend].weight() },
	})
	g.router = router.New(router.Options{Rand: random.Float64, Policies: g.policies})
	g.prefixes = prefix.New()
	g.prefixes.Configure(0, w.targets())
	g.prefixes.Believe(func(router.Target) bool { return !w.s.Strange }) // as of the engines that it simulates
	g.breakers = make([]breaker, len(w.engines))
	for i := range g.breakers {
		g.breakers[i] = breaker{gateway: g, engine: w.engines[i], core: core.New(core.OfBackend())}
	}
	g.router.Update(w.clock, router.Configure{Topology: w.topology()})
	g.news, g.others = 0, map[string]router.Load{}
	g.judge = share.NewJudge(w.s.Replicas, w.expiry())
	if !w.s.Policy.learns() {
		return
	}
	g.book = profiles.NewBook(profiles.Options{})
	g.learner = learn.NewLearner(g.book, 0)
	g.prepare()
	g.exchange()
}

// exchange pushes what is due, loads what the store knows, and hands the curves to
// the router.
func (g *gateway) exchange() {
	a := g.learner.Next().Do(context.Background(), link{g}, g.replica())
	g.learner.Settle(a)
	g.learner.Apply(g.world.clock, a)
	g.teach()
}

// restart ends the gateway and starts it again.
func (g *gateway) restart() {
	if g.dead {
		return
	}
	g.die()
	g.world.board.drop(g.replica())
	g.start()
}

// die ends the gateway: all its connections end, and the engines hear of it. Who waits in
// a line of it is refused in the end.
func (g *gateway) die() {
	g.dead = true
	for _, e := range g.world.engines {
		for _, v := range slices.Clone(e.visits) {
			if v.gateway == g {
				v.abandon()
			}
		}
	}
}

// prepare tells the book what the configuration says.
func (g *gateway) prepare() {
	w := g.world
	g.book.Ensure(w.targets()...)
	for _, b := range w.s.Backends {
		share, grace, floored := 0.0, time.Duration(0), false
		for i := range w.s.Routes {
			r := &w.s.Routes[i]
			if !r.floored() || !r.on(b.Name) {
				continue
			}
			if !floored || r.Grace < grace {
				grace = r.Grace
			}
			share, floored = max(share, r.Attainment), true
		}
		if floored {
			g.book.Attain(profiles.GroupID{Backend: b.Name}, share, grace)
		}
	}
	for _, t := range w.targets() {
		if e := w.byName[t.Backend]; len(e.conf.Prior) > 0 {
			g.book.Prior(t, e.conf.Prior, e.conf.PromptCost)
		}
	}
}

// fire is the round that profiles/learn does each second.
func (l *learning) fire(w *world) {
	w.agenda.enter(w.now+w.s.LearnEvery, l)
	if l.g.dead {
		return
	}
	l.g.learner.Round(context.Background(), w.clock, link{l.g}, l.g.replica())
	l.g.teach()
}

// teach hands the curves to the router.
func (g *gateway) teach() {
	curves := map[router.Target]*profiles.Curve{}
	for _, t := range g.book.Targets() {
		curves[t] = g.curve(t)
	}
	g.deliver(g.router.Update(g.world.clock, router.Curves{ByTarget: curves}))
}

// curve is what the router is told of t: what was learned, or the truth with
// the margin that was learned.
func (g *gateway) curve(t profiles.Target) *profiles.Curve {
	learned := g.book.Curve(t)
	switch g.world.s.Policy {
	case Oracle:
		margin := learned.Margin()
		if told := g.world.s.margins; told != nil {
			margin = told.at(g, t)
		}
		return g.world.byName[t.Backend].truth().curve(t, margin)
	case OracleNoMargin:
		return g.world.byName[t.Backend].truth().curve(t, noMargin)
	}
	if told := g.world.s.margins; told != nil {
		told.note(g, t, learned.Margin())
	}
	return learned
}

// margins are those that Pacer went by in one run, for an oracle to go by in
// another of the same scenario.
type margins struct{ taught map[teaching]float64 }

// teaching is one time that a gateway's router was told of a target.
type teaching struct {
	gateway int
	at      time.Duration
	target  profiles.Target
}

func (m *margins) note(g *gateway, t profiles.Target, margin float64) {
	if m.taught == nil {
		m.taught = map[teaching]float64{}
	}
	m.taught[teaching{g.index, g.world.now, t}] = margin
}

// at is what was noted at this time of g: its first one until something was, and
// its last one behind the end of that run.
func (m *margins) at(g *gateway, t profiles.Target) float64 {
	for at := g.world.now; at >= 0; at -= foldEvery {
		if margin, ok := m.taught[teaching{g.index, at, t}]; ok {
			return margin
		}
	}
	return m.taught[teaching{g.index, 0, t}]
}

// fire is due each ShareDelay.
func (s *sharing) fire(w *world) {
	w.agenda.enter(w.now+w.s.ShareDelay, s)
	s.g.tell()
}

// fire is due when there is something to tell at once.
func (n *newsworthy) fire(*world) { n.g.tell() }

// tell says to the others what runs here and hears what they run: the step of
// router/redisload.
func (g *gateway) tell() {
	w := g.world
	if g.dead {
		return
	}
	g.news = g.router.News()
	name, since := g.replica(), w.now-w.expiry()
	err := link{g}.tell(name, peers.Of(w.clock, g.router.Own(w.clock), g.prefixes.Tell(w.clock)))
	var others []*paper
	if err == nil {
		others = w.board.others(name, since)
	}
	for _, p := range others {
		p.report.EachSent(func(t router.Target, text []byte) { g.prefixes.Hear(w.clock, t, text) })
	}
	state := g.judge.See(w.clock, len(others), err)
	if remote, ok := peers.Told(state, func() (map[string]router.Load, time.Time) { return w.board.total(g.others, name, since), told(others) }, err); ok {
		g.deliver(g.router.Update(w.clock, remote))
	}
}

// told is until when all of the others have told.
func told(others []*paper) (until time.Time) {
	for _, p := range others {
		if until.IsZero() || p.report.At.Before(until) {
			until = p.report.At
		}
	}
	return until
}

// hasten tells soon what cannot wait, as share.Loop does.
func (g *gateway) hasten() {
	if n := g.router.News(); n != g.news {
		g.news = n
		g.world.agenda.enter(g.world.now+share.LookEvery, &newsworthy{g})
	}
}

// someoneWaits has the lines looked at for as long as somebody is in one.
func (g *gateway) someoneWaits() {
	if g.waiting {
		return
	}
	if at := g.router.NextWake(g.world.clock); !at.IsZero() {
		g.waiting = true
		g.world.agenda.enter(at.Sub(epoch), &looking{g})
	}
}

// fire looks at the lines.
func (l *looking) fire(w *world) {
	l.g.waiting = false
	if l.g.dead {
		return
	}
	l.g.deliver(l.g.router.Update(w.clock, router.Tick{}))
	l.g.someoneWaits()
}

// place asks where v goes.
func (g *gateway) place(v *visit) {
	w := g.world
	var caches router.Caches
	if v.warm = nil; v.arrival.Turn != nil {
		v.Warm(w.clock, nil)
		caches = v
	}
	req := router.Request{
		Route: v.arrival.Route, Tenant: v.arrival.Tenant, Key: v.key, Arrived: epoch.Add(v.arrived),
		PromptTokens: v.arrival.guess(), MaxTokens: v.arrival.MaxTokens, Sequences: 1, Stream: true,
		Class: v.arrival.Class, MinTPS: v.arrival.MinTPS, MaxTTFT: v.arrival.MaxTTFT,
		Exclude: v.excluded, Again: v.sends > 0, Waiter: v,
		Warm: v.warm, Caches: caches, Split: v.arrival.session(),
	}
	if !req.Again {
		v.answer(g.router.Place(w.clock, req))
		return
	}
	// Who failed over goes ahead of those in line, else stands there too, as in the gateway.
	first := req
	first.NoQueue = true
	d := g.router.Place(w.clock, first)
	if d.Refusal != nil && d.Refusal.Reason != router.NoBackend && d.Refusal.Reason != router.ShedUnattainable {
		d = g.router.Place(w.clock, req)
	}
	v.answer(d)
}

// Warm is what the caches have of v's prompt, as far as its gateway knows.
func (v *visit) Warm(now time.Time, into []router.Warmth) []router.Warmth {
	g := v.gateway
	v.arrival.chain(&g.chain)
	v.warm = g.prefixes.Look(now, &g.chain, v.arrival.PromptTokens, v.world.targets(), into)
	if v.world.s.Sessions {
		v.arrival.sessionChain(&g.chain)
		for i := range v.warm {
			v.warm[i].Aside = !g.prefixes.Knows(v.warm[i].Target, &g.chain)
		}
	}
	return v.warm
}

// deliver lets those go who may.
func (g *gateway) deliver(grants []router.Grant) {
	for _, grant := range grants {
		v := grant.Waiter.(*visit)
		if v.ticket != grant.Ticket {
			continue
		}
		v.ticket = nil
		v.answer(grant.Decision)
	}
	g.hasten()
}

// done gives the lease back and returns who may go instead.
func (g *gateway) done(v *visit) []router.Grant {
	l := v.lease
	v.lease = nil
	return l.Done(g.world.clock, float64(v.seen.tokens))
}

// heard tells the policy of a whole answer, if it wants to hear.
func (g *gateway) heard(v *visit) {
	learner, ok := g.policies[router.Prefer(g.world.s.Policy)].Policy.(baseline.Learner)
	if !ok || !v.measured() {
		return
	}
	learner.Learn(baseline.Answer{
		Target: v.lease.Target(), Ended: g.world.clock, Tokens: v.seen.tokens, Took: v.seen.last - v.seen.sent, Decoded: v.tps(),
	})
}
