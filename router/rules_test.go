package router

import (
	"fmt"
	"math"
	"testing"
	"time"
)

func TestRule1Service(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.learn("x", carrying(20, 30, 60))
	b.wantReason("chat", OK)
	b.health("x", Down)
	b.wantReason("chat", ReasonDown)
	if b.InService() {
		t.Error("in service with its only backend down")
	}
	b.health("x", Draining)
	b.wantReason("chat", ReasonDrain)
	b.health("x", Up)
	b.wantReason("chat", ReasonDown, exclude("x"))
	b.health("x", Probing)
	if !b.InService() {
		t.Error("a probing backend is not in service")
	}
	probe := b.place("chat")
	if probe.Lease == nil {
		t.Fatalf("no probe: %+v", probe.Refusal)
	}
	if probe.Lease.Floor() != 0 {
		t.Errorf("a probe carries a floor of %v", probe.Lease.Floor())
	}
	b.wantReason("chat", ReasonBreaker)
	probe.Lease.Done(b.now, 10)
	b.wantReason("chat", OK)
}

func TestRule1Cap(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.topo.Backends[0].MaxConcurrency = 3
	b.configure()
	b.learn("x", carrying(20, 30, 60))
	b.wantFill("chat", 3, "streams admitted under a cap of 3")
	b.wantReason("chat", ReasonCap)
	b.wantReason("chat", ReasonCap, noDecode)
}

// No rule about speed speaks of a request that does not decode: neither a full
// backend, nor a stream below its floor, nor the reserve, nor a long prefill,
// nor those who stand in line for any of these keep it waiting.
func TestNoDecodeIsNeverRefusedForSpeed(t *testing.T) {
	b := newBench(t, []string{"x"},
		Route{Name: "chat", SLO: SLO{MinTPS: 30, MaxTTFT: time.Second}, OnInfeasible: queue(time.Minute)},
		Route{Name: "nightly", Class: Batch, Reserve: 4, OnInfeasible: queue(time.Minute)},
		Route{Name: "spilling", Targets: targets("nowhere"), OnInfeasible: []Step{{Kind: Spill, Route: "chat"}, {Kind: Shed}}},
	)
	b.learn("x", carrying(4, 30, 60))
	streams := b.fill("chat", 10)
	b.run(streams, 20, 5*time.Second) // every one of them below its floor
	b.wantReason("chat", ReasonProtects, wish(0))
	for _, route := range []string{"chat", "nightly"} {
		if d := b.place(route); d.Ticket == nil {
			t.Fatalf("%s: got %+v, want a place in line", route, d)
		}
	}
	for _, route := range []string{"chat", "nightly", "spilling"} {
		if d := b.place(route, noDecode, prompt(1e6)); d.Lease == nil {
			t.Errorf("%s: a request that does not decode got %+v, want a lease", route, d)
		}
	}
	b.health("x", Down)
	if d := b.place("chat", noDecode); d.Lease != nil {
		t.Error("placed on a backend that is down")
	}
}

// An embedding takes a place under the cap but is no sequence.
func TestNoDecodeHoldsAPlaceButNoSequence(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.topo.Backends[0].MaxConcurrency = 3
	b.configure()
	b.learn("x", carrying(2, 30, 60))
	d := b.place("chat", noDecode, prompt(1e6))
	if d.Lease == nil {
		t.Fatalf("refused: %+v", d.Refusal)
	}
	if l := b.load(0); l.M != 0 || l.N != 0 || l.PromptTokens != 0 || d.Lease.Floor() != 0 {
		t.Errorf("an embedding counts: %+v, floor %v", l, d.Lease.Floor())
	}
	if c := d.Chosen; !math.IsNaN(c.TPS) || c.Low != 0 {
		t.Errorf("an embedding is said to run at %v tokens/s, with a bound of %v; want unknown", c.TPS, c.Low)
	}
	b.wantReason("chat", OK)
	b.place("chat", noDecode)
	b.wantFill("chat", 1, "streams beside two embeddings under a cap of 3")
	d.Lease.FirstToken(b.now)
	d.Lease.Done(b.now, 0)
	b.wantReason("chat", OK)
}

func TestRule2OwnFloor(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.learn("x", carrying(38, 30, 60))
	b.wantFill("chat", 38, "streams admitted")
	b.wantReason("chat", ReasonOwnFloor)
	// Without a floor of its own it is the running that stop it.
	b.wantReason("chat", ReasonProtects, wish(0))
}

