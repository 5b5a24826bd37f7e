package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/pacer-dev/pacer/admin"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/gateway"
	"github.com/pacer-dev/pacer/gateway/limit/redislimit"
	"github.com/pacer-dev/pacer/internal/logqueue"
	"github.com/pacer-dev/pacer/internal/presets"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/learn"
	"github.com/pacer-dev/pacer/profiles/redisstore"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/router/redisload"
)

// options are what stands around a gateway. The zero value is one as configured,
// on the network.
type options struct {
	// access takes the line of each request; nil means the log. lines is the
	// queue that both go through; nil means none that drops.
	access *slog.Logger
	lines  *logqueue.Queue

	// dial and listen replace the network; nil means TCP.
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	listen func(addr string) (net.Listener, error)
	// placer replaces the router's own policy; nil keeps it.
	placer func(*router.Router, router.Topology) gateway.Placer
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
	fleet   *fleet
	gateway *gateway.Gateway
	admin   http.Handler
	loops   []func(context.Context) error
	conf    atomic.Pointer[config.Config] // in force
	dataURL atomic.Pointer[string]        // where the data port is; nil = not open yet
	start   func(context.Context)         // before the first request: what the store knows
	close   []func()
}

// plans is what a configuration asks for, worked out before anything changes.
type plans struct {
	cfg     *config.Config
	topo    router.Topology
	priors  map[string][]profiles.PriorPoint // by backend
	members map[string]*member
}

// plan works out cfg. Nothing changes, whether it fails or not.
func (p *program) plan(cfg *config.Config) (plans, error) {
	priors, err := priorsOf(cfg)
	if err != nil {
		return plans{}, err
	}
	members, err := p.fleet.plan(cfg)
	if err != nil {
		return plans{}, err
	}
	topo := topology(cfg)
	p.fleet.hold(topo)
	return plans{cfg, topo, priors, members}, nil
}

// wire builds everything, top to bottom, in the order of dependency. It opens
// no port and starts no loop.
func wire(cfg *config.Config, log *slog.Logger, o options) (*program, error) {
	p := &program{options: o, log: log, start: func(context.Context) {}}
	p.conf.Store(cfg)
	p.fleet = &fleet{program: p}
	plans, err := p.plan(cfg)
	if err != nil {
		return nil, err
	}

	// What we know about speed.
	p.book = profiles.NewBook(profiles.Options{})
	p.believe(plans)

	// Who serves it.
	p.router = router.New(router.Options{Rand: mathrand.Float64})
	now := time.Now()
	p.router.Update(now, router.Configure{Topology: plans.topo})
	p.router.Update(now, router.Curves{ByTarget: p.curves()})

	// How to talk to the backends. A change of health may let somebody in line
	// go, so the gateway hears of it; it exists before any request does.
	p.fleet.adopt(plans.members)
	p.loops = append(p.loops, p.fleet.run)
	p.close = append(p.close, p.fleet.close)

	p.metrics = telemetry.New(routeClasses(plans.topo), backendNames(cfg), p.live)

	var placer gateway.Placer = p.router
	if o.placer != nil {
		placer = o.placer(p.router, plans.topo)
	}
	p.gateway, err = gateway.New(gateway.Options{
		Config: cfg, Placer: placer, Router: p.router, Book: p.book,
		Backends: backendsOf(plans.members), Metrics: p.metrics, Log: log, Access: o.access,
	})
	if err != nil {
		return nil, err
	}
	p.loops = append(p.loops, p.gateway.Run)

	if err := p.sharing(cfg); err != nil {
		return nil, err
	}
	p.admin = admin.New(admin.Options{
		Config: p.conf.Load, Router: p.router, Book: p.book, Metrics: p.metrics,
		Drain: p.fleet.drain, Breakers: p.breakers, LastErrors: p.lastErrors,
		DataURL: func() string {
			if url := p.dataURL.Load(); url != nil {
				return *url
			}
			return ""
		},
	})
	return p, nil
}

