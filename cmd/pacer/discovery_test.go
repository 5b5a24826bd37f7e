package main

import (
	"context"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/fleet"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/providers"
)

// poolAt is a configuration whose engines are found at url.
func poolAt(t *testing.T, url string) *config.Config {
	t.Helper()
	return parsed(t, "relay: goroutines\nlisten: 127.0.0.1:8080\nadmin: { listen: 127.0.0.1:9090 }\nlog: { level: error }\nbackends: [ { name: pool, url: \""+url+"\", kind: vllm, discover: dns } ]\n"+
		"routes: [ { model: chat, targets: [ { backend: pool, model: m } ] } ]\n")
}

// discovers waits until the engines were looked up again, and checks which are known.
func (h *house) discovers(when, want string) {
	h.t.Helper()
	sleep(fleet.DiscoverEvery + time.Second)
	var names []string
	for _, l := range h.program.router.Loads() {
		names = append(names, l.Backend)
	}
	if s := strings.Join(names, " "); s != want {
		h.t.Errorf("%s: %q, want %q", when, s, want)
	}
}

// Engines come and go behind one name while clients stream: each is a backend of
// its own, one that leaves keeps its streams, a resolver that fails changes
// nothing, and one that leaves an address out once neither.
func TestEnginesAreDiscovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := poolAt(t, "http://pool.test/v1")
		var mu sync.Mutex
		addresses, broken := []string{"a.test:80"}, error(nil)
		answer := func(err error, list ...string) {
			mu.Lock()
			defer mu.Unlock()
			addresses, broken = list, err
		}
		engines := &fleet.Discovery{Log: slog.New(slog.DiscardHandler), Look: func(context.Context, providers.Source) ([]string, error) {
			mu.Lock()
			defer mu.Unlock()
			return addresses, broken
		}}
		// A house with engines a, b and c, whose gateway is then told of the pool.
		h := newHouse(t, []gpu{{name: "a", model: carries64, seed: 1}, {name: "b", model: carries64, seed: 2}, {name: "c", model: carries64, seed: 3}}, oneRoute, options{})
		must.Do(t, h.program.reload(engines.Of(context.Background(), pool)))
		ctx, stop := context.WithCancel(context.Background())
		following := make(chan error)
		go func() { following <- h.program.follow(ctx, pool, nil, engines, nil) }()

		var clients sync.WaitGroup
		var got results
		for range 12 {
			clients.Go(func() {
				for ctx.Err() == nil {
					got.add(h.client.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 10, MaxTokens: 150}))
				}
			})
		}
		h.discovers("at first", "pool-a.test-80")
		answer(nil, "a.test:80", "b.test:80", "c.test:80")
		h.discovers("two more", "pool-a.test-80 pool-b.test-80 pool-c.test-80")
		answer(errors.New("no such host"))
		h.discovers("resolver down", "pool-a.test-80 pool-b.test-80 pool-c.test-80")
		answer(nil, "b.test:80", "c.test:80")
		h.discovers("left out once", "pool-a.test-80 pool-b.test-80 pool-c.test-80")
		h.discovers("left out twice", "pool-b.test-80 pool-c.test-80")
		before := h.engines["c"].Truth().Running
		stop()
		clients.Wait()
		if err := <-following; err != nil {
			t.Error(err)
		}
		if before == 0 {
			t.Error("nothing ran on an engine that was discovered")
		}
		if failed := got.count(func(r loadgen.Result) bool { return r.Outcome != loadgen.Done }); failed > 0 {
			t.Errorf("%d of %d streams failed", failed, len(got.list))
		}
		h.idle()
	})
}

// What a source finds, by file; addresses without a port have the url's.
func TestTargetFiles(t *testing.T) {
	for text, want := range map[string]string{
		`[ { "targets": [ "10.0.0.8:9000", "10.0.0.7", "gpu-1.lan:1" ], "labels": { "gpu": "H200" } }, { "targets": [ "10.0.0.7:8000", "::1" ] } ]`: "10.0.0.7:8000 10.0.0.8:9000 [::1]:8000 gpu-1.lan:1",
		`[]`:   "",
		`nope`: "no JSON list of target groups",
		`[ { "targets": [ "http://10.0.0.7" ] } ]`:        "no host:port",
		`[ { "targets": [ "10.0.0.7:0" ] } ]`:             "no host:port",
		`[ { "targets": [ "10.0.0.7/evil:80" ] } ]`:       "no host:port",
		`[ { "targets": [ "` + strings.Repeat("x", 2<<20): "larger than 1 MiB",
	} {
		file := filepath.Join(t.TempDir(), "fleet.json")
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		found, err := providers.Source{URL: "http://pool:8000/v1", File: file}.Look(context.Background())
		got := strings.Join(found, " ")
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != want || err != nil && !strings.Contains(got, want) {
			t.Errorf("%.80s: %q, want %q", text, got, want)
		}
	}
}

