package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/h1server"
	"github.com/pacer-dev/pacer/internal/memnet"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/relayloop"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/learn"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

// client is what speaks HTTP/1.1 to the engines in these tests.
var client = flag.String("client", providers.ClientOwn, "own or net/http")

// server is what the gateway's port is served by in these tests.
var server = flag.String("server", serverOwn, "own or net/http")

const serverOwn = "own"

// house is a whole gateway between real HTTP servers and a real client, over a
// network in memory.
type house struct {
	t        testing.TB
	net      *memnet.Network
	gateway  *Gateway
	router   *router.Router
	book     *profiles.Book
	metrics  *telemetry.Metrics
	backends map[string]*providers.Backend
	client   *http.Client
	log      *logLines
	conns    sync.Map // every connection to gateway and engines → its http.ConnState
	stop     func()
	beside   func() // called where a second place is asked for; nil = nothing
}

// settings is a configuration with the defaults filled in, as config.Parse
// leaves it: a backend for each name, and the route "chat" to all of them.
func settings(backends ...string) *config.Config {
	c := &config.Config{
		Replicas: 1,
		Timeouts: config.Timeouts{
			Connect: 5 * time.Second, FirstByte: 2 * time.Minute, Silence: time.Minute,
			Total: 30 * time.Minute, Write: 30 * time.Second, Drain: 30 * time.Second,
		},
		Realtime: config.Realtime{Idle: 5 * time.Minute, Total: time.Hour, Message: 16 << 20},
		Limits:   config.Limits{Body: 32 << 20, Header: 64 << 10, Streams: 20000, Queue: 1000, Buffered: 1 << 30},
	}
	r := config.Route{
		Models: []string{"chat"}, Class: "interactive", Prefer: "order", Reserve: 1,
		SLO:          config.SLO{Attainment: 0.99, Grace: time.Second},
		OnInfeasible: []config.Step{{Queue: 2 * time.Second}, {Shed: true}},
	}
	for _, name := range backends {
		c.Backends = append(c.Backends, config.Backend{Name: name, URL: "http://" + name + "/v1", Kind: "openai", Usage: "inject"})
		r.Targets = append(r.Targets, config.Target{Backend: name, Model: "big"})
	}
	c.Routes = []config.Route{r}
	return c
}

func key(name, secret string) config.Key {
	return config.Key{Name: name, SHA256: sha256.Sum256([]byte(secret))}
}

// open starts a gateway with c in front of the engines, which listen under the
// names of their backends. A backend without an engine refuses connections.
// The test runs in a bubble, and ends with nothing left of any request.
func open(t *testing.T, c *config.Config, engines map[string]http.Handler) *house {
	t.Helper()
	h := openWith(t, c, engines, houseOptions{})
	t.Cleanup(h.idle)
	return h
}

// bubble runs a part of a test in a bubble of its own, where time is virtual.
func bubble(t *testing.T, name string, part func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, part) })
}

// houseOptions are what few tests change.
type houseOptions struct {
	dial       func(context.Context, string, string) (net.Conn, error) // to the engines; nil = the network in memory
	learnEvery time.Duration                                           // 0 = as usual
	batches    batch.Store                                             // nil = none
	loops      *relayloop.Loops                                        // nil = none
	tls        *tls.Config                                             // to the engines; nil = as usual
}

