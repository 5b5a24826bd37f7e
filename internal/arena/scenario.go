package arena

import (
	"cmp"
	"iter"
	"time"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

// Scenario is what Run plays. Backends, Routes, Load and Duration are
// required; the zero value of every other field means the default named in its
// comment.
type Scenario struct {
	Backends []Backend
	Routes   []Route

	// Load is the requests, by rising time; what comes at Duration or later is
	// not played. It is read once, as virtual time goes on.
	Load iter.Seq[Arrival]

	Faults []Fault
	Policy Policy // default: Pacer

	// Replicas is how many gateways share the backends; each request comes to
	// one of them at random. Default: 1.
	Replicas int

	// Lopsided is the share of the requests that come to the first gateway that is
	// started; the others have equal parts of the rest. Default: equal parts.
	Lopsided float64

	// ShareDelay is how often gateways tell each other what they run, and so
	// how old what they hear is at most. Default: 200ms.
	ShareDelay time.Duration

	// LearnEvery is how often gateways fold what they measured, share it and draw
	// their curves. Default: 1s.
	LearnEvery time.Duration

	// Duration is how long requests come; those that have come may end later.
	// Warmup is the first part of it, of which nothing is counted. Default of
	// Warmup: none.
	Duration, Warmup time.Duration

	// Cold has Pacer not go where a prompt is cached: affinity: off. Telling is what
	// engines say of their caches. Default: Pacer goes there, and they are honest.
	Cold    bool
	Telling Telling

	// Sessions has Pacer go to a cache only where the session was before: affinity: session.
	// Default: wherever the prompt is cached.
	Sessions bool

	// Strange has gateways not know that engines of their kind keep prefixes, as of hosted
	// ones. Default: they know, as of vLLM and SGLang.
	Strange bool

	// Retries is how often a client that was shed comes back; a request counts
	// once, by what became of it in the end. Default: never.
	Retries int

	// Manners are the shares of clients by how they come back, as often as Retries
	// allows. Default: all obey.
	Manners [manners]float64

	// caps is how much of the true caps LeastCapped goes by. Default: all.
	caps float64

	// margins is filled by Pacer, and an oracle takes its own from it. nil: each
	// learns its own.
	margins *margins

	// follow says what a client asks next whose request has ended, and when. Default:
	// nobody asks again.
	follow func(now time.Duration, ended *Arrival) (next Arrival, ok bool)

	// known is what the store has at the start. Default: nothing.
	known map[profiles.Target]profiles.Sums

	// Seed decides everything that is drawn: noise, ties, which gateway.
	Seed uint64
}

// Backend is one simulated engine and what the gateway is told of it.
type Backend struct {
	Name           string
	Engine         sim.EngineOptions // the truth; a Seed of 0 is derived from the scenario's
	MaxConcurrency int               // as configured at the gateway; 0 = none

	// Prior is what the gateway believes before it has seen anything. Default:
	// nothing, a cold start.
	Prior []profiles.PriorPoint

	// PromptCost is the seconds of one prompt token that come with Prior. Default:
	// nobody says.
	PromptCost float64

	// Joins is when the gateway is told of it. Default: from the start.
	Joins time.Duration

	// Ranks is how many engines stand behind one URL, as with data parallelism:
	// each sequence goes to the one on which the fewest are. Default: 1.
	Ranks int

	// Front is what stands before them. Default: nothing.
	Front Front

	Price      Price   // for the cost of tokens
	USDPerHour float64 // for the cost of having it
}

// Price is in USD per million tokens.
type Price struct{ Input, Output float64 }

// Route is a route as the router has it, and what its streams are judged by.
type Route struct {
	router.Route
	Attainment float64       // share of streams that shall keep the floor; 0 = 0.99
	Grace      time.Duration // by how much the last token of a stream may be late; 0 = none
	Joins      time.Duration // when the gateways are told of it; nobody asks for it before
}

// Arrival is one request of a client. It is streamed.
type Arrival struct {
	At            time.Duration
	Route         string
	Tenant        string
	PromptTokens  int
	GuessedTokens int // what gateways take PromptTokens for before they read it in the usage; 0 = they know
	OutputTokens  int // of the answer; nobody knows it before its end
	MaxTokens     int // what the client tells of it; 0 = nothing
	HangsUp       int // the client has enough after so many tokens; 0 = it reads to the end

	kind int // of clients that ask again, as Scenario.follow knows them; 0 = nobody does

	// Turn is what the prompt is of, where a prefix cache may have it; nil = nothing
	// that ever comes again.
	Turn *Turn

	// What replaces the route's; nil = the route's own.
	MinTPS  *float64
	MaxTTFT *time.Duration
	Class   *router.Class
}

// guess is the length of the prompt as gateways have it.
func (a *Arrival) guess() int { return cmp.Or(a.GuessedTokens, a.PromptTokens) }

// Fault is something that happens to the fleet.
type Fault struct {
	At      time.Duration
	Kind    FaultKind
	Backend string  // of Drift, Kill, Back, Tenant, TenantGone, RankDies and RankBack
	Gateway int     // of Die, Start, CutOff and Mended: from 0 to Replicas - 1
	Factor  float64 // of Drift: how many times as long every step takes from then on
	Users   int     // of Tenant: sequences that it keeps running
}

// FaultKind says what happens.
type FaultKind uint8

// The faults.
const (
	Drift        FaultKind = iota // a backend becomes slower, or faster
	Kill                          // a backend dies with all that runs there
	Back                          // and is started again
	RedisLost                     // gateways no longer hear of each other
	RedisBack                     // and hear again
	Restart                       // the gateways are started again: who streams is cut, the curves come from the store
	RestartEmpty                  // the same, and the store is empty
	Tenant                        // somebody whom no gateway sees keeps sequences running on a backend
	TenantGone                    // and leaves
	Die                           // a gateway ends with all its streams, and says nothing to the others; at 0: it is not there yet
	Start                         // and is started, with the curves from the store
	CutOff                        // a gateway alone no longer reaches Redis
	Mended                        // and reaches it again
	RankDies                      // the last rank of a backend ends with all that runs there
	RankBack                      // and is started again
)

// ofGateway reports whether the fault happens to one gateway.
func (k FaultKind) ofGateway() bool { return k == Die || k == Start || k == CutOff || k == Mended }

// ofBackend reports whether the fault happens to one backend.
func (k FaultKind) ofBackend() bool {
	return k == Drift || k == Kill || k == Back || k == Tenant || k == TenantGone || k == RankDies || k == RankBack
}

// String returns drift, kill, back, redis_lost, redis_back, restart,
// restart_empty, tenant, tenant_gone, die, start, cut_off, mended, rank_dies or rank_back.
func (k FaultKind) String() string {
	switch k {
	case Drift:
		return "drift"
	case Kill:
		return "kill"
	case Back:
		return "back"
	case RedisLost:
		return "redis_lost"
	case RedisBack:
		return "redis_back"
	case Restart:
		return "restart"
	case RestartEmpty:
		return "restart_empty"
	case Tenant:
		return "tenant"
	case TenantGone:
		return "tenant_gone"
	case Die:
		return "die"
	case Start:
		return "start"
	case CutOff:
		return "cut_off"
	case Mended:
		return "mended"
	case RankDies:
		return "rank_dies"
	case RankBack:
		return "rank_back"
	}
	return "unknown"
}