func TestRule2WeighsSequences(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.learn("x", carrying(10, 30, 60))
	leases := b.fill("chat", 100, sequences(4))
	if l := b.load(0); len(leases) != 2 || l.M != 8 {
		t.Errorf("%d requests of 4 sequences, m = %d; want 2 and 8", len(leases), l.M)
	}
	b.wantReason("chat", OK, sequences(2))
	b.wantReason("chat", ReasonOwnFloor, sequences(3))
}

// Prompts that wait for their prefill slow everybody down who decodes
// meanwhile.
func TestRule2ChargesWaitingPrompts(t *testing.T) {
	b := newBench(t, []string{"x"})
	c := carrying(38, 30, 60)
	c.d, c.answer = 1e-4, 200
	b.learn("x", c)
	none := len(b.fill("chat", 100))
	b = newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: 10 * time.Second}})
	b.learn("x", c)
	leases := b.fill("chat", 100, prompt(1000))
	// After j prompts of 1000 tokens 1/low(j+1) = (a + b·(j+1))/0.9 + d·1000·j/200;
	// rule 3 has j+1 prompts, as the newcomer's own slows the running. It is
	// met up to the largest m with a + b·m + 0.9·d·1000·m/200 ≤ 0.9/30.
	want := int((0.9/30 - c.a) / (c.b + 0.9*c.d*5))
	if len(leases) != want || want >= none {
		t.Errorf("%d streams with prompts of 1000 tokens, want %d; %d without", len(leases), want, none)
	}
	for _, l := range leases {
		l.FirstToken(b.now)
	}
	if l := b.load(0); l.PromptTokens != 0 || l.Decoding != len(leases) {
		t.Errorf("after the first tokens: %+v", l)
	}
	if got := len(b.fill("chat", 100)) + len(leases); got != none {
		t.Errorf("%d streams once the prompts are prefilled, want %d", got, none)
	}
}

// A request with a low floor may not push those with a high one below it.
func TestRule3ProtectsTheRunning(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.learn("x", carrying(10, 50, 100))
	strict := b.fill("chat", 3, wish(50))
	loose := b.fill("chat", 100, wish(10))
	if len(strict)+len(loose) != 10 {
		t.Errorf("%d streams beside 3 with a floor of 50, want 10 in all", len(loose))
	}
	b.wantReason("chat", ReasonProtects, wish(10))
	for _, l := range strict {
		l.Done(b.now, 100)
	}
	if got := len(b.fill("chat", 1000, wish(10))); got < 10 {
		t.Errorf("only %d more once the strict streams are gone", got)
	}
}

func TestRule3AppliesPerTarget(t *testing.T) {
	small := Route{Name: "small", SLO: SLO{MinTPS: 20}, Targets: []RouteTarget{{Target: Target{Backend: "x", Model: "m"}}}}
	big := Route{Name: "big", SLO: SLO{MinTPS: 20}, Targets: []RouteTarget{{Target: Target{Backend: "x", Model: "big"}}}}
	b := newBench(t, []string{"x"}, small, big)
	b.learn("x", carrying(100, 20, 60))
	b.mu.Lock()
	b.Router.learn(Target{Backend: "x", Model: "big"}, carrying(5, 20, 30))
	b.mu.Unlock()
	b.fill("big", 2)
	b.wantFill("small", 3, "small streams beside 2 big ones on a backend that gives 5 streams of the big model their floor")
	b.wantReason("small", ReasonProtects)
}

// A floor that the target does not reach with a single stream protects
// nothing: it would lock the backend until that stream ends.
func TestRule3IgnoresFloorsOutOfReach(t *testing.T) {
	b := newBench(t, []string{"x"})
	if d := b.place("chat", wish(200)); d.Lease == nil {
		t.Fatalf("an unknown backend refused: %+v", d.Refusal)
	}
	b.learn("x", carrying(20, 30, 60))
	b.wantReason("chat", OK)
}

func TestRule3RemoteFloor(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.learn("x", carrying(10, 50, 100))
	remote := func(n int, floor float64) {
		b.Update(b.now, RemoteLoad{Replicas: 2, ByBackend: map[string]Load{"x": {Decoding: n, Floor: floor}}})
	}
	remote(9, 50)
	b.wantReason("chat", OK)
	remote(10, 50)
	b.wantReason("chat", ReasonProtects)
	remote(10, 0)
	b.wantReason("chat", OK)
	if l := b.load(0); l.N != 10 || l.M != 10 || l.Decoding != 0 || l.Floor != 0 {
		t.Errorf("load = %+v, want the remote streams in N and M only", l)
	}
}

