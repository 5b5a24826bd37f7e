package e2e

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/internal/redistest"
	"github.com/pacer-dev/pacer/sim"
)

// seen is how many sequences a gateway takes to be on its only backend.
func seen(t *testing.T, p *proctest.Process) int {
	t.Helper()
	return target(t, p).InFlight.M
}

// running is how many sequences the engine has.
func running(t *testing.T, engine *proctest.Process) int {
	t.Helper()
	truth := proctest.JSON[sim.Truth](t, engine.Ready["url"]+"/sim/truth")
	return truth.Running + truth.Waiting
}

// A gateway that is killed without a word stops counting within a second, and
// the streams of the others run on.
func TestAKilledGatewayStopsCounting(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm")
	file := gatewayConfig(t, engine.Ready["url"], "replicas: 2\nstore: \""+redisURL(t, redis)+"\"\n")
	victim, other := proctest.Start(t, nil, "serve", "-c", file), proctest.Start(t, nil, "serve", "-c", file)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var doomed, kept sync.WaitGroup
	for range 8 {
		doomed.Go(func() {
			client(victim).Stream(ctx, loadgen.Request{Model: "chat", PromptTokens: 10, MaxTokens: 100_000})
		})
	}
	var ended atomic.Int32
	for range 3 {
		kept.Go(func() {
			r := client(other).Stream(ctx, loadgen.Request{Model: "chat", PromptTokens: 10, MaxTokens: 100_000})
			if r.Outcome != loadgen.Aborted {
				ended.Add(1)
			}
		})
	}
	proctest.Until(t, "11 seen by the other", func() bool { return seen(t, other) == 11 })
	victim.Stop(syscall.SIGKILL)
	killed := time.Now()
	doomed.Wait()
	for seen(t, other) != 3 {
		if time.Since(killed) > 30*time.Second {
			t.Fatalf("30 s after its death %d sequences are seen, want the 3 of the other", seen(t, other))
		}
		<-time.After(5 * time.Millisecond)
	}
	gone := time.Since(killed)
	t.Logf("the load of the killed gateway was gone after %v", gone.Round(10*time.Millisecond))
	// A second by the gateway's clock; the rest is for a busy machine.
	if most := time.Second; *long && gone > most {
		t.Errorf("gone after %v, want %v at most", gone, most)
	} else if gone > 5*time.Second {
		t.Errorf("gone after %v", gone)
	}
	if ended.Load() > 0 {
		t.Errorf("%d streams of the other gateway ended with it", ended.Load())
	}
	cancel()
	kept.Wait()
}

// Three gateways under bursts: each takes to be in flight what the engine has,
// on average over the time within 5 %, where nothing else keeps the machine
// busy.
func TestEachGatewaySeesWhatAllHaveInFlight(t *testing.T) {
	redis := redistest.Start(t)
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm")
	file := gatewayConfig(t, engine.Ready["url"], "replicas: 3\nstore: \""+redisURL(t, redis)+"\"\n")
	var fleet []*proctest.Process
	for range 3 {
		fleet = append(fleet, proctest.Start(t, nil, "serve", "-c", file))
	}
	var busy sync.WaitGroup
	var over atomic.Bool
	rng := rand.New(rand.NewPCG(1, 2))
	bursts, most := 4, 0.1 // on a busy machine the looks themselves are late
	if *long {
		bursts, most = 15, 0.05
	}
	busy.Go(func() {
		var streams sync.WaitGroup
		for range bursts {
			for range 3 + rng.IntN(20) {
				p, tokens := fleet[rng.IntN(len(fleet))], 30+rng.IntN(60)
				streams.Go(func() {
					r := client(p).Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 50, MaxTokens: tokens})
					if r.Outcome != loadgen.Done {
						t.Errorf("%v: %v", r.Outcome, r.Err)
					}
				})
			}
			<-time.After(time.Duration(rng.ExpFloat64() * float64(time.Second)))
		}
		streams.Wait()
		over.Store(true)
	})
	// Sequence-seconds: every figure counts for the time since the one before
	// it, so that a busy machine, which looks less often, changes nothing.
	truth, sums := tally{}, make([]tally, len(fleet))
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for idle := 0; idle < 20; <-tick.C { // half a second beyond the end: what they see is late
		truth.add(running(t, engine))
		for i, p := range fleet {
			sums[i].add(seen(t, p))
		}
		if over.Load() {
			idle++
		}
	}
	busy.Wait()
	for i := range fleet {
		off := sums[i].area/truth.area - 1
		t.Logf("gateway %d: %.2f in flight on average where the engine has %.2f: %+.1f %%", i, sums[i].mean(), truth.mean(), 100*off)
		if math.Abs(off) > most {
			t.Errorf("gateway %d is off by %.1f %%, want %.0f at most", i, 100*off, 100*most)
		}
	}
}

