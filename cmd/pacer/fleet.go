package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// fleet is the backends in service: one member for each configured backend. A
// reload replaces those whose connection changed, and leaves the others as they
// are; what was replaced serves the requests that it has until they end.
type fleet struct {
	program *program

	mu      sync.Mutex // guards what follows
	members map[string]*member
	drained map[string]bool // by an operator; names of backends that are gone, too
	ctx     context.Context // of run; nil while the loops do not run
	running sync.WaitGroup
}

// member is one incarnation of a backend, with the loops that belong to it.
type member struct {
	program *program
	name    string
	link    link
	backend *providers.Backend
	loops   []func(context.Context) error
	stop    context.CancelFunc // nil = no loop runs

	mu      sync.Mutex // guards what follows, and is held while the router is told: news arrives in order
	breaker providers.Health
	page    providers.Condition // by its health page
	drained bool                // by an operator
	gone    bool                // another member has its name, or nobody
}

// link is what makes a connection: while it stays, so does the member.
type link struct {
	conf    config.Backend // what concerns the connection alone
	roots   [sha256.Size]byte
	connect time.Duration
}

func linkOf(b config.Backend, connect time.Duration) (link, []byte, error) {
	l := link{conf: b, connect: connect}
	l.conf.Models = ""
	l.conf.MaxConcurrency, l.conf.Price, l.conf.Labels, l.conf.Prior = 0, config.Price{}, nil, config.Prior{}
	if b.CAFile == "" {
		return l, nil, nil
	}
	pem, err := os.ReadFile(b.CAFile)
	if err != nil {
		return link{}, nil, fmt.Errorf("backend %s: ca_file: %w", b.Name, err)
	}
	l.roots = sha256.Sum256(pem)
	return l, pem, nil
}

