package fleet

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// Options configures a Fleet; all fields are required unless said.
type Options struct {
	Router *router.Router // is told of routes, curves and health
	Book   *profiles.Book // is told of targets, priors and promises
	Log    *slog.Logger

	// Install puts a configuration into force at the data port. It calls
	// tellRouter when the configuration is known to be good: a lease that is
	// granted from then on is served by the new backends.
	Install func(Service, func()) error

	// Deliver hands grants to those who wait for them. It is not called before
	// Install has returned once.
	Deliver func([]router.Grant)

	// Changed hears, in one line, what a configuration has changed that came into
	// force after the first; nil = nobody wants to know.
	Changed func(text string)

	// Returned hears that a backend is in service again: its engine may have been started
	// anew. nil = nobody wants to know.
	Returned func(backend string)

	// Dial replaces the network; nil means TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Service is a configuration, worked out.
type Service struct {
	Config   *config.Config
	Topology router.Topology
	Backends map[string]*providers.Backend // by name, one for each of Config.Backends
}

// Fleet is the backends in service: one member for each configured backend. It
// is safe for concurrent use, but for Apply: one runs at a time.
//
// Lock order: Fleet.mu before member.mu.
type Fleet struct {
	o    Options
	conf atomic.Pointer[config.Config] // in force

	mu      sync.Mutex // guards what follows
	members map[string]*member
	drained map[string]bool // by an operator; names of backends that are gone, too
	ctx     context.Context // of Run; nil while the loops do not run
	running sync.WaitGroup
}

// New returns a Fleet without backends. It starts nothing.
func New(o Options) *Fleet { return &Fleet{o: o} }

// Config returns the configuration in force, nil before the first.
func (f *Fleet) Config() *config.Config { return f.conf.Load() }

// draft is what a configuration asks for, worked out before anything changes.
type draft struct {
	service Service
	beliefs beliefs
	members map[string]*member
}

// Apply puts cfg into force: the first one, and later ones in the place of those
// before. It is worked out in full before anything changes, so that a bad one
// changes nothing. Requests under way keep what they began with.
//
// Some fields cannot change while the program runs. Apply leaves those as they
// are, and returns their names. why is what the log says when it is done.
func (f *Fleet) Apply(cfg *config.Config, why string) (needRestart []string, err error) {
	old := f.conf.Load()
	if old != nil {
		cfg, needRestart = withRunning(old, cfg)
	}
	x, err := f.draft(cfg)
	if err != nil {
		return nil, err
	}
	var grants []router.Grant
	err = f.o.Install(x.service, func() {
		x.beliefs.tell(f.o.Book) // whose targets have to be there before a lease is
		grants = f.o.Router.Update(time.Now(), router.Configure{Topology: x.service.Topology})
		f.conf.Store(cfg)
	})
	if err != nil {
		return nil, err
	}
	f.o.Deliver(grants)
	ending := map[string]bool{}
	for _, b := range cfg.Backends {
		ending[b.Name] = b.Draining
	}
	for _, m := range f.adopt(x.members, ending) {
		if was := backendNamed(old, m.name); was != nil && was.Engine() != m.link.conf.Engine() {
			f.returned(m.name) // another engine: what was learned may not hold
		}
		m.announce()
	}
	for name, m := range x.members {
		m.end(ending[name])
	}
	f.tell(router.Curves{ByTarget: f.curves()})
	if old != nil {
		changed := differences(old, cfg)
		f.o.Log.Info(why, changed...)
		if f.o.Changed != nil {
			f.o.Changed(why + summary(changed))
		}
	}
	return needRestart, nil
}

// draft works out cfg. Nothing changes, whether it fails or not.
func (f *Fleet) draft(cfg *config.Config) (draft, error) {
	topo := Topology(cfg)
	beliefs, err := beliefsOf(cfg, topo)
	if err != nil {
		return draft{}, err
	}
	members, err := f.planMembers(cfg)
	if err != nil {
		return draft{}, err
	}
	f.hold(topo, cfg)
	return draft{Service{cfg, topo, backendsOf(members)}, beliefs, members}, nil
}

func backendsOf(members map[string]*member) map[string]*providers.Backend {
	out := make(map[string]*providers.Backend, len(members))
	for name, m := range members {
		out[name] = m.backend
	}
	return out
}

// Backends returns the incarnations in service, by name.
func (f *Fleet) Backends() map[string]*providers.Backend {
	f.mu.Lock()
	defer f.mu.Unlock()
	return backendsOf(f.members)
}

// tell hands a change to the router and lets go who may go.
func (f *Fleet) tell(c router.Change) { f.o.Deliver(f.o.Router.Update(time.Now(), c)) }

// returned tells those who remember what a backend's engine did that it may be another.
func (f *Fleet) returned(name string) {
	f.o.Book.Restarted(name)
	if f.o.Returned != nil {
		f.o.Returned(name)
	}
}

func (f *Fleet) curves() map[profiles.Target]*profiles.Curve {
	curves := map[profiles.Target]*profiles.Curve{}
	for _, t := range f.o.Book.Targets() {
		curves[t] = f.o.Book.Curve(t)
	}
	return curves
}

// planMembers returns the members that cfg asks for: those that stay, and new
// ones, which are not started. Nothing is changed until adopt.
func (f *Fleet) planMembers(cfg *config.Config) (map[string]*member, error) {
	f.mu.Lock()
	old := f.members // replaced as a whole, by the one who plans
	f.mu.Unlock()
	members := make(map[string]*member, len(cfg.Backends))
	for _, b := range cfg.Backends {
		l, pem, err := linkOf(b, cfg.Timeouts.Connect)
		if err != nil {
			return nil, err
		}
		if m := old[b.Name]; m != nil && reflect.DeepEqual(m.link, l) {
			members[b.Name] = m
			continue
		}
		m, err := f.build(b, l, pem)
		if err != nil {
			return nil, err
		}
		members[b.Name] = m
	}
	return members, nil
}

// maxDrained is how many names are known as drained before those that nobody has
// any more are forgotten: engines that are discovered come and go.
const maxDrained = 1024

// adopt puts the planned members into service and returns the new ones. What an
// operator said of a backend holds for whatever stands behind its name, and if
// nothing does for a while, too: an engine that is drained and restarted is not
// to be found meanwhile.
func (f *Fleet) adopt(members map[string]*member, ending map[string]bool) (young []*member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, old := range f.members {
		if members[name] != old {
			old.retire()
		}
	}
	for name, m := range members {
		if f.members[name] != m {
			m.drained, m.ending = f.drained[name], ending[name] // nobody else knows m yet
			young = append(young, m)
		}
	}
	f.members = members
	if len(f.drained) > maxDrained {
		maps.DeleteFunc(f.drained, func(name string, _ bool) bool { return members[name] == nil })
	}
	if f.ctx != nil {
		f.start()
	}
	return young
}

// start runs the loops of the members whose do not run yet. mu is held.
func (f *Fleet) start() {
	for _, m := range f.members {
		if m.stop != nil {
			continue
		}
		ctx, cancel := context.WithCancel(f.ctx)
		m.stop = cancel
		for _, loop := range m.loops {
			f.running.Go(func() {
				if err := loop(ctx); err != nil && !errors.Is(err, context.Canceled) {
					f.o.Log.Error("a loop of a backend ended", "backend", m.name, "error", err)
				}
			})
		}
	}
}

// Run keeps the loops of all members going until ctx ends.
func (f *Fleet) Run(ctx context.Context) error {
	f.mu.Lock()
	f.ctx = ctx
	f.start()
	f.mu.Unlock()
	<-ctx.Done()
	f.mu.Lock()
	f.ctx = nil // a reload that is late starts nothing
	f.mu.Unlock()
	f.running.Wait()
	return nil
}

// Close closes idle connections.
func (f *Fleet) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		m.backend.Close()
	}
}

