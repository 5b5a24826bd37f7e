package envoy

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/redistest"
	"github.com/pacer-dev/pacer/sim"
)

// More users than the engines carry at their floor, and batch beside them: who is
// let in keeps the floor, the others are told when to come back, and no answer is
// cut.
func TestFloorsUnderOverload(t *testing.T) {
	const floor = 100
	w := newWorld(t, "1", "", "slo: { min_tps: 30 }", "slo: { min_tps: 100 }")
	during := 12 * time.Second
	if *long {
		during = time.Minute
	}
	end := time.Now().Add(during)
	var kept, missed, shed, batch atomic.Int64
	var wg sync.WaitGroup
	user := func(model string, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 2))
		for time.Now().Before(end) {
			tokens := 100 + random.IntN(300)
			r := w.client.Stream(t.Context(), loadgen.Request{Model: model, PromptTokens: 100, MaxTokens: tokens})
			switch {
			case r.Outcome == loadgen.Shed:
				shed.Add(1)
				if r.RetryAfter <= 0 {
					t.Error("429 without Retry-After")
				}
				pause := time.NewTimer(time.Duration(200+random.IntN(400)) * time.Millisecond)
				<-pause.C
			case r.Outcome != loadgen.Done || r.Tokens != tokens:
				t.Errorf("%s: %v with %d of %d tokens (%v)", model, r.Outcome, r.Tokens, tokens, r.Err)
			case model == "nightly":
				batch.Add(int64(tokens))
			case r.Kept(floor, time.Second):
				kept.Add(1)
			default:
				missed.Add(1)
			}
		}
	}
	for i := range 60 {
		wg.Go(func() { user("chat", uint64(i)) })
	}
	for i := range 10 {
		wg.Go(func() { user("nightly", uint64(100+i)) })
	}
	wg.Wait()
	w.idle(t)
	share := float64(kept.Load()) / float64(max(kept.Load()+missed.Load(), 1))
	t.Logf("%d streams let in, of which %.2f %% kept %d tokens/s; %d refused; %d tokens of batch", kept.Load()+missed.Load(), 100*share, floor, shed.Load(), batch.Load())
	if kept.Load()+missed.Load() < 50 || shed.Load() == 0 {
		t.Error("that was no overload")
	}
	if share < 0.98 { // the route's attainment is 0.99; this machine may stand still for a moment
		t.Errorf("%.2f %% kept their floor, want 98", 100*share)
	}
}

// The same load through Envoy and through the gateway teaches the same curve: each
// is held against what its own engine did.
func TestTheCurveThatIsLearned(t *testing.T) {
	w := newWorld(t, "1", "")
	serve := proctest.Start(t, nil, "serve", "-c", proctest.Write(t, "listen: 127.0.0.1:0\n"+w.config(t, "")))
	each := 3 * time.Second
	if *long {
		each = 20 * time.Second
	}
	through := func(p *proctest.Process, c *loadgen.Client) (mean, worst float64) {
		truth := w.engines[0].Ready["url"]
		reset(t, truth)
		for _, users := range []int{1, 2, 4, 6, 8} {
			var wg sync.WaitGroup
			end := time.Now().Add(each)
			for range users {
				wg.Go(func() {
					for time.Now().Before(end) {
						if r := c.Stream(t.Context(), loadgen.Request{Model: "one", PromptTokens: 40, MaxTokens: 200}); r.Outcome != loadgen.Done {
							t.Errorf("%v (%v)", r.Outcome, r.Err)
						}
					}
				})
			}
			wg.Wait()
		}
		was := map[int]sim.TruthPoint{}
		all := 0.0
		for _, d := range proctest.JSON[sim.Truth](t, truth+"/sim/truth").Points {
			was[d.N] = d
			all += d.StreamSeconds
		}
		proctest.Until(t, "the curve rests on what was done", func() bool {
			seen := 0.0
			for _, l := range targets(t, p)[0].Points {
				seen += float64(l.StreamSeconds)
			}
			return seen >= 0.8*all
		})
		weight := 0.0
		for _, l := range targets(t, p)[0].Points {
			d, ok := was[l.N]
			if !ok || l.N > 8 || d.StreamSeconds < 0.05*all {
				continue
			}
			off := float64(l.TPS)/d.TPS - 1
			t.Logf("n=%d: %.1f tokens/s learned, %.1f were (%+.2f %%)", l.N, l.TPS, d.TPS, 100*off)
			mean += off * d.StreamSeconds
			weight += d.StreamSeconds
			worst = max(worst, math.Abs(off))
		}
		return mean / weight, worst
	}
	direct, directWorst := through(serve, w.clientOf(serve.Ready["data"]))
	carried, worst := through(w.picker, w.client)
	t.Logf("off by %+.2f %% through Envoy (worst level %.2f %%), by %+.2f %% through the gateway (worst %.2f %%)", 100*carried, 100*worst, 100*direct, 100*directWorst)
	most := 0.03 // in so short a time
	if *long {
		most = 0.01
	}
	if apart := math.Abs(carried - direct); apart > most {
		t.Errorf("the two curves are %.2f %% apart, want %.0f at most", 100*apart, 100*most)
	}
}

