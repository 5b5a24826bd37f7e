package fleet

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/credential"
	"github.com/pacer-dev/pacer/internal/upstream"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// member is one incarnation of a backend, with the loops that belong to it.
type member struct {
	fleet   *Fleet
	name    string
	link    link
	backend *providers.Backend
	loops   []func(context.Context) error
	stop    context.CancelFunc // nil = no loop runs
	unasked atomic.Int64       // when hearUnasked last said it, in Unix seconds

	mu      sync.Mutex // guards what follows, and is held while the router is told: news arrives in order
	breaker providers.Health
	page    providers.Condition // by its health page
	failure Failure             // of the health page; "" = it does not fail
	hung    bool                // it shows no life
	stands  bool                // and its pages answer
	drained bool                // by an operator
	ending  bool                // it is about to end, by who found it
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
	l.conf.Models, l.conf.Draining = "", false
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

// build makes one incarnation of an upstream engine. pem are the authorities
// that it is trusted by beside the system's.
func (f *Fleet) build(b config.Backend, l link, pem []byte) (*member, error) {
	m := &member{fleet: f, name: b.Name, link: l}
	o, err := reach(b, l.connect, pem, f.o.Dial)
	if err != nil {
		return nil, err
	}
	o.OnHealth, o.OnUnasked, o.OnHung = m.hearBreaker, m.hearUnasked, m.hearPulse
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

// Reach returns how b is talked to over the network: where, by whom it is trusted,
// and with which credentials.
func Reach(b config.Backend, connect time.Duration) (providers.Options, error) {
	_, pem, err := linkOf(b, connect)
	if err != nil {
		return providers.Options{}, err
	}
	return reach(b, connect, pem, nil)
}

func reach(b config.Backend, connect time.Duration, pem []byte, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (providers.Options, error) {
	o := providers.Options{
		Name: b.Name, BaseURL: b.URL, Kind: b.Kind, Headers: http.Header{},
		Usage: b.Usage, Client: b.Client, Dial: dial, ConnectTimeout: connect, Keys: keysOf(b), Proxy: proxyOf(b), Region: b.Region,
	}
	for name, value := range b.Headers {
		o.Headers.Set(name, value.Reveal())
	}
	if pem != nil {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(pem) {
			return o, fmt.Errorf("backend %s: ca_file %s holds no PEM certificate", b.Name, b.CAFile)
		}
		o.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	if b.Address != "" {
		at, err := providers.At(b.Address, b.URL, dial)
		if err != nil {
			return o, err
		}
		o.Dial, o.Address = at, b.Address
	}
	return o, nil
}

// keysOf are the credentials of b.
func keysOf(b config.Backend) (keys []providers.Key) {
	one := func(secret config.Secret, file string, c config.Command) credential.Source {
		switch {
		case file != "":
			return credential.File(file)
		case c.On():
			return credential.Command(credential.CommandOptions{Args: c.Run, Timeout: c.Timeout, Life: c.Life})
		}
		return credential.Static(secret.Reveal())
	}
	for _, k := range b.APIKeys {
		keys = append(keys, providers.Key{Source: one(k.Key, k.File, k.Command), MaxConcurrency: k.MaxConcurrency})
	}
	switch {
	case len(keys) > 0:
	case b.Auth == upstream.AuthGoogle:
		keys = []providers.Key{{Source: credential.Google()}}
	case b.Auth == upstream.AuthAzure:
		keys = []providers.Key{{Source: credential.Azure()}}
	case b.Auth == upstream.AuthAWS:
		keys = []providers.Key{{Source: credential.Amazon()}}
	case b.Keyed():
		keys = []providers.Key{{Source: one(b.APIKey, b.APIKeyFile, b.APIKeyCommand)}}
	}
	return keys
}

// proxyOf is the way out to b: its own proxy, that of the environment, or none.
func proxyOf(b config.Backend) func(*http.Request) (*url.URL, error) {
	switch text := b.EgressProxy.Reveal(); text {
	case "":
		return http.ProxyFromEnvironment
	case config.ProxyOff:
		return nil
	default:
		u, err := url.Parse(text)
		return func(*http.Request) (*url.URL, error) { return u, err }
	}
}

// probe adds the loop that looks whether the backend is well.
func (m *member) probe(o providers.Options, page string) error {
	if page == "off" {
		return nil
	}
	p, err := providers.NewProber(providers.ProberOptions{Backend: o, URL: page, OnCondition: m.hearProber, Pulse: m.backend.Pulse()})
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
	log := m.fleet.o.Log
	s, err := providers.NewScraper(providers.ScraperOptions{
		Backend: o, URL: page, Life: router.EngineLoadLife, Pulse: m.backend.Pulse(),
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
