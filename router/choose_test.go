package router

import (
	"math"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// three is a bench with a fast, a middle and a slow backend, all of which give
// one stream its floor.
func three(tb testing.TB, edit func(*Route)) *bench {
	rt := Route{Name: "chat", SLO: SLO{MinTPS: 30}}
	if edit != nil {
		edit(&rt)
	}
	b := newBench(tb, []string{"slow", "fast", "middle"}, rt)
	b.learn("slow", carrying(10, 30, 40))
	b.learn("fast", carrying(10, 30, 120))
	b.learn("middle", carrying(10, 30, 70))
	return b
}

func (b *bench) wantChosen(want string, edit ...func(*Request)) {
	b.tb.Helper()
	d := b.place("chat", edit...)
	if d.Lease == nil {
		b.tb.Fatalf("refused: %+v", d.Refusal)
	}
	if got := d.Lease.Target().Backend; got != want || d.Chosen.Target.Backend != want {
		b.tb.Errorf("went to %s (%+v), want %s", got, d.Chosen, want)
	}
}

func TestPreferHeadroom(t *testing.T) {
	b := three(t, nil)
	b.wantChosen("fast")
	// 120 tokens/s on the fast one fall to those of the middle as it fills.
	seen := map[string]int{}
	for range 15 {
		seen[b.place("chat").Lease.Target().Backend]++
	}
	if seen["fast"] == 0 || seen["middle"] == 0 || seen["fast"] < seen["slow"] {
		t.Errorf("15 streams went to %v", seen)
	}
}

func TestPreferOrder(t *testing.T) {
	b := three(t, func(rt *Route) { rt.Prefer = Order })
	for range 10 {
		b.wantChosen("slow")
	}
	b.wantChosen("fast")
}

func TestPreferCheapest(t *testing.T) {
	b := three(t, func(rt *Route) {
		rt.Prefer = Cheapest
		rt.Targets = targets("slow", "fast", "middle")
		rt.Targets[0].OutputPrice, rt.Targets[1].OutputPrice, rt.Targets[2].OutputPrice = 1, 2, 1
	})
	b.wantChosen("middle") // the cheapest two differ in headroom
	for range 19 {
		if got := b.place("chat").Lease.Target().Backend; got == "fast" {
			t.Fatal("went to the dearest while a cheaper one had room")
		}
	}
	b.wantChosen("fast")
}

func TestCheapestCountsPromptAndAnswer(t *testing.T) {
	b := three(t, func(rt *Route) {
		rt.Prefer = Cheapest
		rt.Targets = targets("slow", "fast")
		rt.Targets[0].InputPrice, rt.Targets[1].OutputPrice = 1, 10
	})
	maxTokens := func(r *Request) { r.MaxTokens = 10 }
	b.wantChosen("slow", prompt(10))                // 10 µ$ against 256·10
	b.wantChosen("fast", prompt(10_000), maxTokens) // 10 000 µ$ against 100
	if c := b.seen(Request{Route: "chat", PromptTokens: 1_000_000}); c[0].Price != 1 {
		t.Errorf("price of a million prompt tokens at 1 USD: %v", c[0].Price)
	}
}

func TestPreferPack(t *testing.T) {
	b := three(t, func(rt *Route) { rt.Prefer = Pack })
	for range 10 {
		b.wantChosen("slow")
	}
	b.wantChosen("middle")
}

// Within 5 % is a tie, and ties are spread.
func TestTiesAreRandom(t *testing.T) {
	b := newBench(t, []string{"x", "y", "z"})
	b.learn("x", carrying(500, 30, 60.0))
	b.learn("y", carrying(500, 30, 59.0))
	b.learn("z", carrying(500, 30, 50.0))
	seen := map[string]int{}
	for range 200 {
		l := b.place("chat").Lease
		seen[l.Target().Backend]++
		l.Done(b.now, 1)
	}
	if seen["x"] < 70 || seen["y"] < 70 || seen["z"] != 0 {
		t.Errorf("200 single requests went to %v", seen)
	}
}

func TestUnknownTargetsGoFirstEmptiestFirst(t *testing.T) {
	b := newBench(t, []string{"known", "x", "y"})
	b.learn("known", carrying(500, 30, 300))
	seen := map[string]int{}
	for range 2 * slowStartCap {
		seen[b.place("chat").Lease.Target().Backend]++
	}
	if seen["x"] != slowStartCap || seen["y"] != slowStartCap {
		t.Errorf("the first streams went to %v", seen)
	}
	b.wantChosen("known")
}

// Requests without a floor shun a backend where strict streams have little to
// spare, though it is faster, and use it when they have.
func TestNoFloorShunsTheProtected(t *testing.T) {
	b := newBench(t, []string{"x", "y"})
	b.learn("x", carrying(10, 30, 120))
	b.learn("y", carrying(10, 20, 30))
	strict := b.fill("chat", 8, exclude("y"))
	b.wantReasonOf("x", OK, wish(0))
	b.wantChosen("y", wish(0))
	for _, l := range strict[3:] {
		l.Done(b.now, 10)
	}
	b.wantChosen("x", wish(0))
}

func (b *bench) wantReasonOf(backend string, want Reason, edit ...func(*Request)) {
	b.tb.Helper()
	req := Request{Route: "chat"}
	for _, e := range edit {
		e(&req)
	}
	for _, c := range b.seen(req) {
		if c.Target.Backend == backend && c.Reason != want {
			b.tb.Errorf("%s: got %v, want %v", backend, c.Reason, want)
		}
	}
}

// A long prompt is charged for what it costs the running: it goes where that
// matters least.
func TestLongPromptsGoWhereTheyHurtLeast(t *testing.T) {
	b := newBench(t, []string{"x", "y"})
	c := carrying(100, 30, 90)
	c.d = 1e-4
	b.learn("x", c)
	idle := carrying(100, 30, 80)
	idle.d = 1e-4
	b.learn("y", idle)
	b.fill("chat", 2, exclude("y"))
	b.wantChosen("x")
	b.wantChosen("y", prompt(20_000))
}

func TestCandidates(t *testing.T) {
	b := three(t, nil)
	b.fill("chat", 10, exclude("fast"), exclude("middle"))
	d := b.place("chat", exclude("slow"), exclude("middle"))
	c := b.seen(Request{Route: "chat", Stream: true})
	if len(c) != 3 || c[0].Reason != ReasonOwnFloor || c[0].Feasible || !c[1].Feasible {
		t.Fatalf("candidates: %+v", c)
	}
	if got := c[0]; got.M != 10 || got.N != 0 || got.Protect != 30 || got.Floor != 30 {
		t.Errorf("slow: %+v", got)
	}
	curve := carrying(10, 30, 120)
	want := curve.Low(2, 0) / 30
	if got := c[1]; got.M != 1 || math.Abs(got.TPS-curve.TPS(2)) > 1e-9 || math.Abs(got.Headroom-want) > 1e-9 {
		t.Errorf("fast: %+v, want headroom %v", got, want)
	}
	if d.Chosen.M != 0 || d.Policy != "headroom" || !d.Chosen.Feasible {
		t.Errorf("chosen: %+v", d.Chosen)
	}
	if l := b.Loads(); l[0].M != 10 || l[1].M != 1 {
		t.Error("a look reserved something")
	}
	if b.seen(Request{Route: "other"}) != nil {
		t.Error("an unknown route has candidates")
	}
}

func TestUnknownIsNaNAndZero(t *testing.T) {
	b := newBench(t, []string{"x"})
	c := b.seen(Request{Route: "chat"})[0]
	if !math.IsNaN(c.TPS) || c.Low != 0 || !math.IsInf(c.Headroom, 1) || !c.Feasible {
		t.Errorf("unknown target: %+v", c)
	}
}

// A policy that is asked regardless sends requests to any target in service, as
// long as there is one.
func TestAPolicyOfItsOwn(t *testing.T) {
	turns := Registered{Policy: inTurn{}, Regardless: true}
	b := &bench{tb: t, now: start, seed: 1}
	b.Router = New(Options{Rand: b.rand01, Policies: map[Prefer]Registered{"turns": turns}})
	b.topo.Backends = []Backend{{Name: "x", MaxConcurrency: 3}, {Name: "y"}}
	b.topo.Routes = []Route{{Name: "chat", SLO: SLO{MinTPS: 30}, Prefer: "turns", Targets: targets("x", "y", "gone"), OnInfeasible: []Step{{Kind: Queue, Wait: time.Minute}}}}
	b.configure()
	b.learn("x", carrying(5, 30, 60))
	for i := range 30 { // far beyond what is feasible
		want := []string{"x", "y", "x"}[i%3] // the third is not configured: the next in turn takes its requests
		d := b.Place(b.now, Request{Route: "chat", Stream: true})
		if d.Lease == nil || d.Policy != "turns" || d.Lease.Target().Backend != want || d.Lease.Floor() != 30 {
			t.Fatalf("request %d: got %+v, want it on %s", i, d, want)
		}
	}
	if rec, _ := b.Preview(b.now, Request{Route: "chat"}); rec.Chosen.Backend != "x" || rec.Outcome != OutcomePlaced || rec.Candidates[0].Reason != ReasonCap {
		t.Errorf("preview: %+v", rec)
	}
	if d := b.Place(b.now, Request{Route: "chat", Exclude: []string{"x"}}); d.Lease.Target().Backend != "y" {
		t.Errorf("placed on %v, which was excluded", d.Lease.Target())
	}
	b.health("x", Down)
	b.health("y", Down)
	b.wantRefusal(b.Place(b.now, Request{Route: "chat"}), NoBackend)
}

// inTurn takes the next of the route's targets that is open.
type inTurn struct{}

func (inTurn) Pick(c Choice) int {
	for i := range c.Len() {
		if next := int((c.Turn() + uint64(i)) % uint64(c.Len())); c.Open(next) {
			return next
		}
	}
	return -1
}

// TestASlotNowBeforeMoreSpeedLater: an engine without a free slot is the fastest still,
// by its tokens. Who has a floor begins elsewhere at once, unless the cache here saves
// more than the wait.
func TestASlotNowBeforeMoreSpeedLater(t *testing.T) {
	b := newBench(t, []string{"slots", "wide"}, Route{Name: "chat", SLO: SLO{MinTPS: 20}}, Route{Name: "any"}, Route{Name: "one", Targets: targets("slots")})
	c := carrying(1000, 20, 60)
	c.first = profiles.TTFT{Base: 0.1, PerToken: 1e-3, Uncached: 1, Slots: 8, Turnover: 20}
	b.learn("slots", c)
	b.learn("wide", carrying(40, 20, 40))
	seven := b.fill("one", 7)
	b.wantChosen("slots") // the last slot
	for range 3 {
		b.wantChosen("wide")
	}
	if d := b.place("any"); d.Lease.Target().Backend != "slots" {
		t.Errorf("without a floor it went to %s, want slots: nobody said what is enough", d.Lease.Target().Backend)
	}
	// One sequence stands in line: the next one waits for a tenth of a second on average.
	warm := func(tokens int) func(*Request) {
		return func(r *Request) {
			r.PromptTokens = 400
			r.Warm = []Warmth{{Target: Target{Backend: "slots", Model: "m"}, Likely: tokens, Sure: tokens}}
		}
	}
	b.wantChosen("wide", warm(50))
	b.wantChosen("slots", warm(390))
	for _, l := range seven {
		l.Done(b.now, 100)
	}
	b.wantChosen("slots")
}

// TestNobodyFollowsWhomAnEngineLeavesWaiting: an engine that has died takes requests and
// says nothing. Its speed looks as it was, so all who came would wait there until the
// first of them is given up.
func TestNobodyFollowsWhomAnEngineLeavesWaiting(t *testing.T) {
	for _, route := range []string{"chat", "any"} {
		b := newBench(t, []string{"dead", "alive"}, Route{Name: "chat", SLO: SLO{MinTPS: 20}}, Route{Name: "any"}, Route{Name: "one", Targets: targets("dead")})
		b.learn("dead", carrying(1000, 20, 60))
		b.learn("alive", carrying(40, 20, 40))
		waits := b.place("one").Lease
		goes := func(want string) {
			t.Helper()
			d := b.place(route)
			if got := d.Lease.Target().Backend; got != want {
				t.Errorf("%s, %v after the first: went to %s, want %s", route, b.now.Sub(start), got, want)
			}
			d.Lease.Done(b.now, 0)
		}
		b.sleep(time.Second)
		goes("dead")
		b.sleep(time.Second)
		goes("alive")
		waits.FirstToken(b.now)
		goes("dead")
	}
}
