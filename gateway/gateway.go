package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/gateway/limit"
	"github.com/pacer-dev/pacer/internal/relayloop"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/internal/tracing"
	"github.com/pacer-dev/pacer/internal/upstream"
	"github.com/pacer-dev/pacer/prefix"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/usage"
)

// Options configures a Gateway; all fields are required unless said.
type Options struct {
	Config   *config.Config
	Router   *router.Router
	Book     *profiles.Book
	Backends map[string]*providers.Backend // by name, one for each of Config.Backends
	Metrics  *telemetry.Metrics
	Log      *slog.Logger
	Access   *slog.Logger // takes the line of each request; nil = Log

	Batches batch.Store // of /v1/files and /v1/batches; nil = they are not served

	Loops *relayloop.Loops // pass streams on; nil = goroutines do

	Tracer *tracing.Tracer // follows each request; nil = nobody does
	Usage  *usage.Book     // takes what each request used, and knows the budgets; nil = nobody does
}

// Gateway serves the data port. It is safe for concurrent use.
type Gateway struct {
	router   *router.Router
	book     *profiles.Book
	metrics  *telemetry.Metrics
	log      *slog.Logger
	access   *slog.Logger
	tracer   *tracing.Tracer // nil = none
	usage    *usage.Book     // nil = nobody counts
	batches  batch.Store     // nil = none
	fileRoom fileRoom
	started  time.Time // what /v1/models gives as the models' age

	relays    relays
	setup     atomic.Pointer[setup]
	switching sync.RWMutex // held while router and setup are not of one configuration
	handler   http.Handler
	endings   endings // cancels running requests that are to end at once
	buffered  budget  // bytes of bodies held
	clients   int     // connections that there may be of clients; 0 = no bound. Set before they are served
	retries   retryBudget
	responses responseIndex // answers that backends keep
	load      load
	copies    copies // of requests, for other routes
	buffers   buffers
	caching   caching
	seed      maphash.Seed // of request.fingerprint
	uncounted jobQueue     // answers that nobody counted the tokens of
}

// load is how many requests the gateway has in hand, and how many more it may take.
type load struct {
	running atomic.Int64  // requests between place and settle
	waiting chan struct{} // holds a token after somebody began to wait in line
	grants  sync.Pool     // channels of waiters that have stood in no line
	places  freePlaces    // that are left, for /readyz
}

// New checks o and returns a Gateway. It starts nothing.
func New(o Options) (*Gateway, error) {
	switch {
	case o.Router == nil:
		return nil, errors.New("gateway: Router is required")
	case o.Book == nil:
		return nil, errors.New("gateway: Book is required")
	case o.Metrics == nil:
		return nil, errors.New("gateway: Metrics is required")
	case o.Log == nil:
		return nil, errors.New("gateway: Log is required")
	}
	g := &Gateway{
		router:   o.Router,
		book:     o.Book,
		metrics:  o.Metrics,
		log:      o.Log,
		access:   cmp.Or(o.Access, o.Log),
		tracer:   o.Tracer,
		usage:    o.Usage,
		batches:  o.Batches,
		relays:   relays{loops: o.Loops, after: loopAfter},
		fileRoom: newFileRoom(),
		started:  time.Now(),
		load:     load{waiting: make(chan struct{}, 1)},
		seed:     maphash.MakeSeed(),
	}
	g.caching.index = prefix.New()
	g.endings.ctx, g.endings.cancel = context.WithCancelCause(context.Background())
	if err := g.Configure(o.Config, o.Backends, nil); err != nil {
		return nil, err
	}
	g.handler = g.routes()
	return g, nil
}

// Configure replaces the configuration; backends has one entry for each of
// c.Backends. Requests under way keep the one they began with. What a key has
// used of its limits is kept while its limits stay the same.
//
// tellRouter is called when c is known to be good, and gives the router the new
// topology: a lease that is granted from then on is served by the new backends,
// whatever its request began with. nil = the router has it already.
func (g *Gateway) Configure(c *config.Config, backends map[string]*providers.Backend, tellRouter func()) error {
	if c == nil {
		return errors.New("gateway: Config is required")
	}
	for _, b := range c.Backends {
		if backends[b.Name] == nil {
			return fmt.Errorf("gateway: Backends has no %q", b.Name)
		}
	}
	p := newSetup(c, backends, g.setup.Load())
	g.switching.Lock()
	defer g.switching.Unlock()
	if tellRouter != nil {
		tellRouter()
	}
	g.setup.Store(p)
	if g.usage != nil {
		g.usage.Configure(spendable(c), ownedBackends(c))
	}
	g.caching.index.Configure(int(min(c.Limits.Prefixes, math.MaxInt32)), p.targets())
	g.caching.index.Believe(func(t router.Target) bool { return upstream.Of(p.backends[t.Backend].conf.Kind).Prefixes })
	g.buffered.limit.Store(c.Limits.Buffered)
	return nil
}

// incarnation returns the backend that l is a lease on: of p, the configuration
// that its request began with, or, for a lease that is younger than a reload, of
// the one in force; nil if that has been replaced too.
func (g *Gateway) incarnation(p *setup, l *router.Lease) *backend {
	if b := p.incarnation(l); b != nil {
		return b
	}
	g.switching.RLock()
	p = g.setup.Load()
	g.switching.RUnlock()
	return p.incarnation(l)
}

// Limiters returns what holds each key to its limits, by the keys' names; nil
// for a key without limits.
func (g *Gateway) Limiters() map[string]*limit.Limiter {
	tenants := g.setup.Load().tenants
	limiters := make(map[string]*limit.Limiter, len(tenants))
	for _, t := range tenants {
		limiters[t.name] = t.limits
	}
	return limiters
}

// Handler is the data port.
func (g *Gateway) Handler() http.Handler { return g.handler }

// Drain makes /readyz answer 503, so that nobody sends more. Running requests go
// on, and so do those that still come; the connection of each answer that begins
// from now on is closed behind it, so that its client turns elsewhere for the
// next one.
func (g *Gateway) Drain() { g.endings.draining.Store(true) }

// End breaks off what still runs: who got nothing yet is told so with a 503, an
// answer that has begun ends in an error event and an aborted connection. It
// does not wait for that.
func (g *Gateway) End() {
	g.endings.end()
}