// reset has an engine forget what it did.
func reset(t *testing.T, engine string) {
	t.Helper()
	resp := must.Get(httpPost(engine+"/sim/reset", ""))(t)
	resp.Body.Close()
}

// A picker and a gateway with one Redis are two replicas: what one learns the other
// knows, and a key has one limit for both.
func TestOneRedisWithServe(t *testing.T) {
	store := "store: \"" + overTCP(t, redistest.Start(t).Addr) + "\"\n" + `
keys: [ { name: k, key: sk-test-1234567890, routes: [chat, one], limits: { requests_per_minute: 24 } } ]
`
	w := newWorld(t, "2", store)
	serve := proctest.Start(t, nil, "serve", "-c", proctest.Write(t, "listen: 127.0.0.1:0\n"+w.config(t, store)))
	w.client.Key = "sk-test-1234567890"
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for range 3 {
				if r := w.client.Stream(t.Context(), loadgen.Request{Model: "one", PromptTokens: 20, MaxTokens: 100}); r.Outcome != loadgen.Done {
					t.Errorf("%v (%v)", r.Outcome, r.Err)
				}
			}
		})
	}
	wg.Wait()
	proctest.Until(t, "the gateway knows what the picker learned", func() bool {
		return targets(t, serve)[0].TokensSeen >= 0.5*18*99
	})
	direct := w.clientOf(serve.Ready["data"])
	direct.Key = w.client.Key
	served := 0
	proctest.Until(t, "the key's limit is reached", func() bool {
		r := direct.Stream(t.Context(), loadgen.Request{Model: "one", PromptTokens: 20, MaxTokens: 2})
		if r.Outcome == loadgen.Done {
			served++
		}
		return r.Outcome == loadgen.Shed
	})
	if served > 12 {
		t.Errorf("%d requests at the gateway behind 18 through Envoy, of 24 a minute", served)
	}
}

// overTCP is the URL of a Redis whose socket is at path.
func overTCP(t *testing.T, path string) string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", path)
			if err != nil {
				client.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
				go func() {
					_, _ = io.Copy(way[0], way[1])
					way[0].Close()
				}()
			}
		}
	}()
	return "redis://" + l.Addr().String() + "/0"
}

// Streams by the thousand, a part of whose clients hang up: none is cut, and nothing
// is left.
func TestManyStreams(t *testing.T) {
	users, total := 200, 600
	if *long {
		users, total = 1000, 10_000
	}
	w := newWorld(t, "1", "", "slo: { min_tps: 30 }", "on_infeasible: [ best_effort ]", "log:", "log:")
	var done, left atomic.Int64
	var next atomic.Int64
	var wg sync.WaitGroup
	for range users {
		wg.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(total) {
					return
				}
				random := rand.New(rand.NewPCG(uint64(i), 3))
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				if i%5 == 0 {
					ctx, cancel = context.WithTimeout(t.Context(), time.Duration(random.IntN(3000))*time.Millisecond)
				}
				tokens := 20 + random.IntN(60)
				r := w.client.Stream(ctx, loadgen.Request{Model: "chat", PromptTokens: 20, MaxTokens: tokens})
				cancel()
				switch {
				case r.Outcome == loadgen.Done && r.Tokens == tokens:
					done.Add(1)
				case r.Outcome == loadgen.Aborted:
					left.Add(1)
				default:
					t.Errorf("%v with %d of %d tokens, status %d (%v)", r.Outcome, r.Tokens, tokens, r.Status, r.Err)
				}
			}
		})
	}
	wg.Wait()
	w.idle(t)
	t.Logf("%d streams whole, %d hung up, at most %d at once; none cut", done.Load(), left.Load(), users)
	if done.Load()+left.Load() != int64(total) {
		t.Errorf("%d of %d streams", done.Load()+left.Load(), total)
	}
	counted := 0.0
	for line := range strings.Lines(w.metrics(t)) {
		counted += proctest.Sum(line, "pacer_requests_total{")
	}
	if counted > float64(total) || counted < float64(done.Load()) {
		t.Errorf("%v requests counted, want all that came to the picker: %d to %d", counted, done.Load(), total)
	}
}
