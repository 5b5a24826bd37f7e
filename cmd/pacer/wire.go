package main

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/pacer-dev/pacer/admin"
	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/fleet"
	"github.com/pacer-dev/pacer/gateway"
	"github.com/pacer-dev/pacer/gateway/limit/redislimit"
	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/history/redishistory"
	"github.com/pacer-dev/pacer/internal/logqueue"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/internal/relayloop"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/internal/tracing"
	"github.com/pacer-dev/pacer/keys"
	"github.com/pacer-dev/pacer/keys/rediskeys"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/learn"
	"github.com/pacer-dev/pacer/profiles/redisstore"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/router/redisload"
	"github.com/pacer-dev/pacer/share"
	"github.com/pacer-dev/pacer/usage"
	"github.com/pacer-dev/pacer/usage/notify"
	"github.com/pacer-dev/pacer/usage/redisusage"
)

// options are what stands around a gateway. The zero value is one as configured,
// on the network.
type options struct {
	// access takes the line of each request; nil means the log. lines is the
	// queue that both go through; nil means none that drops.
	access *slog.Logger
	lines  *logqueue.Queue
	tracer *tracing.Tracer // nil = none
	picker bool            // an Envoy asks, in place of a data port

	// discovered is how it goes with the engines that are discovered; nil = none are.
	discovered func() []fleet.DiscoveryState

	// dial and listen replace the network; nil means TCP.
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	listen func(addr string) (net.Listener, error)
	// policies are those beside the ones that the configuration has words for.
	policies map[router.Prefer]router.Registered
}

// listenTCP opens a port of the network.
func (o options) listenTCP(addr string) (net.Listener, error) {
	if o.listen != nil {
		return o.listen(addr)
	}
	return net.Listen("tcp", addr)
}

// program is a whole gateway, built and not yet started.
type program struct {
	options options
	log     *slog.Logger
	level   *slog.LevelVar // of log; nil = fixed
	systemd *supervisor    // nil = nobody supervises
	room    room           // what the machine allows
	router  *router.Router
	book    *profiles.Book
	metrics *telemetry.Metrics
	watch   *history.Watch
	usage   *usage.Book
	notify  *notify.Sender
	batches batch.Store
	shared  shared
	fleet   *fleet.Fleet

	usageStore *redisusage.Loop // nil = the store is memory
	issued     issued

	gateway *gateway.Gateway
	admin   http.Handler
	loops   []func(context.Context) error
	dataURL atomic.Pointer[string] // where the data port is; nil = not open yet
	refused atomic.Pointer[string] // why the file, or what was discovered, is not in force; nil or "" = it is
	start   func(context.Context)  // before the first request: what the store knows
	close   []func()

	// certificate is that of the data port; nil = not open yet, or plain.
	certificate atomic.Pointer[gateway.Certificate]
}

// shared is what this process is among those that share its store.
type shared struct {
	replica string      // its name there
	before  []string    // and of those whose history it has taken over from its disk
	alone   func() bool // the store as a whole is away
	up      atomic.Bool // the last exchange with the store worked
}

