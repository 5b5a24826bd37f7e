package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/pacer-dev/pacer/admin"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/gateway"
	"github.com/pacer-dev/pacer/internal/presets"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/learn"
	"github.com/pacer-dev/pacer/profiles/redisstore"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/router/redisload"
)

// options are what only the demo and tests change. The zero value is a gateway
// as configured.
type options struct {
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
	cfg      *config.Config
	options  options
	log      *slog.Logger
	router   *router.Router
	book     *profiles.Book
	metrics  *telemetry.Metrics
	gateway  *gateway.Gateway
	admin    http.Handler
	backends map[string]*providers.Backend
	loops    []func(context.Context) error
	dataURL  atomic.Pointer[string] // where the data port is; nil = not open yet
	start    func(context.Context)  // before the first request: what the store knows
	close    []func()
}

// wire builds everything, top to bottom, in the order of dependency. It opens
// no port and starts no loop.
func wire(cfg *config.Config, log *slog.Logger, o options) (*program, error) {
	p := &program{cfg: cfg, options: o, log: log, backends: map[string]*providers.Backend{}, start: func(context.Context) {}}
	topo := topology(cfg)

	// What we know about speed.
	p.book = profiles.NewBook(profiles.Options{})
	p.book.Ensure(targetsOf(topo)...)
	for backend, most := range promises(cfg) {
		p.book.Attain(backend, most.share, most.grace)
	}
	if err := p.priors(topo); err != nil {
		return nil, err
	}

	// Who serves it.
	p.router = router.New(router.Options{Rand: mathrand.Float64})
	now := time.Now()
	p.router.Update(now, router.Configure{Topology: topo})
	p.router.Update(now, router.Curves{ByTarget: p.curves()})

	// How to talk to the backends. A change of health may let somebody in line
	// go, so the gateway hears of it; it exists before any request does.
	for _, b := range cfg.Backends {
		backend, err := p.backend(b)
		if err != nil {
			return nil, err
		}
		p.backends[b.Name] = backend
		p.loops = append(p.loops, backend.Run)
		p.close = append(p.close, backend.Close)
	}

	p.metrics = telemetry.New(routeClasses(topo), backendNames(cfg), p.live)

	var placer gateway.Placer = p.router
	if o.placer != nil {
		placer = o.placer(p.router, topo)
	}
	var err error
	p.gateway, err = gateway.New(gateway.Options{
		Config: cfg, Placer: placer, Router: p.router, Book: p.book,
		Backends: p.backends, Metrics: p.metrics, Log: log,
	})
	if err != nil {
		return nil, err
	}
	p.loops = append(p.loops, p.gateway.Run)

	if err := p.sharing(topo); err != nil {
		return nil, err
	}
	p.admin = admin.New(admin.Options{
		Config: cfg, Router: p.router, Book: p.book, Metrics: p.metrics,
		DataURL: func() string {
			if url := p.dataURL.Load(); url != nil {
				return *url
			}
			return ""
		},
	})
	return p, nil
}

// tell hands a change to the router and lets go who may go.
func (p *program) tell(c router.Change) {
	p.gateway.Deliver(p.router.Update(time.Now(), c))
}

// sharing builds the store, the loop that learns, and, with Redis, the one
// that shares load.
func (p *program) sharing(topo router.Topology) error {
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return err
	}
	replica := hex.EncodeToString(id[:])

	var store profiles.Store = &learn.Memory{}
	if !p.cfg.Store.Memory {
		client, err := redisconn.New(p.cfg.Store, p.log)
		if err != nil {
			return err
		}
		p.close = append(p.close, client.Close)
		store = redisstore.New(client)
		load, err := redisload.New(redisload.Options{
			Conn: client, Replica: replica, Replicas: p.cfg.Replicas, Log: p.log,
			Loads:  p.router.Loads,
			OnLoad: func(l router.RemoteLoad) { p.tell(l) },
		})
		if err != nil {
			return err
		}
		p.loops = append(p.loops, load.Run)
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

// backend builds one incarnation of an upstream engine.
func (p *program) backend(b config.Backend) (*providers.Backend, error) {
	header := http.Header{}
	for name, value := range b.Headers {
		header.Set(name, value.Reveal())
	}
	var tlsConfig *tls.Config
	if b.CAFile != "" {
		pem, err := os.ReadFile(b.CAFile)
		if err != nil {
			return nil, fmt.Errorf("backend %s: ca_file: %w", b.Name, err)
		}
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("backend %s: ca_file %s holds no PEM certificate", b.Name, b.CAFile)
		}
		tlsConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	o := providers.Options{
		Name: b.Name, BaseURL: b.URL, Kind: b.Kind, APIKey: b.APIKey.Reveal(), Headers: header,
		Usage: b.Usage, Dial: p.options.dial, ConnectTimeout: p.cfg.Timeouts.Connect, TLS: tlsConfig,
		OnHealth: func(h providers.Health) {
			p.log.Warn("backend health", "backend", b.Name, "breaker", healthOf(h).String())
			if h == providers.Closed { // it was open before
				p.book.Restarted(b.Name)
			}
			p.tell(router.BackendHealth{Backend: b.Name, Health: healthOf(h)})
		},
	}
	if b.MetricsURL != "" {
		if err := p.scrape(o, b.MetricsURL); err != nil {
			return nil, err
		}
	}
	return providers.New(o)
}

// scrape adds the loop that reads an engine's own load.
func (p *program) scrape(o providers.Options, page string) error {
	s, err := providers.NewScraper(providers.ScraperOptions{
		Backend: o, URL: page, Life: router.EngineLoadLife,
		OnLoad: func(l providers.EngineLoad) {
			p.tell(router.EngineLoad{Backend: o.Name, Running: l.Running, Waiting: l.Waiting, At: l.At})
		},
		OnSignal: func(err error) {
			if err != nil {
				p.log.Warn("the engine's own load is not known: only what passes through Pacer is counted", "backend", o.Name, "error", err)
			} else {
				p.log.Info("the engine's own load is known", "backend", o.Name)
			}
		},
	})
	if err != nil {
		return err
	}
	p.loops = append(p.loops, s.Run)
	return nil
}

func healthOf(h providers.Health) router.Health {
	switch h {
	case providers.Open:
		return router.Down
	case providers.HalfOpen:
		return router.Probing
	}
	return router.Up
}

// priors tells the book what the configuration believes of its backends.
func (p *program) priors(topo router.Topology) error {
	for _, b := range p.cfg.Backends {
		var points []profiles.PriorPoint
		if b.Prior.Preset != "" {
			preset, ok := presets.Lookup(b.Prior.Preset)
			if !ok {
				return fmt.Errorf("backend %s: prior: no published curve %q; pacer sim --list prints them", b.Name, b.Prior.Preset)
			}
			for _, pt := range preset.Points {
				points = append(points, profiles.PriorPoint{N: pt.N, TPS: pt.TPS})
			}
		}
		for n, tps := range b.Prior.Points {
			points = append(points, profiles.PriorPoint{N: n, TPS: tps})
		}
		if len(points) == 0 {
			continue
		}
		for _, t := range targetsOf(topo) {
			if t.Backend == b.Name {
				p.book.Prior(t, points)
			}
		}
	}
	return nil
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
