package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/arena"
	"github.com/pacer-dev/pacer/internal/presets"
	"github.com/pacer-dev/pacer/sim"
)

// The promise of the demo's interactive route.
const (
	floorTPS = 30.0
	grace    = time.Second
)

// published are the published curves of the three simulated GPUs.
var published = []string{"glm-5/h200", "deepseek-r1/h200/sglang", "llama-3.1-70b/h200/vllm"}

// simulated is one simulated GPU behind a port of its own.
type simulated struct {
	name   string // of the backend
	preset presets.Preset
	engine *sim.Server
	listen func(addr string) (net.Listener, error)
	stop   context.CancelFunc
	ended  chan struct{}

	serving sync.WaitGroup

	mu     sync.Mutex // guards what follows
	addr   string     // chosen at the first start, kept over a kill
	server *http.Server
}

// startFleet starts the simulated GPUs.
func startFleet(o Options) ([]*simulated, error) {
	var fleet []*simulated
	for i, name := range published {
		s, err := newSimulated(name, o.Seed+uint64(i), o)
		if err == nil {
			err = s.start()
		}
		if err != nil {
			stopFleet(fleet)
			return nil, err
		}
		fleet = append(fleet, s)
	}
	return fleet, nil
}

func stopFleet(fleet []*simulated) {
	for _, s := range fleet {
		s.kill()
		s.stop()
		<-s.ended
		s.serving.Wait()
	}
}

func newSimulated(name string, seed uint64, o Options) (*simulated, error) {
	p, ok := presets.Lookup(name)
	if !ok {
		return nil, fmt.Errorf("no published curve %q", name)
	}
	engine, err := sim.NewServer(sim.Options{Names: []string{p.Model}, Model: arena.Published(p), Seed: seed})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &simulated{
		name: strings.ReplaceAll(p.Model, ".", "-") + "-" + p.GPU, preset: p, engine: engine,
		listen: o.listen, stop: cancel, ended: make(chan struct{}), addr: "127.0.0.1:0",
	}
	go func() {
		defer close(s.ended)
		// Run ends only with its context.
		_ = engine.Run(ctx)
	}()
	return s, nil
}

// start opens the port; after a kill it is the same one again.
func (s *simulated) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.listen(s.addr)
	if err != nil {
		return fmt.Errorf("simulated GPU %s: %w", s.name, err)
	}
	s.addr = l.Addr().String()
	s.server = &http.Server{Handler: s.engine, ReadHeaderTimeout: 10 * time.Second}
	server := s.server
	s.serving.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintf(os.Stderr, "simulated GPU %s: %v\n", s.name, err)
		}
	})
	return nil
}

// kill closes the port and cuts every connection, as a process that dies.
func (s *simulated) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		s.server.Close()
		s.server = nil
	}
}

// configOf is the gateway's configuration, written and parsed like any.
func configOf(fleet []*simulated, adminListen string) (*config.Config, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "listen: 127.0.0.1:0\nadmin: { listen: %q }\nbackends:\n", adminListen)
	for _, s := range fleet {
		fmt.Fprintf(&b, "  - { name: %s, url: \"http://%s/v1\", kind: vllm, labels: { gpu: %s, preset: %q } }\n",
			s.name, s.addr, s.preset.GPU, s.preset.Name)
	}
	var targets []string
	for _, s := range fleet {
		targets = append(targets, fmt.Sprintf("{ backend: %s, model: %s }", s.name, s.preset.Model))
	}
	all := strings.Join(targets, ", ")
	fmt.Fprintf(&b, `routes:
  - model: chat
    targets: [ %s ]
    slo: { min_tps: %g, grace: %v }
    on_infeasible: [ { queue: 2s }, shed ]
  - model: nightly
    class: batch
    targets: [ %s ]
`, all, floorTPS, grace, all)
	return config.Parse("demo.yaml", []byte(b.String()), os.LookupEnv)
}
