package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/memnet"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/sim"
)

// house is a whole gateway before simulated engines, wired as the program wires
// it, on a network inside the process. Built inside a synctest bubble, all of
// it lives in virtual time.
type house struct {
	t       *testing.T
	network memnet.Network
	engines map[string]*sim.Server
	servers map[string]*http.Server
	program *program
	client  *loadgen.Client
	stop    func()

	stopGateway func() // and waits for it; stop does it too
	terminate   func() // as SIGTERM does; waits for nothing
}

// gpu is one simulated engine of a house.
type gpu struct {
	name  string // backend, and "model" is its model
	model sim.Model
	seed  uint64
	opts  sim.Options // Names, Model and Seed are filled in
	kind  string      // of the backend; "" = vllm
	conf  string      // further fields of the backend, each after a comma
	host  string      // whose engine the backend is; "" = the one of its name
}

// newHouse starts engines and gateway. routes is the routes: part of the
// configuration; every gpu is a backend of its name that serves "m".
func newHouse(t *testing.T, gpus []gpu, routes string, o options) *house {
	t.Helper()
	return newLoggedHouse(t, gpus, routes, o, io.Discard)
}

// newLoggedHouse is newHouse with a log.
func newLoggedHouse(t *testing.T, gpus []gpu, routes string, o options, log io.Writer) *house {
	t.Helper()
	h := &house{t: t, engines: map[string]*sim.Server{}, servers: map[string]*http.Server{}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, g := range gpus {
		g.opts.Names, g.opts.Model, g.opts.Seed = []string{"m"}, g.model, g.seed
		engine := must.Get(sim.NewServer(g.opts))(t)
		h.engines[g.name] = engine
		running.Go(func() { engine.Run(ctx) })
		h.serveEngine(g.name, &running)
	}
	cfg := houseConfig(t, gpus, routes)
	o.dial, o.listen = h.network.Dial, h.network.Listen
	h.program = must.Get(wire(cfg, slog.New(slog.NewTextHandler(log, nil)), o))(t)
	ready := make(chan struct{})
	gatewayCtx, cancelGateway := context.WithCancelCause(context.Background())
	ended := make(chan struct{})
	running.Go(func() {
		defer close(ended)
		if err := h.program.run(gatewayCtx, func(string, string) { close(ready) }); err != nil {
			t.Errorf("gateway: %v", err)
		}
	})
	<-ready
	h.stopGateway = func() {
		cancelGateway(nil)
		<-ended
	}
	h.terminate = func() { cancelGateway(toldToStop{syscall.SIGTERM}) }
	transport := &http.Transport{DialContext: h.network.Dial, MaxIdleConnsPerHost: 1000, DisableCompression: true}
	h.client = &loadgen.Client{BaseURL: "http://127.0.0.1:8080/v1", HTTP: &http.Client{Transport: transport}}
	h.stop = sync.OnceFunc(func() {
		transport.CloseIdleConnections()
		h.stopGateway()
		cancel()
		for _, s := range h.servers {
			s.Close()
		}
		running.Wait()
	})
	t.Cleanup(h.stop)
	return h
}

// houseConfig is the configuration of a house; every gpu is a backend of its
// name.
func houseConfig(t *testing.T, gpus []gpu, routes string) *config.Config {
	t.Helper()
	var yaml strings.Builder
	// A loop waits in the kernel, where virtual time never comes.
	yaml.WriteString("relay: goroutines\nlisten: 127.0.0.1:8080\nadmin: { listen: 127.0.0.1:9090, token: operator }\nlog: { level: error }\nbackends:\n")
	for _, g := range gpus {
		fmt.Fprintf(&yaml, "  - { name: %s, url: \"http://%s.test:80/v1\", kind: %s%s }\n", g.name, cmp.Or(g.host, g.name), cmp.Or(g.kind, "vllm"), g.conf)
	}
	yaml.WriteString(routes)
	return parsed(t, yaml.String())
}

// parsed is a configuration without variables.
func parsed(t testing.TB, text string) *config.Config {
	t.Helper()
	return must.Get(config.Parse("test.yaml", []byte(text), func(string) (string, bool) { return "", false }))(t)
}

// serveEngine opens the port of an engine; a killed one comes back with it.
func (h *house) serveEngine(name string, running *sync.WaitGroup) {
	l := must.Get(h.network.Listen(name + ".test:80"))(h.t)
	server := &http.Server{Handler: h.engines[name]}
	h.servers[name] = server
	running.Go(func() { server.Serve(l) })
}

// curve is the learned curve of a backend.
func (h *house) curve(backend string) *profiles.Curve {
	return h.program.book.Curve(profiles.Target{Backend: backend, Model: "m"})
}

// page is what the admin port has at path.
func (h *house) page(path string) string {
	h.t.Helper()
	rec := httptest.NewRecorder()
	h.program.admin.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9090"+path, nil))
	if rec.Code != http.StatusOK {
		h.t.Fatalf("%s: status %d: %.300s", path, rec.Code, rec.Body)
	}
	return rec.Body.String()
}

// answer is a page that is JSON.
func answer[T any](h *house, path string) (got T) {
	h.t.Helper()
	must.Do(h.t, json.Unmarshal([]byte(h.page(path)), &got))
	return got
}

// idle fails the test unless every lease has been given back.
func (h *house) idle() {
	h.t.Helper()
	for _, l := range h.program.router.Loads() {
		if l.M != 0 || l.N != 0 || l.Waiting != 0 || l.Decoding != 0 {
			h.t.Errorf("backend %s: m=%d n=%d after the last request, want 0", l.Backend, l.M, l.N)
		}
	}
}

// results collects what clients saw. Safe for concurrent use.
type results struct {
	mu   sync.Mutex
	list []loadgen.Result
}

func (r *results) add(x loadgen.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, x)
}

// count returns how many results fit.
func (r *results) count(fits func(loadgen.Result) bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, x := range r.list {
		if fits(x) {
			n++
		}
	}
	return n
}

// sleep waits in the bubble's virtual time.
func sleep(d time.Duration) { <-time.After(d) }

// quantile returns the q-quantile of xs (nearest rank), 0 for none.
func quantile(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(xs))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}
