package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/fleet"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
)

// pods plays a cluster's part: what it is told it answers.
type pods struct {
	mu   sync.Mutex
	list []config.Found
	err  error
	news chan struct{}
}

func (p *pods) Look(context.Context, config.Backend) ([]config.Found, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list, p.err
}

func (p *pods) Keep([]config.Backend) {}
func (p *pods) News() <-chan struct{} { return p.news }

func (p *pods) set(err error, list ...config.Found) {
	p.mu.Lock()
	p.list, p.err = list, err
	p.mu.Unlock()
	p.news <- struct{}{}
}

// A pod that is about to end keeps its streams and gets no more; one that says what
// it is worth is believed so; and a cluster that is away takes nobody out.
func TestPodsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := parsed(t, "relay: goroutines\nlisten: 127.0.0.1:8080\nadmin: { listen: 127.0.0.1:9090 }\nlog: { level: error }\n"+
			"backends: [ { name: pool, url: \"http://pool.test/v1\", kind: vllm, discover: { kubernetes: { service: vllm, namespace: serving } } } ]\n"+
			"routes: [ { model: chat, targets: [ { backend: pool, model: m } ] } ]\n")
		pod := func(name string, draining bool) config.Found {
			return config.Found{Name: name, Standing: config.Standing{Address: name + ".test:80", UID: "uid " + name, Draining: draining}, Says: map[string]string{"usd_per_hour": "2.5"}}
		}
		var said []string
		cluster := &pods{news: make(chan struct{}), list: []config.Found{pod("a", false)}}
		engines := &fleet.Discovery{Log: slog.New(slog.DiscardHandler), Cluster: cluster, Said: func(text string) { said = append(said, text) }}
		h := newHouse(t, []gpu{{name: "a", model: carries64, seed: 1}, {name: "b", model: carries64, seed: 2}}, oneRoute, options{discovered: engines.States})
		must.Do(t, h.program.reload(engines.Of(t.Context(), cfg)))
		if got := h.program.fleet.Config().Backends[0].USDPerHour; got != 2.5 {
			t.Errorf("the pod says 2.5 USD/h; the backend has %v", got)
		}
		ctx, stop := context.WithCancel(context.Background())
		following := make(chan error)
		go func() { following <- h.program.follow(ctx, cfg, nil, engines, nil) }()

		var long loadgen.Result
		var streaming sync.WaitGroup
		streaming.Go(func() {
			long = h.client.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 10, MaxTokens: 2000})
		})
		sleep(time.Second)
		cluster.set(nil, pod("a", true), pod("b", false))
		sleep(time.Second) // long before the next look that is due anyway
		for range 5 {
			if r := h.client.Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: 5}); r.Backend != "pool-b" || r.Outcome != loadgen.Done {
				t.Errorf("beside a pod that ends: %v by %q", r.Outcome, r.Backend)
			}
		}
		cluster.set(errors.New("no API server"))
		sleep(time.Minute)
		if s := engines.States(); len(s) != 1 || s[0] != (fleet.DiscoveryState{Backend: "pool", Engines: 2, Draining: 1}) {
			t.Errorf("while the cluster is away: %+v", s)
		}
		text := h.page("/metrics")
		for _, want := range []string{`pacer_discovery_up{backend="pool"} 0`, `pacer_discovery_engines{backend="pool",state="draining"} 1`, `pacer_discovery_engines{backend="pool",state="serving"} 1`} {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("metrics lack %s", want)
			}
		}
		if r := h.client.Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: 5}); r.Outcome != loadgen.Done {
			t.Errorf("while the cluster is away: %v", r.Outcome)
		}
		cluster.set(nil, pod("b", false)) // the other one is gone, its stream is not
		sleep(time.Second)
		if loads := h.program.router.Loads(); len(loads) != 1 || loads[0].Backend != "pool-b" {
			t.Errorf("backends %v, want pool-b", loads)
		}
		streaming.Wait()
		if long.Outcome != loadgen.Done || long.Backend != "pool-a" {
			t.Errorf("the stream of a pod that ended: %v by %q", long.Outcome, long.Backend)
		}
		stop()
		if err := <-following; err != nil {
			t.Error(err)
		}
		if got := strings.Join(said, "; "); got != "the engines of pool cannot be looked up; those known stay; the engines of pool can be looked up again" {
			t.Errorf("said %q", got)
		}
		h.idle()
	})
}