func openWith(t testing.TB, c *config.Config, engines map[string]http.Handler, o houseOptions) *house {
	t.Helper()
	h := &house{t: t, net: &memnet.Network{}, backends: map[string]*providers.Backend{}, log: &logLines{}}
	settling := time.Duration(0)
	if o.dial == nil {
		o.dial = h.net.Dial
		settling = time.Second // http.Server holds refused connections for half a second
	}
	logger := slog.New(slog.NewJSONHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup

	h.router = router.New(router.Options{
		Rand:     rand.New(rand.NewPCG(1, 2)).Float64,
		Policies: map[router.Prefer]router.Registered{ordered: {Policy: firstOf{h}}},
	})
	h.router.Update(time.Now(), router.Configure{Topology: topologyOf(c)})
	h.book = profiles.NewBook(profiles.Options{})
	routes, names := map[string]string{}, []string{}
	for _, r := range c.Routes {
		for _, m := range r.Models {
			routes[m] = r.Class
		}
	}
	for _, b := range c.Backends {
		names = append(names, b.Name)
		backend := must.Get(providers.New(providers.Options{
			Name: b.Name, BaseURL: b.URL, Kind: b.Kind, APIKey: b.APIKey.Reveal(), Usage: b.Usage,
			Client: *client, Dial: o.dial, TLS: o.tls, ConnectTimeout: c.Timeouts.Connect,
			OnHealth: func(s providers.Health) {
				health := map[providers.Health]router.Health{providers.Closed: router.Up, providers.HalfOpen: router.Probing, providers.Open: router.Down}[s]
				h.gateway.Deliver(h.router.Update(time.Now(), router.BackendHealth{Backend: b.Name, Health: health}))
			},
			OnHung: func() {
				h.gateway.Deliver(h.router.Update(time.Now(), router.BackendHealth{Backend: b.Name, Hung: h.backends[b.Name].Pulse().Hung()}))
			},
		}))(t)
		h.backends[b.Name] = backend
		running.Go(func() { _ = backend.Run(ctx) })
	}
	h.metrics = telemetry.New(routes, names, nil)
	h.gateway = must.Get(New(Options{
		Config: c, Router: h.router, Book: h.book,
		Backends: h.backends, Metrics: h.metrics, Log: logger, Batches: o.batches, Loops: o.loops,
	}))(t)
	running.Go(func() { _ = h.gateway.Run(ctx) })
	loop := h.learn(logger, o.learnEvery)
	running.Go(func() { _ = loop.Run(ctx) })

	servers := []testServer{h.serve("gateway:80", h.gateway.Handler(), &running)}
	for name, engine := range engines {
		if s, ok := engine.(*sim.Server); ok {
			running.Go(func() { _ = s.Run(ctx) })
		}
		servers = append(servers, h.serve(name+":80", engine, &running))
	}
	transport := &http.Transport{DialContext: h.net.Dial, DisableCompression: true, MaxIdleConnsPerHost: 1000}
	h.client = &http.Client{Transport: transport}
	h.stop = sync.OnceFunc(func() {
		transport.CloseIdleConnections()
		cancel()
		for _, b := range h.backends {
			b.Close()
		}
		for _, s := range servers {
			_ = s.Close()
		}
		running.Wait()
		<-time.After(settling)
		for _, target := range h.book.Targets() { // whatever became of a request, nobody waits for its tokens
			if waits := h.book.Waits(target); waits != 0 {
				t.Errorf("%d requests to %v still wait for a first token", waits, target)
			}
		}
	})
	t.Cleanup(h.stop)
	return h
}

// learn returns the loop that turns what was measured into curves.
func (h *house) learn(log *slog.Logger, every time.Duration) *learn.Loop {
	loop := must.Get(learn.New(learn.Options{
		Book: h.book, Store: &learn.Memory{}, Replica: "one", Log: log, Every: every,
		OnCurves: func(now time.Time, curves map[profiles.Target]*profiles.Curve) {
			h.gateway.Deliver(h.router.Update(now, router.Curves{ByTarget: curves}))
		},
	}))(h.t)
	return loop
}

func (h *house) serve(addr string, handler http.Handler, running *sync.WaitGroup) testServer {
	l := must.Get(h.net.Listen(addr))(h.t)
	s := &http.Server{
		Handler: handler, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
		ConnState: func(c net.Conn, s http.ConnState) { h.conns.Store(c, s) },
	}
	if handler == h.gateway.Handler() {
		l = h.gateway.Listen(s, l, 0)
		ours := s.ConnState
		s.ConnState = func(c net.Conn, s http.ConnState) { ours(c, s); h.conns.Store(c, s) }
	}
	served := testServer(s)
	if handler == h.gateway.Handler() {
		served = serverOf(h.t, s)
	}
	running.Go(func() { _ = served.Serve(l) })
	return served
}

// testServer is what a port is served by.
type testServer interface {
	Serve(net.Listener) error
	Close() error
}

// serverOf returns what serves the gateway's port, of which s has the settings.
func serverOf(t testing.TB, s *http.Server) testServer {
	if *server != serverOwn {
		return s
	}
	own := must.Get(h1server.New(s))(t)
	return own
}

// ordered is the policy of the house: the first in the configuration, as order is.
const ordered router.Prefer = "order"

type firstOf struct{ h *house }

func (p firstOf) Pick(c router.Choice) int {
	if c.Spare() && p.h.beside != nil {
		p.h.beside()
	}
	for i := range c.Len() {
		if c.Open(i) {
			return i
		}
	}
	return -1
}

func topologyOf(c *config.Config) router.Topology {
	t := router.Topology{Replicas: 1}
	for _, b := range c.Backends {
		t.Backends = append(t.Backends, router.Backend{Name: b.Name, Engine: b.URL, MaxConcurrency: b.MaxConcurrency})
	}
	for _, r := range c.Routes {
		for _, m := range r.Models {
			out := router.Route{
				Name: m, SLO: router.SLO{MinTPS: r.SLO.MinTPS, MaxTTFT: r.SLO.MaxTTFT},
				Prefer: ordered, Reserve: r.Reserve, MaxWaiting: c.Limits.Queue, NoAffinity: r.Affinity == "off",
			}
			if r.Class == "batch" {
				out.Class = router.Batch
			}
			for i, rt := range r.Targets {
				out.Targets = append(out.Targets, router.RouteTarget{Target: router.Target{Backend: rt.Backend, Model: rt.Model}, Weight: r.Split[r.TargetName(i)]})
			}
			for _, s := range r.OnInfeasible {
				switch {
				case s.Queue > 0:
					out.OnInfeasible = append(out.OnInfeasible, router.Step{Kind: router.Queue, Wait: s.Queue})
				case s.Spill != "":
					out.OnInfeasible = append(out.OnInfeasible, router.Step{Kind: router.Spill, Route: s.Spill})
				case s.BestEffort:
					out.OnInfeasible = append(out.OnInfeasible, router.Step{Kind: router.BestEffort})
				default:
					out.OnInfeasible = append(out.OnInfeasible, router.Step{Kind: router.Shed})
				}
			}
			t.Routes = append(t.Routes, out)
		}
	}
	return t
}

// request builds a request to the gateway; header is name, value, name, value …
func (h *house) request(method, path, body string, header ...string) *http.Request {
	h.t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req := must.Get(http.NewRequest(method, "http://gateway"+path, r))(h.t)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Content-Type" {
			req.Header.Del("Content-Type")
		}
		req.Header.Add(header[i], header[i+1])
	}
	return req
}