// believe tells the book which targets there are, what they are believed to be
// worth before any evidence, and what is promised on them.
func (p *program) believe(x plans) {
	targets := targetsOf(x.topo)
	p.book.Retain(targets...)
	for id, most := range promises(x.cfg) {
		p.book.Attain(id, most.share, most.grace)
	}
	for _, t := range targets {
		p.book.Prior(t, x.priors[t.Backend])
	}
}

// tell hands a change to the router and lets go who may go.
func (p *program) tell(c router.Change) {
	p.gateway.Deliver(p.router.Update(time.Now(), c))
}

// sharing builds the store, the loop that learns, and, with Redis, the one
// that shares load.
func (p *program) sharing(cfg *config.Config) error {
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return err
	}
	replica := hex.EncodeToString(id[:])

	var store profiles.Store = &learn.Memory{}
	if !cfg.Store.Memory {
		client, err := redisconn.New(cfg.Store, p.log)
		if err != nil {
			return err
		}
		p.close = append(p.close, client.Close)
		store = redisstore.Open(redisstore.Options{Conn: client, Log: p.log})
		var others atomic.Pointer[router.RemoteLoad]
		others.Store(&router.RemoteLoad{Replicas: cfg.Replicas})
		load, err := redisload.New(redisload.Options{
			Conn: client, Replica: replica, Replicas: cfg.Replicas, Log: p.log,
			Loads: p.router.Loads,
			OnLoad: func(l router.RemoteLoad) {
				others.Store(&l)
				p.tell(l)
			},
		})
		if err != nil {
			return err
		}
		limits, err := redislimit.New(redislimit.Options{
			Conn: client, Replica: replica, Log: p.log,
			Limiters: p.gateway.Limiters,
			Replicas: func() (int, bool) {
				l := others.Load()
				return l.Replicas, l.Lost
			},
		})
		if err != nil {
			return err
		}
		p.loops = append(p.loops, load.Run, limits.Run)
	}
	loop, err := learn.New(learn.Options{
		Book: p.book, Store: store, Replica: replica, Log: p.log,
		OnCurves: func(_ time.Time, curves map[profiles.Target]*profiles.Curve) {
			p.tell(router.Curves{ByTarget: curves})
		},
		OnStore: func(up bool, lag time.Duration) {
			p.metrics.StoreUp(up)
			p.metrics.StoreLag(lag)
		},
	})
	if err != nil {
		return err
	}
	p.start = loop.Start
	p.loops = append(p.loops, loop.Run)
	return nil
}

// priorsOf returns what cfg believes of its backends, by their names.
func priorsOf(cfg *config.Config) (map[string][]profiles.PriorPoint, error) {
	priors := map[string][]profiles.PriorPoint{}
	for _, b := range cfg.Backends {
		var points []profiles.PriorPoint
		if b.Prior.Preset != "" {
			preset, ok := presets.Lookup(b.Prior.Preset)
			if !ok {
				return nil, fmt.Errorf("backend %s: prior: no published curve %q; pacer sim --list prints them", b.Name, b.Prior.Preset)
			}
			for _, pt := range preset.Points {
				points = append(points, profiles.PriorPoint{N: pt.N, TPS: pt.TPS})
			}
		}
		for n, tps := range b.Prior.Points {
			points = append(points, profiles.PriorPoint{N: n, TPS: tps})
		}
		if len(points) > 0 {
			priors[b.Name] = points
		}
	}
	return priors, nil
}

func (p *program) curves() map[profiles.Target]*profiles.Curve {
	curves := map[profiles.Target]*profiles.Curve{}
	for _, t := range p.book.Targets() {
		curves[t] = p.book.Curve(t)
	}
	return curves
}

func routeClasses(t router.Topology) map[string]string {
	out := map[string]string{}
	for _, r := range t.Routes {
		out[r.Name] = r.Class.String()
	}
	return out
}

func backendNames(cfg *config.Config) []string {
	var out []string
	for _, b := range cfg.Backends {
		out = append(out, b.Name)
	}
	return out
}