func nightly(reserve int) []Route {
	return []Route{
		{Name: "chat", SLO: SLO{MinTPS: 30}, Reserve: 1},
		{Name: "nightly", Class: Batch, Reserve: reserve, SLO: SLO{MinTPS: 99}},
	}
}

func TestRule4Reserve(t *testing.T) {
	for _, reserve := range []int{0, 1, 4} {
		t.Run(fmt.Sprint(reserve), func(t *testing.T) {
			b := newBench(t, []string{"x"}, nightly(reserve)...)
			b.learn("x", carrying(20, 30, 60))
			batch := b.fill("nightly", 500)
			if want := 20 - max(reserve, 1); len(batch) != want {
				t.Errorf("%d batch streams, want %d", len(batch), want)
			}
			b.wantReason("nightly", ReasonReserve)
			if d := b.place("chat"); d.Lease == nil {
				t.Errorf("the first user of the morning is refused: %+v", d.Refusal)
			}
		})
	}
}

// A backend that no floor is promised on takes all the batch there is.
func TestRule4OnlyWhereAFloorIsPromised(t *testing.T) {
	routes := nightly(1)
	routes[0].Targets = targets("x")
	routes[1].Targets = targets("y")
	b := newBench(t, []string{"x", "y"}, routes...)
	if got := len(b.fill("nightly", 300)); got != 300 {
		t.Errorf("%d batch streams on a backend without a promise, want 300", got)
	}
}

// Where no floor is within reach, as on an engine that is slow for a moment, batch
// leaves each stream a quarter of what one alone gets: filled with all that waits, the
// engine would be slow for good.
func TestRule4WhereFloorsAreOutOfReach(t *testing.T) {
	b := newBench(t, []string{"x"}, nightly(1)...)
	curve := carrying(20, 10, 25) // 22.5 alone less the margin, 5.625 at n = 46
	b.learn("x", curve)
	b.wantFill("nightly", 45, "batch streams where 30 tokens/s are out of reach")
}

// One floor that a target cannot give takes nothing from the others promised there.
func TestRule4ForTheHighestFloorWithinReach(t *testing.T) {
	routes := append(nightly(1), Route{Name: "fast", SLO: SLO{MinTPS: 90}}, Route{Name: "slow", SLO: SLO{MinTPS: 10}})
	b := newBench(t, []string{"x"}, routes...)
	b.learn("x", carrying(20, 30, 60))
	b.wantFill("nightly", 19, "batch streams")
}

func TestRule4WhileUnknown(t *testing.T) {
	b := newBench(t, []string{"x"}, nightly(1)...)
	b.wantFill("nightly", slowStartCap-1, "batch streams on an unknown backend")
	b.wantReason("chat", OK)
}

func TestRule5TTFT(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MaxTTFT: 2 * time.Second}})
	c := carrying(1000, 1, 60)
	c.d = 1e-4
	b.learn("x", c)
	big := b.place("chat", prompt(10_000)).Lease // a second of prefill, which counts for 1.5
	b.wantReason("chat", OK)
	b.wantReason("chat", OK, prompt(4000))
	b.wantReason("chat", ReasonTTFT, prompt(6000)) // its own prefill counts
	b.wantReason("chat", OK, prompt(1e6))          // but where that alone takes too long
	b.wantReason("chat", ReasonTTFT, func(r *Request) { r.Arrived = b.now.Add(-600 * time.Millisecond) })
	b.place("chat", prompt(6_000), ttft(3*time.Second))
	b.wantReason("chat", ReasonTTFT)
	d := b.place("chat")
	b.wantRefusal(d, ShedTTFT)
	b.wantReason("chat", OK, ttft(3*time.Second))
	big.FirstToken(b.now)
	b.wantReason("chat", OK)
}

// A full engine that queues holds TPS and lets the first token wait: seen by
// the age of the oldest stream without one. Whom a later stream has overtaken
// waits for a reason of its own.
func TestRule5SeesAQueueInTheEngine(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MaxTTFT: 2 * time.Second}})
	b.learn("x", carrying(1000, 1, 60))
	first := b.place("chat").Lease
	b.sleep(1500 * time.Millisecond)
	second := b.place("chat").Lease
	b.sleep(600 * time.Millisecond)
	b.wantReason("chat", ReasonTTFT)
	second.FirstToken(b.now)
	b.wantReason("chat", OK)
	b.sleep(10 * time.Second)
	b.wantReason("chat", OK)
	first.FirstToken(b.now)
	first.Done(b.now, 1)
	second.Done(b.now, 1)
	b.wantM(0, "at the end")
}