// tally is the area under a figure that is looked at now and then. The zero
// value has not looked yet.
type tally struct {
	first, last time.Time
	value       int
	area        float64 // sequence-seconds, by trapezoids
}

func (s *tally) add(value int) {
	now := time.Now()
	if s.last.IsZero() {
		s.first = now
	} else {
		s.area += float64(s.value+value) / 2 * now.Sub(s.last).Seconds()
	}
	s.last, s.value = now, value
}

func (s *tally) mean() float64 { return s.area / s.last.Sub(s.first).Seconds() }

// Two gateways answer for both: counts, history and timeline. Without Redis each
// answers for itself, and says so.
func TestGatewaysTellOneHistory(t *testing.T) {
	if racetest.On {
		t.Skip("a minute of real processes: make numbers runs it")
	}
	redis := redistest.Start(t)
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "20")
	file := gatewayConfig(t, engine.Ready["url"], "replicas: 2\nstore: \""+redisURL(t, redis)+"\"\n")
	a, b := proctest.Start(t, nil, "serve", "-c", file), proctest.Start(t, nil, "serve", "-c", file)
	for i, p := range []*proctest.Process{a, a, a, b, b} {
		if r := client(p).Stream(t.Context(), loadgen.Request{Model: "chat", PromptTokens: 10, MaxTokens: 50}); r.Outcome != loadgen.Done {
			t.Fatalf("request %d: %v", i, r.Err)
		}
	}
	routes := func(p *proctest.Process, window string) api.Routes {
		t.Helper()
		return proctest.JSON[api.Routes](t, p.Ready["admin"]+"/api/v1/routes?window="+window)
	}
	for _, p := range []*proctest.Process{a, b} {
		proctest.Until(t, "five requests, of both gateways", func() bool {
			r := routes(p, "5m")
			return r.Replica == "all" && r.Replicas == 2 && r.Routes[0].Offered == 5
		})
	}
	if r := routes(a, "start"); r.Replica != "this one only" || r.Routes[0].Offered != 3 {
		t.Errorf("since its start the first says %d requests of %q, want its own three", r.Routes[0].Offered, r.Replica)
	}
	h := proctest.JSON[api.History](t, b.Ready["admin"]+"/api/v1/history?window=5m")
	sum := 0.0
	for _, rate := range h.Routes[0].Offered {
		if rate > 0 { // null is 0 here
			sum += rate * h.StepS
		}
	}
	if h.Replica != "all" || sum < 4.5 {
		t.Errorf("the history of %q has %.1f requests, want five", h.Replica, sum)
	}
	proctest.Until(t, "the start of each gateway on the timeline of the first", func() bool {
		starts, foreign := 0, 0
		for _, m := range timeline(t, a) {
			if m.Kind == "start" {
				starts++
			}
			if m.Replica != "" {
				foreign++
			}
		}
		return starts == 2 && foreign == 1
	})

	redis.Kill()
	proctest.Until(t, "the own figures alone, without Redis", func() bool {
		r := routes(a, "5m")
		return r.Replica == "this one only" && r.Replicas == 1 && r.Routes[0].Offered == 3
	})
}
