package router

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Router places requests and counts what runs where. It is safe for concurrent
// use. It never blocks and does no I/O.
type Router struct {
	rand   func() float64
	others map[Prefer]Registered // policies beside those of the configuration

	mu         sync.Mutex // guards all below but news, and every backend, model, route, line and lease
	backends   []*backend // as configured
	byName     map[string]*backend
	left       map[incarnation]*backend // those of earlier topologies that had leases at the last one
	routes     []*route                 // as configured
	routeOf    map[string]*route
	gone       map[string]*route // those of earlier topologies that have leases which a guarantee counts
	guarantees []*route          // that have one
	curves     map[Target]curve  // of configured targets
	peers      peers
	rush       rush
	pending    pendingHeap // leases that will count as decoding
	lines      allLines
	forgetAt   time.Time // when the first report of an engine no longer holds; zero = there is none
	lookAt     time.Time // when the streams of some group are to be looked through again
	sweptAt    int64     // unix second up to which promises were swept
	began      time.Time // when it was asked first; zero = never
	clears     time.Time // until when some group is cleared
	scratch    scratch
	journal    journal
	audit      func(*ask) // of every verdict, in tests; nil = none

	news atomic.Uint64 // see News
}

// peers is what the router knows of the other replicas.
type peers struct {
	load     RemoteLoad
	heard    bool            // load told something
	replicas int             // configured: they count until load tells
	scale    int             // of one more here there are so many over all replicas; 1 while loads are shared
	told     map[string]Load // last
	tellings uint64          // how often this replica began to tell what it runs
	heardOf  uint64          // the last of them after which it heard of the others
	since    time.Time       // of the silence
	alike    alike
}

// allLines is what all lines have together.
type allLines struct {
	waiting   int     // tickets in them
	displaced []Grant // to those who had to make room in a full line, not yet told
	tickets   uint64  // given out so far: the order within one deadline
	round     uint64  // of waking, see wake
}

// scratch is memory that one decision leaves to the next. Nothing in it says
// anything between two of them.
type scratch struct {
	verdicts  []verdict               // of judge
	asks      uint64                  // that had marks made
	marked    uint64                  // the last of them
	elsewhere ask                     // the same request on the route that it spills to
	asking    ask                     // the request that is being placed: a policy sees it, so it would be moved to the heap
	cohorts   [forecastCohorts]cohort // of predict
	lines     []queued                // of the last round of waking
	round     uint64                  // its number
	most      int                     // that are tried in each of them
}

// Options configures a Router.
type Options struct {
	// Rand breaks ties and spreads retries: a source of floats in [0, 1).
	// Required. Called under the router's lock.
	Rand func() float64

	// Policies are those beside the ones that the configuration has words for, and
	// go before them. They belong to this router.
	Policies map[Prefer]Registered
}

// New returns a router without backends; Update(Configure) gives it some.
func New(o Options) *Router {
	if o.Rand == nil {
		panic("router: Options.Rand is missing")
	}
	return &Router{
		rand: o.Rand, others: o.Policies, peers: peers{replicas: 1, scale: 1},
		byName: map[string]*backend{}, left: map[incarnation]*backend{}, routeOf: map[string]*route{}, gone: map[string]*route{}, curves: map[Target]curve{},
	}
}

// BackendLoad is what the router knows of one backend: of all that runs there,
// whatever it is counted with.
type BackendLoad struct {
	Backend           string
	Health            Health
	Hung              bool    // it shows no life, see BackendHealth
	Waiting, Decoding int     // of this replica
	N, M              int     // over all replicas, with what runs there beside Pacer
	PromptTokens      int     // of this replica's waiting
	Floor             float64 // highest of this replica's running streams, 0 = none
	Cap               int     // least slow-start cap in force, 0 = none

	// Seen is how many tokens this replica's streams have brought, and Expected how
	// many by the curves they would have brought before the engine became slower, or
	// faster, at levels that were seen.
	// Both only grow, but for another incarnation.
	Seen, Expected float64

	// Compared is how many seconds of one sequence those tokens took. It grows alike.
	Compared float64

	// Engine is what the engine itself reported, nil while no report is in
	// force. ForeignWaiting and ForeignDecoding are what of it is taken for
	// the load of others; N and M include it.
	Engine                          *EngineLoad
	ForeignWaiting, ForeignDecoding int

	// Models are those that are counted by themselves, as configured; nil where
	// the backend's are counted together.
	Models []ModelLoad
}

// ModelLoad is what of a BackendLoad runs on one model.
type ModelLoad struct {
	Model string // "" = all that clients name and no route does
	Load         // of this replica
	N, M  int    // over all replicas
}

// Loads returns the load of every configured backend, in their order.
func (r *Router) Loads() []BackendLoad {
	r.mu.Lock()
	defer r.mu.Unlock()
	loads := make([]BackendLoad, len(r.backends))
	for i, b := range r.backends {
		loads[i] = b.load()
	}
	return loads
}

// load adds up the groups of b.
func (b *backend) load() BackendLoad {
	l := BackendLoad{Backend: b.name, Health: b.health, Hung: b.hung, N: b.elsewhere.Decoding, M: b.leased()}
	for _, g := range b.groups {
		own := Load{Waiting: g.own.waiting, Decoding: g.own.decoding, PromptTokens: g.own.prompt, Floor: g.highestFloor()}
		l.Waiting += own.Waiting
		l.Decoding += own.Decoding
		l.PromptTokens += own.PromptTokens
		l.Floor = max(l.Floor, own.Floor)
		l.Seen += g.speed.seen
		l.Expected += g.speed.expected
		l.Compared += g.speed.compared
		l.N += own.Decoding + g.foreign.running.value
		l.M += g.foreign.all.value
		l.ForeignWaiting += g.foreign.all.value - g.foreign.running.value
		l.ForeignDecoding += g.foreign.running.value
		if least := g.slowStart(); least > 0 && (l.Cap == 0 || least < l.Cap) {
			l.Cap = least
		}
		if g.foreign.heard() {
			report := g.foreign.report
			l.Engine = &report
		}
		if g.id.Separate {
			l.Models = append(l.Models, ModelLoad{Model: g.id.Model, Load: own, N: g.n(), M: g.m()})
		}
	}
	return l
}

// slowStart returns the cap in force: after a recovery, and while a floor is
// promised on a curve that is unknown.
func (g *group) slowStart() int {
	if g.ramp.recovered {
		return g.ramp.cap
	}
	for _, m := range g.models {
		if m.starts() && (m.promised > 0 || m.floors.running.highest(math.Inf(1)) > 0) {
			return g.ramp.cap
		}
	}
	return 0
}

// InService reports whether at least one backend may be used.
func (r *Router) InService() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.backends {
		if b.inService() {
			return true
		}
	}
	return false
}

// NextWake returns when the router should get a Tick although nothing else
// happens; zero when nobody waits, in line or for the answer that there was no
// room. Time alone lets a waiter go when a stream
// has caught up with its floor, a first token came, or a slow start has seen
// enough.
func (r *Router) NextWake(now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lines.waiting == 0 && len(r.lines.displaced) == 0 {
		return time.Time{}
	}
	return now.Add(wakeEvery)
}

// wakeEvery is how often the lines are looked at while somebody waits.
const wakeEvery = 50 * time.Millisecond