// A pool that has no engine yet is no reason not to start: its routes are
// answered 503 until there is one.
func TestAnEmptyPoolIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []gpu{{name: "a", model: carries64, seed: 1}}, oneRoute, options{})
		text := "relay: goroutines\nbackends: [ { name: pool, url: \"http://a.test/v1\", discover: dns } ]\nroutes: [ { model: chat, targets: [ { backend: pool, model: m } ], slo: { min_tps: 10 } } ]\n"
		cfg := parsed(t, text)
		must.Do(t, h.program.reload(cfg.Expand(nil)))
		if r := h.client.Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: 5}); r.Status != 503 {
			t.Errorf("no engine: status %d, want 503", r.Status)
		}
		must.Do(t, h.program.reload(cfg.Expand(map[string][]config.Found{"pool": {{Standing: config.Standing{Address: "a.test:80"}}}})))
		if r := h.client.Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: 5}); r.Outcome != loadgen.Done || r.Backend != "pool-a.test-80" {
			t.Errorf("one engine: %v by %q", r.Outcome, r.Backend)
		}
	})
}

func TestAddressesOfAName(t *testing.T) {
	found, err := providers.Source{URL: "https://localhost/v1"}.Look(context.Background())
	if err != nil || len(found) == 0 || !strings.HasSuffix(found[0], ":443") {
		t.Errorf("localhost: %v, %v", found, err)
	}
}

// Engines that are found while they cannot be put into service are put into it
// when they can; it is said once. A configuration that is refused takes no engine
// away, and what was found at another place does not count.
func TestEnginesFoundAtABadTimeAreNotForgotten(t *testing.T) {
	secure := httptest.NewTLSServer(nil)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	secure.Close()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []gpu{{name: "a", model: carries64, seed: 1}, {name: "b", model: carries64, seed: 2}}, oneRoute, options{})
		var found atomic.Pointer[[]string] // nil = the resolver is down
		engines := &fleet.Discovery{Log: slog.New(slog.DiscardHandler), Look: func(context.Context, providers.Source) ([]string, error) {
			if list := found.Load(); list != nil {
				return *list, nil
			}
			return nil, errors.New("no resolver")
		}}
		found.Store(&[]string{"a.test:80"})
		base := poolAt(t, "http://pool.test/v1")
		authorities := filepath.Join(t.TempDir(), "ca.pem")
		base.Backends[0].CAFile = authorities
		write := func() { must.Do(t, os.WriteFile(authorities, authority, 0o600)) }
		write()
		must.Do(t, h.program.reload(engines.Of(t.Context(), base)))
		ctx, stop := context.WithCancel(context.Background())
		hup := make(chan os.Signal, 1)
		var next atomic.Pointer[config.Config]
		following := make(chan error)
		go func() {
			following <- h.program.follow(ctx, base, func() (*config.Config, error) { return next.Load(), nil }, engines, hup)
		}()
		os.Remove(authorities)
		found.Store(&[]string{"a.test:80", "b.test:80"})
		h.discovers("while ca_file is away", "pool-a.test-80")
		h.discovers("while ca_file is still away", "pool-a.test-80")
		if n := refusals(t, h); n != "1" {
			t.Errorf("%s refusals counted, want 1", n)
		}
		write()
		h.discovers("ca_file is back", "pool-a.test-80 pool-b.test-80")

		found.Store(nil)
		refused := poolAt(t, "http://other.test/v1")
		refused.Backends = append(refused.Backends, config.Backend{Name: "x", URL: "https://x.test/v1", CAFile: "nowhere.pem"})
		next.Store(refused)
		hup <- syscall.SIGHUP
		h.discovers("another pool is refused, and no resolver", "pool-a.test-80 pool-b.test-80")
		next.Store(poolAt(t, "http://other.test/v1"))
		found.Store(&[]string{"b.test:80"})
		hup <- syscall.SIGHUP
		sleep(time.Second)
		if l := h.program.router.Loads(); len(l) != 1 || l[0].Backend != "pool-b.test-80" {
			t.Errorf("another pool: %v, want only what was found there", l)
		}
		stop()
		if err := <-following; err != nil {
			t.Error(err)
		}
		h.stop()
	})
}

// refusals is how many configurations were refused.
func refusals(t *testing.T, h *house) string {
	t.Helper()
	_, rest, _ := strings.Cut(h.page("/metrics"), `pacer_config_reloads_total{result="refused"} `)
	n, _, _ := strings.Cut(rest, "\n")
	return n
}