// reply is an answer, read to its end.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // of the request, or of reading the body
}

func (h *house) do(req *http.Request) reply {
	resp, err := h.client.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{status: resp.StatusCode, header: resp.Header, body: string(body), err: err}
}

func (h *house) post(path, body string, header ...string) reply {
	h.t.Helper()
	return h.do(h.request(http.MethodPost, path, body, header...))
}

// has checks that each of parts is in text.
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s is not in %s", part, text)
		}
	}
}

const chat = "/v1/chat/completions"

// code returns the error code of an answer in OpenAI's shape, and checks the
// shape.
func (r reply) code(t *testing.T) string {
	t.Helper()
	var e struct {
		Error struct {
			Message string
			Type    string
			Param   *string
			Code    *string
		}
	}
	if r.err != nil {
		t.Fatalf("no answer: %v", r.err)
	}
	if err := json.Unmarshal([]byte(r.body), &e); err != nil || e.Error.Message == "" || e.Error.Type == "" {
		t.Fatalf("status %d: the body is no error in OpenAI's shape: %q", r.status, r.body)
	}
	if got := r.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("content-type %q, want application/json", got)
	}
	if r.header.Get("X-Request-Id") == "" {
		t.Error("no x-request-id")
	}
	if e.Error.Code == nil {
		return ""
	}
	return *e.Error.Code
}

// idle checks that nothing is left of any request: no lease, no buffered byte,
// no exchange, no connection in use, and (by the end of the bubble) no
// goroutine.
func (h *house) idle() {
	h.t.Helper()
	synctest.Wait()
	for _, l := range h.router.Loads() {
		if l.Waiting != 0 || l.Decoding != 0 || l.M != 0 || l.N != 0 {
			h.t.Errorf("backend %s still has %d waiting and %d decoding (n=%d, m=%d), want none", l.Backend, l.Waiting, l.Decoding, l.N, l.M)
		}
	}
	for name, b := range h.backends {
		if b.Pulse().Quiet(time.Now().Add(time.Hour)) {
			h.t.Errorf("backend %s still owes an answer, as far as its pulse knows", name)
		}
	}
	for _, r := range h.router.Routes(time.Now()) {
		if r.Waiting+r.Moving != 0 {
			h.t.Errorf("route %s still has %d in line, want none", r.Route.Name, r.Waiting+r.Moving)
		}
	}
	h.conns.Range(func(_, state any) bool {
		if state == http.StateActive {
			h.t.Error("a connection is still in use")
		}
		return true
	})
	if n := h.gateway.buffered.used.Load(); n != 0 {
		h.t.Errorf("%d bytes of bodies still held, want 0", n)
	}
	if n := h.gateway.load.running.Load(); n != 0 {
		h.t.Errorf("%d requests still under way, want 0", n)
	}
}

// scrape is the page of metrics.
func (h *house) scrape() string {
	w := httptest.NewRecorder()
	h.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// last returns the access-log line of the last request.
func (h *house) last() logLine {
	h.t.Helper()
	synctest.Wait()
	lines := h.log.requests()
	if len(lines) == 0 {
		h.t.Fatal("no access-log line")
	}
	return lines[len(lines)-1]
}

// logLines keeps what is logged.
type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// logLine is one access-log line.
type logLine struct {
	Msg, Request, Tenant, Route, Class, Backend, Outcome, Source, Error, Unread, Trace string
	Status, Attempts                                                                   int
	Hedged                                                                             string
	Stream                                                                             bool
	Tokens, TPS                                                                        float64
	Bytes                                                                              int64

	Hidden   float64 `json:"hidden_tokens"`
	TTFTms   float64 `json:"ttft_ms"`
	WaitedMS float64 `json:"waited_ms"`
	PerToken float64 `json:"bytes_per_token"`
}

func (l *logLines) requests() []logLine {
	var lines []logLine
	for s := range strings.Lines(l.String()) {
		var line logLine
		if json.Unmarshal([]byte(s), &line) == nil && line.Msg == "request" {
			lines = append(lines, line)
		}
	}
	return lines
}