// plan returns the members that cfg asks for: those that stay, and new ones,
// which are not started. Nothing is changed until adopt.
func (f *fleet) plan(cfg *config.Config) (map[string]*member, error) {
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
		m, err := f.program.member(b, l, pem)
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
func (f *fleet) adopt(members map[string]*member) (young []*member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, old := range f.members {
		if members[name] != old {
			old.retire()
		}
	}
	for name, m := range members {
		if f.members[name] != m {
			m.drained = f.drained[name] // nobody else knows m yet
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
func (f *fleet) start() {
	for _, m := range f.members {
		if m.stop != nil {
			continue
		}
		ctx, cancel := context.WithCancel(f.ctx)
		m.stop = cancel
		for _, loop := range m.loops {
			f.running.Go(func() {
				if err := ignoreCanceled(loop(ctx)); err != nil {
					f.program.log.Error("a loop of a backend ended", "backend", m.name, "error", err)
				}
			})
		}
	}
}

// run keeps the loops of all members going until ctx ends.
func (f *fleet) run(ctx context.Context) error {
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

// close closes idle connections.
func (f *fleet) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		m.backend.Close()
	}
}

// backends returns the incarnations in service by name.
func backendsOf(members map[string]*member) map[string]*providers.Backend {
	out := make(map[string]*providers.Backend, len(members))
	for name, m := range members {
		out[name] = m.backend
	}
	return out
}

// breakers returns the state of every breaker, by backend.
func (f *fleet) breakers() map[string]providers.Health {
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

// member returns the member called name, nil if there is none.
func (f *fleet) member(name string) *member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members[name]
}

// member builds one incarnation of an upstream engine. pem are the authorities
// that it is trusted by beside the system's.
func (p *program) member(b config.Backend, l link, pem []byte) (*member, error) {
	m := &member{program: p, name: b.Name, link: l}
	header := http.Header{}
	for name, value := range b.Headers {
		header.Set(name, value.Reveal())
	}
	var tlsConfig *tls.Config
	if pem != nil {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("backend %s: ca_file %s holds no PEM certificate", b.Name, b.CAFile)
		}
		tlsConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	dial := p.options.dial
	if b.Address != "" {
		var err error
		if dial, err = providers.At(b.Address, b.URL, dial); err != nil {
			return nil, err
		}
	}
	o := providers.Options{
		Name: b.Name, BaseURL: b.URL, Kind: b.Kind, APIKey: b.APIKey.Reveal(), Headers: header,
		Usage: b.Usage, Dial: dial, ConnectTimeout: l.connect, TLS: tlsConfig,
		OnHealth: m.hearBreaker,
	}
	var err error
	if m.backend, err = providers.New(o); err != nil {
		return nil, err
	}
	m.loops = append(m.loops, m.backend.Run)
	if err := m.probe(o, b.HealthURL); err != nil {
		return nil, err
	}
	if b.MetricsURL != "" {
		if err := m.scrape(o, b.MetricsURL); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// probe adds the loop that looks whether the backend is well.
func (m *member) probe(o providers.Options, page string) error {
	if page == "off" {
		return nil
	}
	p, err := providers.NewProber(providers.ProberOptions{Backend: o, URL: page, OnCondition: m.hearProber})
	if err != nil {
		return err
	}
	if p != nil {
		m.loops = append(m.loops, p.Run)
	}
	return nil
}

// scrape adds the loop that reads an engine's own load.
func (m *member) scrape(o providers.Options, page string) error {
	log := m.program.log
	s, err := providers.NewScraper(providers.ScraperOptions{
		Backend: o, URL: page, Life: router.EngineLoadLife,
		OnLoad: func(l providers.EngineLoad) {
			m.tell(router.EngineLoad{Backend: o.Name, Running: l.Running, Waiting: l.Waiting, At: l.At})
		},
		OnSignal: func(err error) {
			if err != nil {
				log.Warn("the engine's own load is not known: only what passes through Pacer is counted", "backend", o.Name, "error", err)
			} else {
				log.Info("the engine's own load is known", "backend", o.Name)
			}
		},
	})
	if err != nil {
		return err
	}
	m.loops = append(m.loops, s.Run)
	return nil
}

// retire ends the member's loops, and what it says is heard no more; requests
// that it serves go on.
func (m *member) retire() {
	m.mu.Lock()
	m.gone = true
	m.mu.Unlock()
	if m.stop != nil {
		m.stop()
	}
	m.backend.Close()
}

// hearBreaker takes what the breaker thinks.
func (m *member) hearBreaker(h providers.Health) {
	if m.hear(func() { m.breaker = h }, h == providers.Closed) { // it was open before
		m.program.log.Warn("backend health", "backend", m.name, "breaker", h.String())
	}
}

// hearProber takes what the health page says.
func (m *member) hearProber(c providers.Condition, err error) {
	if !m.hear(func() { m.page = c }, c == providers.Sound) { // it was not before
		return
	}
	log := m.program.log.With("backend", m.name, "health", c.String())
	if err != nil {
		log.Warn("backend health", "error", err)
	} else {
		log.Warn("backend health")
	}
}

// hear takes note of news, and tells the book of an engine that is back, and the
// router; false = nobody wants to know, for the member is gone.
func (m *member) hear(note func(), back bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	note()
	if m.gone {
		return false
	}
	if back {
		m.program.book.Restarted(m.name)
	}
	m.publish()
	return true
}

// drain takes a backend out of service for new requests, or puts it back in;
// false = there is none of that name, and none that was drained.
func (f *fleet) drain(name string, drained bool) bool {
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
func (f *fleet) hold(t router.Topology) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, b := range t.Backends {
		if f.drained[b.Name] {
			t.Backends[i].Health = router.Draining
		}
	}
}

// drain is what an operator says.
func (m *member) drain(drained bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.drained == drained {
		return
	}
	m.drained = drained
	m.program.log.Warn("backend drained or resumed by an operator", "backend", m.name, "drained", drained)
	m.publish()
}

// announce tells the router what is thought of a member that it did not know.
func (m *member) announce() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.publish()
}

// publish tells the router whether the backend may be used. mu is held.
func (m *member) publish() {
	h := healthOf(m.breaker)
	switch m.page {
	case providers.Failing:
		h = router.Down
	case providers.Loading:
		h = router.Loading
	}
	say := func(h router.Health) { m.program.tell(router.BackendHealth{Backend: m.name, Health: h}) }
	if !m.drained {
		say(h)
		return
	}
	if h == router.Down || h == router.Loading {
		say(h) // one that is restarted while it is drained starts slowly, too
	}
	say(router.Draining)
}

// tell hands a change to the router unless the member is gone.
func (m *member) tell(c router.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.gone {
		m.program.tell(c)
	}
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