// wire builds everything, top to bottom, in the order of dependency. It opens
// no port and starts no loop.
func wire(cfg *config.Config, log *slog.Logger, o options) (*program, error) {
	p := &program{options: o, log: log, start: func(context.Context) {}, shared: shared{alone: func() bool { return false }}, usage: usage.New(!cfg.Store.Memory)}

	// What we know about speed, and who serves it.
	p.book = profiles.NewBook(profiles.Options{})
	p.router = router.New(router.Options{Rand: mathrand.Float64, Policies: o.policies})

	// Jobs that nobody waits for.
	var err error
	if p.batches, err = p.batchStore(cfg); err != nil {
		return nil, err
	}

	// How to talk to the backends, and to the clients. A change of health may let
	// somebody in line go, so the gateway hears of it.
	p.fleet = fleet.New(fleet.Options{
		Router: p.router, Book: p.book, Log: log, Dial: o.dial, Install: p.install,
		Deliver:  func(grants []router.Grant) { p.gateway.Deliver(grants) },
		Returned: func(backend string) { p.gateway.Returned(backend) },
		Changed:  func(text string) { p.watch.Note(time.Now(), "reload", text) },
	})
	if _, err := p.apply(cfg, "configuration in force"); err != nil {
		return nil, err
	}
	p.loops = append(p.loops, p.fleet.Run)
	p.close = append(p.close, p.fleet.Close)
	p.loops = append(p.loops, p.gateway.Run)
	p.runBatches(cfg)

	p.shared.replica = rand.Text()
	p.remember(cfg.StateDir)
	p.watch.Note(time.Now(), "start", "started, version "+currentBuild().Version)
	if err := p.sharing(cfg); err != nil {
		return nil, err
	}
	p.spending(cfg)
	if err := p.issuing(cfg); err != nil {
		return nil, err
	}
	p.loops = append(p.loops, p.watchAll)
	p.admin = admin.New(admin.Options{
		Config: p.fleet.Config, Router: p.router, Book: p.book, Metrics: p.metrics, Watch: p.watch,
		BytesPerToken: func(t profiles.Target) float64 { return p.gateway.TextFacts(t).BytesPerToken },
		ByText:        func(t profiles.Target) bool { return p.gateway.TextFacts(t).Silent },
		Plan:          p.plan, Drain: p.fleet.Drain, Breakers: p.breakers, LastErrors: p.lastErrors,
		Keys: p.issued.ring, KeysChanged: p.applyKeys, Note: p.audit, Log: log,
		Jobs: p.jobs, Usage: p.usageCells, Budgets: func() []usage.State { return p.usage.States(time.Now()) },
		DataURL: func() string {
			if url := p.dataURL.Load(); url != nil {
				return *url
			}
			return ""
		},
	})
	return p, nil
}

// install puts a configuration into force at the data port: it builds the
// gateway with the first one.
func (p *program) install(s fleet.Service, tellRouter func()) (err error) {
	classes, names := routeClasses(s.Topology), fleet.Names(s.Config)
	if p.gateway != nil {
		err = p.gateway.Configure(s.Config, s.Backends, func() {
			p.metrics.Configure(classes, names)
			tellRouter()
		})
		if err == nil && p.level != nil {
			p.level.Set(levelOf(s.Config.Log))
		}
		return err
	}
	p.metrics = telemetry.New(classes, names, p.live)
	p.watch = history.NewWatch(p.metrics.History())
	tellRouter()
	relays, err := p.relays(s.Config)
	if err != nil {
		return err
	}
	p.gateway, err = gateway.New(gateway.Options{
		Config: s.Config, Router: p.router, Book: p.book, Loops: relays,
		Backends: s.Backends, Metrics: p.metrics, Log: p.log, Batches: p.batches, Access: p.options.access, Tracer: p.options.tracer, Usage: p.usage,
	})
	return err
}

// relays are the loops that pass streams on; nil = goroutines do, as they do where the
// system has no loops.
func (p *program) relays(cfg *config.Config) (*relayloop.Loops, error) {
	// Connections of a network that only a test has are no sockets, and a loop that
	// waits in the kernel would hold up virtual time.
	if cfg.Relay != gateway.RelayByLoop || p.options.dial != nil {
		return nil, nil
	}
	relays, err := relayloop.New(runtime.GOMAXPROCS(0))
	switch {
	case errors.Is(err, relayloop.ErrUnsupported):
		return nil, nil
	case err != nil:
		return nil, err
	}
	p.loops = append(p.loops, relays.Run)
	return relays, nil
}

// tell hands a change to the router and lets go who may go.
func (p *program) tell(c router.Change) {
	p.gateway.Deliver(p.router.Update(time.Now(), c))
}

