package arena

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/sim"
)

// twoGPUs is a small fleet under about all it carries.
func twoGPUs(policy Policy) Scenario {
	bs := []Backend{backend("r1", "deepseek-r1/h200/sglang"), backend("llama", "llama-3.1-70b/h200/vllm")}
	return Scenario{
		Backends: bs, Routes: []Route{chat("chat", 30, bs)},
		Load: steady(20)(1), Policy: policy,
		Duration: 30 * time.Second, Warmup: 5 * time.Second, Seed: 1,
	}
}

func TestTheSameScenarioGivesTheSameResult(t *testing.T) {
	skipUnderRace(t)
	for _, policy := range Policies() {
		var results [2]Result
		for i := range results {
			r := must.Get(Run(t.Context(), twoGPUs(policy)))(t)
			r.Wall = 0
			results[i] = r
		}
		if !reflect.DeepEqual(results[0], results[1]) {
			t.Errorf("%s: two runs differ:\n%+v\n%+v", policy, results[0], results[1])
		}
		c := results[0].Routes[0].Counts
		if c.Offered == 0 || c.Offered != c.Met+c.Missed+c.Unmeasured+c.Shed+c.Failed {
			t.Errorf("%s: %+v do not add up", policy, c)
		}
	}
}

func TestTheAgendaIsInOrder(t *testing.T) {
	var a agenda
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 1000 {
		a.enter(time.Duration(random.IntN(50)), &looking{})
		if i%3 == 0 {
			a.next()
		}
	}
	last := event{at: -1}
	for e, ok := a.next(); ok; e, ok = a.next() {
		if !last.before(&e) {
			t.Fatalf("%v (entered as %d) after %v (%d)", e.at, e.order, last.at, last.order)
		}
		last = e
	}
}

// One engine alone serves exactly what its model says.
func TestOneStreamRunsAtItsCurve(t *testing.T) {
	b := Backend{
		Name: "x", Engine: sim.EngineOptions{Model: sim.Model{A: 0.02, D: 1e-4}, Noise: -1},
		Price: Price{Input: 1, Output: 10}, USDPerHour: 36,
	}
	r := play(t, Scenario{
		Backends: []Backend{b}, Routes: []Route{chat("chat", 30, []Backend{b})}, Duration: 100 * time.Second,
		Load: slices.Values([]Arrival{{Route: "chat", PromptTokens: 1000, OutputTokens: 101}, {Route: "none"}}),
	})
	c := r.route("chat")
	if c.Met != 1 || c.Offered != 1 || math.Abs(c.TPSP50-50) > 1e-6 || c.TTFTP50 != 120*time.Millisecond {
		t.Errorf("%+v: want one stream that met its floor at 50 tokens/s after 120 ms", c)
	}
	x := r.Backends[0]
	if math.Abs(x.MeanM-0.0212) > 1e-9 || x.PromptTokens != 1000 || x.OutputTokens != 101 || x.PeakM != 1 {
		t.Errorf("%+v: want 0.0212 sequences on average, with 1000 and 101 tokens", x)
	}
	if math.Abs(x.TokensUSD-0.00201) > 1e-9 || math.Abs(x.HourUSD-1) > 1e-9 {
		t.Errorf("%v USD for tokens and %v by the hour, want 0.00201 and 1", x.TokensUSD, x.HourUSD)
	}
	// 1000 prompt tokens to 100 others of the answer: at n streams a step takes
	// 20 ms + n·1 ms, and 33.3 ms at 13.
	if x.TrueUsers != 13 {
		t.Errorf("%d users at a floor of 30, want 13", x.TrueUsers)
	}
}

// A backend that dies cuts who has a token, sends the others elsewhere, and is
// used again when it is back.
func TestAKilledBackend(t *testing.T) {
	for _, policy := range []Policy{Pacer, LeastRequests} {
		s := twoGPUs(policy)
		s.Load, s.Duration, s.Warmup = steady(6)(1), 60*time.Second, 0
		s.Faults = []Fault{{At: 10 * time.Second, Kind: Kill, Backend: "r1"}, {At: 20 * time.Second, Kind: Back, Backend: "r1"}}
		r := play(t, s)
		c := r.route("chat")
		if c.Failed > 30 || c.Met+c.Missed+c.Shed+c.Failed != c.Offered {
			t.Errorf("%s: %+v: want only those cut that ran there", policy, c.Counts)
		}
		s.Faults = s.Faults[:1]
		if after := play(t, s).Backends[0].OutputTokens; after >= r.Backends[0].OutputTokens {
			t.Errorf("%s: %d tokens from a backend that stays dead, %d from one that comes back", policy, after, r.Backends[0].OutputTokens)
		}
	}
}

func TestAScenarioThatCannotBePlayed(t *testing.T) {
	for want, spoil := range map[string]func(*Scenario){
		"has no target":       func(s *Scenario) { s.Routes[0].Targets = nil },
		"Routes is empty":     func(s *Scenario) { s.Routes = nil },
		"Load is missing":     func(s *Scenario) { s.Load = nil },
		"Duration is":         func(s *Scenario) { s.Warmup = s.Duration },
		"no policy":           func(s *Scenario) { s.Policy = "best" },
		"which is no backend": func(s *Scenario) { s.Backends = s.Backends[:1] },
		"two backends":        func(s *Scenario) { s.Backends = append(s.Backends, s.Backends[0]) },
		"two routes":          func(s *Scenario) { s.Routes = append(s.Routes, s.Routes[0]) },
		"which is none":       func(s *Scenario) { s.Faults = []Fault{{Kind: Kill, Backend: "z"}} },
		"must be positive":    func(s *Scenario) { s.Faults = []Fault{{Kind: Drift, Backend: "r1"}} },
		"sim: ":               func(s *Scenario) { s.Backends[0].Engine.Speed = -1 },
	} {
		s := twoGPUs(Pacer)
		spoil(&s)
		if _, err := Run(t.Context(), s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, twoGPUs(Pacer)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}