// Breakers returns the state of every breaker, by backend.
func (f *Fleet) Breakers() map[string]providers.Health {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[string]providers.Health, len(f.members))
	for name, m := range f.members {
		m.mu.Lock()
		out[name] = m.breaker
		m.mu.Unlock()
	}
	return out
}

// Failing returns why the health pages fail of those backends of which they do, by
// backend.
func (f *Fleet) Failing() map[string]Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]Failure{}
	for name, m := range f.members {
		m.mu.Lock()
		if m.failure.Message != "" {
			out[name] = m.failure
		}
		m.mu.Unlock()
	}
	return out
}

// Drain takes a backend out of service for new requests, or puts it back in;
// false = there is none of that name, and none that was drained.
func (f *Fleet) Drain(name string, drained bool) bool {
	f.mu.Lock() // so that no reload replaces it meanwhile
	defer f.mu.Unlock()
	m := f.members[name]
	if m == nil && (drained || !f.drained[name]) {
		return false
	}
	if delete(f.drained, name); drained {
		if f.drained == nil {
			f.drained = map[string]bool{}
		}
		f.drained[name] = true
	}
	if m != nil {
		m.drain(drained)
	}
	return true
}

// hold makes the drained backends of t begin so: a new incarnation would take
// requests until the router is told of it.
func (f *Fleet) hold(t router.Topology, cfg *config.Config) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, b := range t.Backends {
		if f.drained[b.Name] || cfg.Backends[i].Draining {
			t.Backends[i].Health = router.Draining
		}
	}
}