// sharing builds the store, the loop that learns, and, with Redis, the one
// that shares load.
func (p *program) sharing(cfg *config.Config) error {
	replica := p.shared.replica

	memory := &learn.Memory{}
	var store profiles.Store = memory
	shared := func() bool { return true }
	if !cfg.Store.Memory {
		client, err := redisconn.New(cfg.Store)
		if err != nil {
			return err
		}
		p.close = append(p.close, client.Close)
		store = redisstore.Open(redisstore.Options{Conn: client, Log: p.log})
		link, err := share.NewLink(share.Options{Replicas: cfg.Replicas, Log: p.log})
		if err != nil {
			return err
		}
		money, err := p.moneyShared(cfg, client, link)
		if err != nil {
			return err
		}
		shared = func() bool { return !link.State().Alone && !money.State().Alone }
		p.shared.alone = func() bool { return link.State().Alone }
		load, err := redisload.New(redisload.Options{
			Conn: client, Link: link, Replica: replica, Log: p.log,
			Own: p.router.Own, News: p.router.News, OnLoad: func(l router.RemoteLoad) { p.tell(l) },
			Sent: p.gateway.Tell, OnSent: p.gateway.Hear,
		})
		if err != nil {
			return err
		}
		limits, err := redislimit.New(redislimit.Options{
			Conn: client, Link: link, Replica: replica, Log: p.log, Limiters: p.gateway.Limiters,
		})
		if err != nil {
			return err
		}
		host, _ := os.Hostname() // without one it is called by its number
		past, err := redishistory.New(redishistory.Options{
			Conn: client, Replica: replica, Name: host, Past: p.shared.before, Log: p.log,
			Ring: p.metrics.History(), Watch: p.watch, Alone: func() bool { return link.State().Alone }, Engines: p.addresses,
		})
		if err != nil {
			return err
		}
		p.loops = append(p.loops, past.Run)
		p.loops = append(p.loops, load.Run, limits.Run)
	}
	loop, err := learn.New(learn.Options{
		Book: p.book, Store: store, Replica: replica, Log: p.log,
		OnCurves: func(_ time.Time, curves map[profiles.Target]*profiles.Curve) {
			p.tell(router.Curves{ByTarget: curves})
		},
		OnStore: func(whole bool, lag time.Duration) {
			p.shared.up.Store(whole && shared())
			p.metrics.StoreUp(whole && shared())
			p.metrics.StoreLag(lag)
		},
	})
	if err != nil {
		return err
	}
	p.start = loop.Start
	if p.usageStore != nil {
		p.start = func(ctx context.Context) {
			loop.Start(ctx)
			p.usageStore.Start(ctx)
		}
	}
	run := loop.Run
	if cfg.Store.Memory && cfg.StateDir != "" {
		if p.rememberCurves(memory, cfg.StateDir) {
			run = p.learnAndKeep(run, memory, cfg.StateDir)
		}
	}
	p.loops = append(p.loops, run)
	return nil
}

// moneyShared builds what is shared of budgets, usage and keys: in the store at client, or
// in the one of all regions. It returns who is heard of there.
func (p *program) moneyShared(cfg *config.Config, client *redisconn.Client, link *share.Link) (*share.Link, error) {
	var patience time.Duration
	if cfg.Store.Global != nil {
		var err error
		patience = share.FarPatience
		if client, err = redisconn.Open(redisconn.Options{Store: *cfg.Store.Global, IOTimeout: share.FarIO, MaxBackoff: share.FarBackoff}); err != nil {
			return nil, err
		}
		p.close = append(p.close, client.Close)
		log := p.log.With("store", "global")
		if link, err = share.NewLink(share.Options{Replicas: cfg.Replicas, Expiry: share.FarExpiry, Log: log}); err != nil {
			return nil, err
		}
		// Loads are of a region. To exchange none still tells who is alive.
		alive, err := redisload.New(redisload.Options{
			Conn: client, Key: "alive", Link: link, Replica: p.shared.replica, Log: log,
			Expiry: share.FarExpiry, Patience: patience,
			Own: func(time.Time) map[string]router.Load { return nil }, OnLoad: func(router.RemoteLoad) {},
		})
		if err != nil {
			return nil, err
		}
		p.loops = append(p.loops, alive.Run)
	}
	var err error
	p.usageStore, err = redisusage.New(redisusage.Options{Conn: client, Replica: p.shared.replica, Book: p.usage, Link: link, Log: p.log, Patience: patience})
	if err != nil {
		return nil, err
	}
	p.loops = append(p.loops, p.usageStore.Run)
	p.issued.ring = keys.New(rediskeys.New(client))
	return link, nil
}

// addresses are the URLs of the configured backends. What is discovered has its address
// in its name.
func (p *program) addresses() map[string]string {
	urls := map[string]string{}
	for _, b := range p.fleet.Config().Backends {
		if b.Discover == (config.Discover{}) {
			urls[b.Name] = b.URL
		}
	}
	return urls
}

func routeClasses(t router.Topology) map[string]string {
	out := map[string]string{}
	for _, r := range t.Routes {
		out[r.Name] = r.Class.String()
	}
	return out
}
