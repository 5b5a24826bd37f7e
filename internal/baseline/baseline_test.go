package baseline

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/router"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fleet is a router with one route on the engines a, b and c, placed by a policy.
type fleet struct {
	*router.Router
	policies map[router.Prefer]router.Registered
	now      time.Time
}

func newFleet(word router.Prefer) *fleet {
	f := &fleet{now: start}
	random := rand.New(rand.NewPCG(1, 2))
	f.policies = Policies(Options{
		Random: random, Now: func() time.Time { return f.now },
		Weight: func(t router.Target) float64 { return map[string]float64{"a": 6, "b": 3, "c": 1}[t.Backend] },
	})
	f.Router = router.New(router.Options{Rand: random.Float64, Policies: f.policies})
	rt := router.Route{Name: "chat", Prefer: word, SLO: router.SLO{MinTPS: 30}}
	topology := router.Topology{}
	for _, name := range []string{"a", "b", "c"} {
		topology.Backends = append(topology.Backends, router.Backend{Name: name, MaxConcurrency: 1})
		rt.Targets = append(rt.Targets, router.RouteTarget{Target: router.Target{Backend: name, Model: "m"}})
	}
	topology.Routes = []router.Route{rt}
	f.Update(f.now, router.Configure{Topology: topology})
	return f
}

// place returns where one more request went, and its lease.
func (f *fleet) place(t *testing.T) (string, *router.Lease) {
	t.Helper()
	d := f.Place(f.now, router.Request{Route: "chat", Stream: true})
	if d.Lease == nil {
		t.Fatalf("refused: %+v", d.Refusal)
	}
	return d.Lease.Target().Backend, d.Lease
}

func (f *fleet) learn(word router.Prefer, backend string, tps float64) {
	f.policies[word].Policy.(Learner).Learn(Answer{
		Target: router.Target{Backend: backend, Model: "m"}, Ended: f.now,
		Tokens: 100, Took: time.Duration(100 / tps * float64(time.Second)), Decoded: tps,
	})
}

func TestTheyTakeTurns(t *testing.T) {
	f := newFleet(RoundRobin)
	var went strings.Builder
	for i := range 9 {
		if i == 6 {
			f.Update(f.now, router.BackendHealth{Backend: "b", Health: router.Down})
		}
		name, _ := f.place(t)
		went.WriteString(name)
	}
	if got := went.String(); got != "abcabcacc" {
		t.Errorf("went to %s, want abcabcacc", got)
	}
}

func TestRandomFollowsTheWeights(t *testing.T) {
	f := newFleet(Random)
	counts := map[string]int{}
	const n = 5000
	for range n {
		name, _ := f.place(t)
		counts[name]++
	}
	for name, want := range map[string]float64{"a": 0.6, "b": 0.3, "c": 0.1} {
		if got := float64(counts[name]) / n; got < want-0.03 || got > want+0.03 {
			t.Errorf("%s got a share of %.3f, want %.2f", name, got, want)
		}
	}
}

// The one with the fewest in flight is taken, far beyond the caps.
func TestTheFewestInFlight(t *testing.T) {
	f := newFleet(LeastRequests)
	var leases []*router.Lease
	for range 30 {
		_, l := f.place(t)
		leases = append(leases, l)
	}
	for _, b := range f.Loads() {
		if b.M != 10 {
			t.Errorf("%d on %s, want 10 on each", b.M, b.Backend)
		}
	}
	for _, l := range leases {
		if l.Target().Backend == "b" {
			l.Done(f.now, 0)
		}
	}
	for range 10 {
		if name, _ := f.place(t); name != "b" {
			t.Errorf("went to %s while b was the emptiest", name)
		}
	}
}

// Of two drawn at random the emptier is taken: the fullest of three only when the
// other drawn is as full.
func TestTheEmptierOfTwo(t *testing.T) {
	f := newFleet(P2C)
	for range 300 {
		f.place(t)
	}
	for _, b := range f.Loads() {
		if b.M < 95 || b.M > 105 {
			t.Errorf("%d on %s, want about 100 on each", b.M, b.Backend)
		}
	}
}

// Who was fastest of late is taken, however many run there; what was never tried
// goes first.
func TestTheFastestOfLate(t *testing.T) {
	for _, word := range []router.Prefer{EWMA, LowestLatency} {
		f := newFleet(word)
		f.learn(word, "a", 50)
		f.learn(word, "b", 80)
		if name, _ := f.place(t); name != "c" {
			t.Errorf("%s: went to %s, want c, which was never tried", word, name)
		}
		f.learn(word, "c", 20)
		for range 20 {
			if name, _ := f.place(t); name != "b" {
				t.Errorf("%s: went to %s, want b", word, name)
			}
		}
		for range 60 {
			f.learn(word, "b", 10)
		}
		if name, _ := f.place(t); name != "a" {
			t.Errorf("%s: went to %s once b had become slow, want a", word, name)
		}
	}
}

// A latency is forgotten after an hour.
func TestLatenciesAreForgotten(t *testing.T) {
	f := newFleet(LowestLatency)
	f.learn(LowestLatency, "a", 80)
	f.now = f.now.Add(recentLife + time.Second)
	f.learn(LowestLatency, "b", 50)
	f.learn(LowestLatency, "c", 50)
	if name, _ := f.place(t); name != "a" {
		t.Errorf("went to %s, want a, of which nothing is known any more", name)
	}
}
