package e2e

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

const (
	sharedFloor = 80 // tokens/s
	sharedGrace = 300 * time.Millisecond
)

// site is gateways in front of engines of their own.
type site struct {
	gateways, engines []*proctest.Process
	clients           []*loadgen.Client // of each gateway

	mu      sync.Mutex
	relayed float64          // tokens
	results []loadgen.Result // of streams with a floor
}

// newSite starts two engines and so many gateways in front of both.
func newSite(t *testing.T, gateways int, more string) *site {
	t.Helper()
	s := &site{}
	for seed := range 2 {
		s.engines = append(s.engines, proctest.Engine(t, "--preset", "kimi-k2.5/b200/vllm", "--seed", fmt.Sprint(seed)))
	}
	for range gateways {
		p := proctest.Gateway(t, fmt.Sprintf(`listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
log: { level: warn }
backends: [ { name: a, url: %q, kind: vllm }, { name: b, url: %q, kind: vllm } ]
routes:
  - { model: free, targets: [ { backend: a, model: kimi-k2.5 }, { backend: b, model: kimi-k2.5 } ] }
  - model: chat
    slo: { min_tps: %d, grace: %v }
    targets: [ { backend: a, model: kimi-k2.5 }, { backend: b, model: kimi-k2.5 } ]
    on_infeasible: [ shed ]
%s`, s.engines[0].Ready["url"]+"/v1", s.engines[1].Ready["url"]+"/v1", sharedFloor, sharedGrace, more))
		s.gateways, s.clients = append(s.gateways, p), append(s.clients, many(p, 64))
	}
	return s
}

// send streams one answer from a gateway.
func (s *site) send(t *testing.T, gateway int, req loadgen.Request) {
	r := s.clients[gateway].Stream(context.Background(), req)
	if r.Outcome != loadgen.Shed && (r.Outcome != loadgen.Done || r.Tokens != req.MaxTokens) {
		t.Errorf("%v with %d of %d tokens: %v", r.Outcome, r.Tokens, req.MaxTokens, r.Err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.relayed += float64(r.Tokens)
	if req.Model == "chat" {
		s.results = append(s.results, r)
	}
}

// kept is how many streams were let in, and the share of them that kept the floor.
func (s *site) kept() (admitted int, share float64) {
	kept := 0
	for _, r := range s.results {
		if r.Outcome == loadgen.Done {
			admitted++
			if r.Kept(sharedFloor, sharedGrace) {
				kept++
			}
		}
	}
	return admitted, float64(kept) / float64(max(admitted, 1))
}

// levels are those of a backend at which at least 1 % of the exposure lies, by
// n: tokens/s. They rest on so many tokens.
func levels(t *testing.T, p *proctest.Process, backend int) (tps map[int]float64, tokens float64) {
	t.Helper()
	targets := proctest.JSON[api.Profiles](t, p.Ready["admin"]+"/api/v1/profiles").Targets
	if len(targets) != 2 {
		t.Fatalf("%d targets", len(targets))
	}
	exposure := api.Number(0)
	for _, l := range targets[backend].Points {
		exposure += l.StreamSeconds
	}
	tps = map[int]float64{}
	for _, l := range targets[backend].Points {
		if l.StreamSeconds >= 0.01*exposure {
			tps[l.N] = float64(l.TPS)
		}
	}
	return tps, float64(targets[backend].TokensSeen)
}

// apart is by how much two curves differ at the levels that both have, as shares.
func apart(got, want map[int]float64) (off []float64) {
	for n := range got {
		if w, ok := want[n]; ok {
			off = append(off, math.Abs(got[n]/w-1))
		}
	}
	slices.Sort(off)
	return off
}

// Three gateways share engines, and one has such engines for itself. Both get
// the same bursts at the same time: the three learn one curve, which is that of
// the one, and keep the floor as it does.
func TestThreeGatewaysLearnWhatOneLearns(t *testing.T) {
	if racetest.On {
		t.Skip("its processes are built without the race detector, and need the cores: make numbers runs it")
	}
	three := newSite(t, 3, "replicas: 3\nstore: \""+redisURL(t, redistest.Start(t))+"\"\n")
	one := newSite(t, 1, "")
	duration, most, worse := 10*time.Second, 0.06, 0.1
	if *long {
		duration, most, worse = time.Minute, 0.02, 0.03
	}
	bursts(t, three, one, "free", 5, 300, duration*2/3)
	bursts(t, three, one, "chat", 60, 150, duration/3)

	var off []float64
	var learned3, learned1 float64
	for backend := range one.engines {
		var curve map[int]float64
		var tokens float64
		proctest.Until(t, "the replicas show the same curve", func() bool {
			curve, tokens = levels(t, three.gateways[0], backend)
			for _, p := range three.gateways[1:] {
				other, seen := levels(t, p, backend)
				if d := apart(other, curve); len(d) != len(curve) || len(d) == 0 || d[len(d)-1] > 0.001 || math.Abs(seen/tokens-1) > 1e-6 {
					return false
				}
			}
			return true
		})
		want, seen := levels(t, one.gateways[0], backend)
		learned3, learned1 = learned3+tokens, learned1+seen
		off = append(off, apart(curve, want)...)
	}
	// What came in lumps on a busy machine is no evidence, for either.
	share3, share1 := learned3/three.relayed, learned1/one.relayed
	t.Logf("three learned from %.0f %% of %.0f tokens, one from %.0f %% of %.0f", 100*share3, three.relayed, 100*share1, one.relayed)
	if share3 > 1 || share3 < share1-0.2 {
		t.Errorf("three learned from %.0f %% of what they relayed, one from %.0f", 100*share3, 100*share1)
	}
	slices.Sort(off)
	if len(off) < 6 {
		t.Fatalf("%d levels were visited by both, want 6 at least", len(off))
	}
	median := off[len(off)/2]
	t.Logf("at %d levels the curve of three is off that of one by %.1f %% in the median, %.1f %% at most", len(off), 100*median, 100*off[len(off)-1])
	if median > most {
		t.Errorf("the curve of three is off that of one by %.1f %% in the median, want %.0f at most", 100*median, 100*most)
	}

	in3, kept3 := three.kept()
	in1, kept1 := one.kept()
	t.Logf("three let %d of %d streams in, of which %.1f %% kept the floor; one %d, %.1f %%", in3, len(three.results), 100*kept3, in1, 100*kept1)
	if in1 == len(one.results) || in1 == 0 {
		t.Errorf("one let %d of %d in: the floor was not at stake", in1, len(one.results))
	}
	if kept3 < kept1-worse || in3 < in1*2/3 {
		t.Error("three do worse than one")
	}
}

// bursts sends the same streams at the same times to a random gateway of three
// and to the one, for a while: up to most at once, tokens/2 to 3/2 of tokens
// long. It returns when they have ended.
func bursts(t *testing.T, three, one *site, model string, most, tokens int, d time.Duration) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, uint64(most)))
	var streams sync.WaitGroup
	for begun := time.Now(); time.Since(begun) < d; {
		for range most/2 + rng.IntN(most/2+1) {
			r := loadgen.Request{Model: model, PromptTokens: 10, MaxTokens: tokens/2 + rng.IntN(tokens)}
			replica := rng.IntN(len(three.clients))
			streams.Go(func() { three.send(t, replica, r) })
			streams.Go(func() { one.send(t, 0, r) })
			<-time.After(time.Duration(rng.IntN(20)) * time.Millisecond)
		}
		<-time.After(time.Duration(rng.ExpFloat64() * float64(time.Second)))
	}
	streams.Wait()
}