func TestUnknownTargetIsUnknown(t *testing.T) {
	b := newBench(t, nil, Route{Name: "chat", Targets: targets("nowhere")})
	b.wantReason("chat", ReasonUnknown)
	b.wantRefusal(b.place("chat"), NoBackend)
	b.wantRefusal(b.place("other"), NoBackend)
}

// Where the floor is out of reach because the engine became slow, batch takes the places
// that it had, as if it were well: users come back to no crowd, and the levels that are
// known tell that it is.
func TestBatchDoesNotCrowdASlowedEngine(t *testing.T) {
	for _, c := range []struct {
		name  string
		scale float64
		want  int
	}{
		{"a third as fast as before", 1.0 / 3, 19}, // 20 less the reserve
		{"never faster", 1, 71},                    // a quarter of a single stream's speed
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}}, Route{Name: "nightly", Class: Batch, Reserve: 1})
			b.learn("x", slowed{carrying(20, 10, 20), c.scale})
			b.wantFill("nightly", c.want, "of batch")
		})
	}
}

// An engine that became too slow for its users is left empty by them. One of batch goes
// there, however large the reserve: else nothing would show that it is well again.
func TestBatchHasOnePlaceOnAnEmptySlowedEngine(t *testing.T) {
	seen := carrying(10, 10, 20)
	seen.visited = 1
	for _, c := range []curve{slowed{carrying(10, 10, 32.9), 0.7}, slowed{seen, 0.5}} {
		b := newBench(t, []string{"x"}, nightly(4)...)
		b.learn("x", c)
		if got := len(b.fill("nightly", 9)); got < 1 {
			t.Errorf("%+v: %d of batch on an idle engine", c, got)
		}
	}
}

// The reserve is kept below the cap too, whatever the model: batch that fills
// what an API takes at once would lock every floor out.
func TestTheReserveIsBelowTheCap(t *testing.T) {
	for _, c := range []struct {
		cap, reserve int
		separate     bool
		batch        int // that fit on an idle backend
	}{{4, 1, false, 3}, {4, 3, false, 1}, {4, 0, false, 4}, {1, 1, false, 1}, {4, 9, false, 1}, {4, 1, true, 3}} {
		b := api(t, c.separate)
		b.topo.Backends[0].MaxConcurrency = c.cap
		b.topo.Routes = b.topo.Routes[:1]
		b.topo.Routes[0].Reserve = c.reserve
		b.topo.Routes = append(b.topo.Routes, Route{
			Name: "nightly", Class: Batch, Targets: []RouteTarget{{Target: Target{Backend: "x", Model: "other", Separate: c.separate}}},
		})
		b.configure()
		b.learnTarget(Target{Backend: "x", Model: "m", Separate: c.separate}, carrying(40, 30, 60))
		b.learnTarget(Target{Backend: "x", Model: "other", Separate: c.separate}, carrying(40, 30, 60))
		if s := b.Routes(b.now)[1]; s.Free != c.batch || s.FreeLowerBound {
			t.Errorf("%+v: %d free for batch (lower bound %v)", c, s.Free, s.FreeLowerBound)
		}
		if n := len(b.fill("nightly", 20, noQueue)); n != c.batch {
			t.Errorf("%+v: %d of batch were let in", c, n)
		}
		if n := len(b.fill("chat", 20, noQueue)); n != c.cap-c.batch {
			t.Errorf("%+v: %d users fit then, want %d", c, n, c.cap-c.batch)
		}
	}
}

// A curve of few steps, all of them beside prefills, keeps nobody off an idle engine:
// one at a time shows what it gives. After 300 steps it is believed, and at a floor
// that is far beyond it from the first one on.
func TestAThinCurveIsTriedAlone(t *testing.T) {
	slow := form{a: 0.1, b: 0.01, visited: 4, steps: 40} // 9.1 tokens/s alone
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}})
	b.learn("x", slow)
	b.wantReason("chat", OK)
	b.wantReason("chat", ReasonOwnFloor, wish(40))
	l := b.place("chat").Lease
	if l == nil || l.Floor() != 30 {
		t.Fatalf("placed as %+v, want it with its floor", l)
	}
	b.wantReason("chat", ReasonOwnFloor)
	l.Done(b.now, 100)
	b.wantReason("chat", OK)
	slow.steps = 300
	b.learn("x", slow)
	b.wantReason("chat", ReasonOwnFloor)
}
