package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// An engine is killed while 100 streams run on it and 60 requests wait there for
// their first byte. Those that have something are told that it broke off, and
// those that have nothing are served by the other engine.
func TestAnEngineIsKilled(t *testing.T) {
	t.Parallel()
	const running, waiting = 100, 60
	gateway, dies := besideOneThatLives(t, "dies", running)
	streams := begin(t, many(gateway, running+waiting), running, 20_000)

	var clients sync.WaitGroup
	var mu sync.Mutex
	var moved []loadgen.Result
	for range waiting {
		clients.Go(func() {
			r := many(gateway, 1).Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: 30})
			mu.Lock()
			defer mu.Unlock()
			moved = append(moved, r)
		})
	}
	proctest.Until(t, "60 wait for the engine", func() bool {
		return strings.Contains(string(proctest.Get(t, gateway.Ready["admin"]+"/metrics")), fmt.Sprintf(`pacer_inflight{backend="dies",phase="waiting"} %d`, waiting))
	})
	dies.Stop(syscall.SIGKILL)
	clients.Wait()
	if whole, told := rest(streams); told != running {
		t.Errorf("of %d streams that ran on the engine %d were told by an error event and cut (%d whole), want all", running, told, whole)
	}
	lost := 0
	for _, r := range moved {
		if r.Outcome != loadgen.Done || r.Backend != "lives" {
			lost++
			t.Logf("%v by %q: %v", r.Outcome, r.Backend, r.Err)
		}
	}
	t.Logf("%d of %d that waited were served by the other engine", waiting-lost, waiting)
	if lost > 0 {
		t.Errorf("%d of %d that waited were lost", lost, waiting)
	}
	proctest.Until(t, "the breaker is open", func() bool {
		return strings.Contains(string(proctest.Get(t, gateway.Ready["admin"]+"/metrics")), `pacer_breaker_state{backend="dies"} 2`)
	})
	for range 20 { // and nobody is sent there
		if r := client(gateway).Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: 5}); r.Outcome != loadgen.Done {
			t.Errorf("after the kill: %v (%v)", r.Outcome, r.Err)
		}
	}
	if resp, err := http.Get(gateway.Ready["data"] + "/readyz"); err != nil || resp.StatusCode != 200 {
		t.Errorf("/readyz: %v, %v; want 200", resp, err)
	}
}

// besideOneThatLives starts a gateway that prefers an engine called name before one called
// lives. With its slots taken, the first one answers nobody else.
func besideOneThatLives(t *testing.T, name string, slots int) (gateway, engine *proctest.Process) {
	t.Helper()
	preset := []string{"--preset", "llama-3.1-70b/h200/vllm"}
	engine = proctest.Engine(t, append(preset, "--max-num-seqs", fmt.Sprint(slots), "--behave", "headers-after-queue")...)
	lives := proctest.Engine(t, append(preset, "--speed", "5")...)
	gateway = proctest.Gateway(t, fmt.Sprintf(`listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
backends:
  - { name: %[1]s, url: %[2]q, kind: vllm }
  - { name: lives, url: %[3]q, kind: vllm }
routes:
  - { model: chat, prefer: order, targets: [ { backend: %[1]s, model: llama-3.1-70b }, { backend: lives, model: llama-3.1-70b } ] }
`, name, engine.Ready["url"]+"/v1", lives.Ready["url"]+"/v1"))
	return gateway, engine
}

// An engine's process is stopped: it takes connections, and nothing comes. All who wait
// there for a first byte are served by the other one; those in the middle of a stream go
// on with it when it is continued, and it serves at once.
func TestAnEngineIsStopped(t *testing.T) {
	t.Parallel()
	const running, waiting = 8, 10
	gateway, stops := besideOneThatLives(t, "stops", running)
	var clients sync.WaitGroup
	var mu sync.Mutex
	var streamed, waited []loadgen.Result
	ask := func(n, tokens int, into *[]loadgen.Result) {
		for range n {
			clients.Go(func() {
				r := many(gateway, 1).Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: tokens})
				mu.Lock()
				defer mu.Unlock()
				*into = append(*into, r)
			})
		}
	}
	metric := func(line string) func() bool {
		return func() bool {
			return strings.Contains(string(proctest.Get(t, gateway.Ready["admin"]+"/metrics")), line+"\n")
		}
	}
	ask(running, 1500, &streamed) // some 12 s
	proctest.Until(t, "all stream", metric(fmt.Sprintf(`pacer_inflight{backend="stops",phase="decoding"} %d`, running)))
	ask(waiting, 30, &waited)
	proctest.Until(t, "the others wait", metric(fmt.Sprintf(`pacer_inflight{backend="stops",phase="waiting"} %d`, waiting)))
	stops.Signal(syscall.SIGSTOP)
	proctest.Until(t, "it is known", metric(`pacer_backend_up{backend="stops"} 0`))
	proctest.Until(t, "nobody waits there", metric(`pacer_inflight{backend="stops",phase="waiting"} 0`))
	if r := client(gateway).Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: 5}); r.Outcome != loadgen.Done || r.Backend != "lives" {
		t.Errorf("while it hangs: %v by %q (%v)", r.Outcome, r.Backend, r.Err)
	}
	stops.Signal(syscall.SIGCONT)
	proctest.Until(t, "it is back", metric(`pacer_backend_up{backend="stops"} 1`))
	clients.Wait()
	for _, c := range []struct {
		of []loadgen.Result
		by string
	}{{streamed, "stops"}, {waited, "lives"}} {
		for _, r := range c.of {
			if r.Outcome != loadgen.Done || r.Backend != c.by {
				t.Errorf("%v by %q: %v; want all of it by %s", r.Outcome, r.Backend, r.Err, c.by)
			}
		}
	}
	if r := client(gateway).Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: 5}); r.Outcome != loadgen.Done || r.Backend != "stops" {
		t.Errorf("after it: %v by %q (%v)", r.Outcome, r.Backend, r.Err)
	}
}
