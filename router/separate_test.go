package router

import (
	"math"
	"testing"
	"time"
)

// api is a backend "x" with the models m and other, each with a route of its own
// and a floor of 30, counted by themselves if separate.
func api(t *testing.T, separate bool) *bench {
	t.Helper()
	of := func(model string) []RouteTarget {
		return []RouteTarget{{Target: Target{Backend: "x", Model: model, Separate: separate}}}
	}
	b := newBench(t, []string{"x"},
		Route{Name: "chat", SLO: SLO{MinTPS: 30}, Targets: of("m")},
		Route{Name: "other", SLO: SLO{MinTPS: 30}, Targets: of("other")},
	)
	b.learnTarget(Target{Backend: "x", Model: "m", Separate: separate}, carrying(4, 30, 60))
	b.learnTarget(Target{Backend: "x", Model: "other", Separate: separate}, carrying(6, 30, 60))
	return b
}

func (b *bench) learnTarget(t Target, c curve) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Router.learn(t, c)
}

// asCounted flips how every model is counted, as a reload does.
func (b *bench) asCounted(separate bool) {
	for i := range b.topo.Routes {
		rt := &b.topo.Routes[i]
		rt.Targets = append([]RouteTarget(nil), rt.Targets...)
		for j := range rt.Targets {
			rt.Targets[j].Separate = separate
		}
	}
	b.configure()
}

// Two models of a backend: counted together they share what it carries, and
// separate each has its own n, m and floors.
func TestSeparateModelsDoNotSeeEachOther(t *testing.T) {
	for _, c := range []struct {
		separate       bool
		chat, other    int // streams that fit
		reason         Reason
		protect        float64 // on "other", which has no floor of its own then
		n, m, nBackend int
	}{
		{false, 4, 0, ReasonProtects, 30, 4, 4, 4},
		{true, 4, 6, ReasonOwnFloor, 30, 6, 6, 10},
	} {
		b := api(t, c.separate)
		chat := b.fill("chat", 20, noQueue)
		other := b.fill("other", 20, noQueue)
		if len(chat) != c.chat || len(other) != c.other {
			t.Errorf("separate %v: %d and %d streams fit, want %d and %d", c.separate, len(chat), len(other), c.chat, c.other)
		}
		for _, l := range append(chat, other...) {
			l.FirstToken(b.now)
		}
		if _, n := chat[0].Occupancy().Load(); n != 4 {
			t.Errorf("separate %v: streams of chat read n = %d, want 4", c.separate, n)
		}
		last := b.seen(Request{Route: "other", Stream: true})[0]
		if last.Reason != c.reason || last.N != c.n || last.M != c.m || last.Protect != c.protect {
			t.Errorf("separate %v: the next one on other sees %+v, want %v with n = %d", c.separate, last, c.reason, c.n)
		}
		if l := b.load(0); l.N != c.nBackend || l.M != c.nBackend || l.Decoding != c.nBackend || l.Floor != 30 {
			t.Errorf("separate %v: the backend has %+v, want n = %d", c.separate, l, c.nBackend)
		}
	}
}

// The cap is the backend's, whatever its models: also in what a route is said to
// have free, and for when to come back.
func TestTheCapIsOfAllModels(t *testing.T) {
	b := api(t, true)
	b.topo.Backends[0].MaxConcurrency = 7
	both := append(b.topo.Routes[0].Targets[:1:1], b.topo.Routes[1].Targets...)
	b.topo.Routes = append(b.topo.Routes, Route{Name: "any", SLO: SLO{MinTPS: 30}, Targets: both})
	b.configure()
	if s := b.Routes(b.now)[2]; s.Free != 7 || s.FreeLowerBound {
		t.Errorf("%d free on both models (lower bound %v), want the cap of 7", s.Free, s.FreeLowerBound)
	}
	other := b.fill("other", 20, noQueue)
	idle := b.place("chat", noDecode)
	if len(other) != 6 || idle.Lease == nil {
		t.Fatalf("%d streams and %+v, want 6 and a lease", len(other), idle)
	}
	b.wantReason("chat", ReasonCap)
	if s := b.Routes(b.now)[0]; s.Free != 0 || s.FreeLowerBound {
		t.Errorf("%d free on chat, want none", s.Free)
	}
	idle.Lease.Done(b.now, 0)
	b.wantReason("chat", OK)
	if s := b.Routes(b.now)[2]; s.Free != 1 {
		t.Errorf("%d free on both models, want the one that the cap leaves", s.Free)
	}
	b.Update(b.now, RemoteLoad{Replicas: 2, ByBackend: map[string]Load{"x": {
		Decoding: 1, Models: map[string]Load{"elsewhere": {Decoding: 1}},
	}}})
	b.wantReason("chat", ReasonCap)
}

// Who waits for the first place below the cap gets the one that another model's
// stream leaves, and who is refused is told when that is.
func TestAPlaceBelowTheCapComesFromAnyModel(t *testing.T) {
	b := api(t, true)
	b.topo.Backends[0].MaxConcurrency = 6
	b.topo.Routes[0].OnInfeasible = queue(time.Minute)
	b.configure()
	other := b.fill("other", 20, noQueue)
	for range 20 {
		b.routes[1].lengths.add(200)
	}
	b.run(other, 50, 2*time.Second) // 100 of their 200 tokens
	d := b.place("chat", noQueue)
	b.wantRefusal(d, ShedFloor)
	if d.Refusal.RetryAfter > 6*time.Second {
		t.Errorf("told to come back in %v, want about the 2 s in which the others end", d.Refusal.RetryAfter)
	}
	d = b.place("chat", waiter("me"))
	if d.Ticket == nil {
		t.Fatalf("got %+v, want a place in line", d)
	}
	if grants := other[0].Done(b.now, 200); len(grants) != 1 || grants[0].Waiter != "me" {
		t.Errorf("%v are let go when a stream of the other model ends, want the one in line", grants)
	}
}

// Where it is the cap that stands in the way, those who wait for it or were told
// to come back go before whoever is refused next, whatever their model; where it
// is not, they do not.
func TestPlacesBelowTheCapAreToldOnce(t *testing.T) {
	told := func(cap, refused int) time.Duration {
		b := api(t, true)
		b.topo.Backends[0].MaxConcurrency = cap
		b.configure()
		running := b.fill("other", 20, noQueue)
		running = append(running, b.fill("chat", 20, noQueue)...)
		for range 20 {
			b.routes[0].lengths.add(200)
			b.routes[1].lengths.add(200)
		}
		b.run(running, 50, 2*time.Second)
		for range refused {
			b.wantRefusal(b.place("other"), ShedFloor)
		}
		b.seed = 7 // the same jitter
		d := b.place("chat")
		b.wantRefusal(d, ShedFloor)
		return d.Refusal.RetryAfter
	}
	if alone, after := told(6, 0), told(6, 30); after < 4*alone {
		t.Errorf("one of chat is told %v when 30 of other wait for the cap, and %v when nobody does", after, alone)
	}
	if alone, after := told(0, 0), told(0, 30); after != alone {
		t.Errorf("without a cap one of chat is told %v when 30 of other were refused, and %v when none was", after, alone)
	}
}

// Health is the backend's: who comes back ramps up in every group.
func TestSeparateModelsHaveOneHealth(t *testing.T) {
	b := api(t, true)
	b.health("x", Down)
	b.wantReason("chat", ReasonDown)
	b.wantReason("other", ReasonDown)
	b.health("x", Probing)
	probe := b.place("chat")
	b.wantReason("other", ReasonBreaker)
	probe.Lease.Done(b.now, 10)
	b.health("x", Up)
	b.wantFill("other", slowStartCap, "streams at once on a backend that is back", noQueue)
	b.wantCap(slowStartCap, "")
}

// What other replicas run counts in the group that it is told of; what is not
// told apart there, as by one that is configured otherwise, counts in each.
func TestRemoteLoadByModel(t *testing.T) {
	counts := func(b *bench, route string) [3]int {
		c := b.seen(Request{Route: route, Stream: true})[0]
		return [3]int{c.N, c.M, int(c.Protect)}
	}
	load := Load{Waiting: 3, Decoding: 10, PromptTokens: 900, Floor: 30, Models: map[string]Load{
		"m":     {Waiting: 1, Decoding: 2, PromptTokens: 100},
		"other": {Waiting: 2, Decoding: 8, PromptTokens: 800, Floor: 30},
	}}
	b := api(t, true)
	tell := func() { b.Update(b.now, RemoteLoad{Replicas: 2, ByBackend: map[string]Load{"x": load}}) }
	tell()
	if chat, other := counts(b, "chat"), counts(b, "other"); chat != [3]int{2, 3, 0} || other != [3]int{8, 10, 30} {
		t.Errorf("n, m, floor are %v and %v, want 2, 3, 0 and 8, 10, 30", chat, other)
	}
	if l := b.load(0); l.N != 10 || l.M != 13 {
		t.Errorf("the backend has n = %d, m = %d, want 10 and 13", l.N, l.M)
	}

	load.Models = nil // of a replica that counts them together
	tell()
	if chat, other := counts(b, "chat"), counts(b, "other"); chat != [3]int{10, 13, 30} || other != chat {
		t.Errorf("n, m, floor are %v and %v, want 10, 13, 30 in both", chat, other)
	}

	load.Models = map[string]Load{"m": {Waiting: -4, Decoding: 1 << 40}} // nonsense is kept apart
	tell()
	if other := counts(b, "other"); other != [3]int{0, 3, 30} {
		t.Errorf("n, m, floor are %v, want what is left: 0, 3, 30", other)
	}

	shared := api(t, false)
	load.Models = map[string]Load{"m": {Decoding: 9}}
	shared.Update(b.now, RemoteLoad{Replicas: 2, ByBackend: map[string]Load{"x": load}})
	if chat := counts(shared, "chat"); chat != [3]int{10, 13, 30} {
		t.Errorf("counted together n, m, floor are %v, want 10, 13, 30", chat)
	}
	b.Update(b.now, RemoteLoad{Replicas: 3})
	b.Update(b.now, RemoteLoad{Replicas: 3, Lost: true})
	b.fill("chat", 1)
	if chat, other := counts(b, "chat"), counts(b, "other"); chat[1] != 3 || other[1] != 0 {
		t.Errorf("without Redis m is %d and %d, want 3 times the own one, and 0", chat[1], other[1])
	}
}

// What another replica saw of the prompts of one model, and that it has it cleared, is
// nothing to a model that is counted by itself beside it; also while nobody runs there.
func TestReplicasTellOfSeparateModelsApart(t *testing.T) {
	for _, runs := range []bool{true, false} {
		there, here := api(t, true), api(t, true)
		group := func(b *bench, model string) *group {
			return b.backends[0].group(GroupID{Backend: "x", Model: model, Separate: true})
		}
		const seen = 1e9
		there.fill("chat", 1)
		if runs {
			there.force(Request{Route: "other", Stream: true}, Target{Backend: "x", Model: "other", Separate: true})
		}
		g := group(there, "other")
		g.price.prefills.sums, g.price.prefills.at = costSums{xy: 2e-3 * seen, xx: seen}, there.now
		g.clearing.until, g.clearing.own = there.now.Add(clearFor), true
		told := there.Own(there.now)
		here.Update(here.now, RemoteLoad{Replicas: 2, ByBackend: told})
		if m := group(here, "m"); m.price.told != (costSums{}) || m.clearing.on(here.now) {
			t.Errorf("runs %v: the model beside it takes it for its own: %+v, cleared: %v", runs, m.price.told, m.clearing.on(here.now))
		}
		g = group(here, "other")
		if got := g.price.told.xx; runs && math.Abs(got-seen) > 1 || !runs && got != 0 {
			t.Errorf("runs %v: of prompts of the same model it hears %v, want %v once", runs, got, seen)
		}
		if runs && !g.clearing.on(here.now) {
			t.Error("the model that is cleared there is not cleared here")
		}
	}
}

// A reload that counts models otherwise loses nobody: those who run are counted
// with those who come until they end, and keep their floors.
func TestReloadCountsModelsOtherwise(t *testing.T) {
	for _, from := range []bool{false, true} {
		b := api(t, from)
		chat, other := b.fill("chat", 2), b.fill("other", 1)
		for _, l := range append(chat, other...) {
			l.FirstToken(b.now)
		}
		b.asCounted(!from)
		b.learnTarget(Target{Backend: "x", Model: "m", Separate: !from}, carrying(4, 30, 60))
		c := b.seen(Request{Route: "chat", Stream: true})[0]
		if c.N != 3 || c.M != 3 || c.Protect != 30 {
			t.Errorf("separate %v: after the reload a newcomer sees %+v, want the 3 that run and their floor", !from, c)
		}
		if l := b.load(0); l.N != 3 || l.M != 3 || l.Floor != 30 {
			t.Errorf("separate %v: the backend has %+v, want n = m = 3", !from, l)
		}
		if got := b.fill("chat", 20, noQueue); len(got) != 1 {
			t.Errorf("separate %v: %d more fit, want 1", !from, len(got))
		} else {
			got[0].Done(b.now, 1)
		}
		for _, l := range append(chat, other...) {
			l.Done(b.now, 100)
		}
		c = b.seen(Request{Route: "chat", Stream: true})[0]
		if c.N != 0 || c.M != 0 || c.Protect != 0 {
			t.Errorf("separate %v: when they have ended a newcomer sees %+v, want nobody", !from, c)
		}
		b.configure()
		want := 1
		if !from {
			want = 2
		}
		if n := len(b.backends[0].groups); n != want {
			t.Errorf("separate %v: %d groups are left, want %d", !from, n, want)
		}
	}
}

// All models that only clients name are one group, however many they are.
func TestUnnamedModelsAreOneGroup(t *testing.T) {
	b := newBench(t, []string{"x"},
		Route{Name: "*", SLO: SLO{MinTPS: 30}, Targets: []RouteTarget{{Target: Target{Backend: "x", Separate: true}}}},
		Route{Name: "chat", SLO: SLO{MinTPS: 30}, Targets: []RouteTarget{{Target: Target{Backend: "x", Model: "m", Separate: true}}}},
	)
	b.fill("*", 3)
	if l := b.load(0); len(l.Models) != 2 || l.Models[0].Model != "" || l.Models[0].M != 3 || l.Models[1].M != 0 {
		t.Errorf("models %+v, want one of 3 without a name, and an idle one", l.Models)
	}
}

// What an engine says of itself speaks of no separate model.
func TestAnEngineDoesNotTellModelsApart(t *testing.T) {
	b := api(t, true)
	b.Update(b.now, EngineLoad{Backend: "x", Running: 50, At: b.now})
	if l := b.load(0); l.N != 0 || l.Engine != nil {
		t.Errorf("the backend has %+v, want no word of the engine", l)
	}
}

// A waiter for one model keeps batch off that model alone.
func TestBatchMakesRoomOnItsOwnModel(t *testing.T) {
	b := api(t, true)
	b.topo.Routes[0].OnInfeasible = queue(time.Minute)
	for _, target := range []string{"m", "other"} {
		b.topo.Routes = append(b.topo.Routes, Route{
			Name: "nightly-" + target, Class: Batch, Targets: []RouteTarget{{Target: Target{Backend: "x", Model: target, Separate: true}}},
		})
	}
	b.configure()
	b.fill("chat", 4, noQueue)
	if d := b.place("chat"); d.Ticket == nil {
		t.Fatalf("got %+v, want a place in line", d)
	}
	b.wantReason("nightly-other", OK)
	if n := b.backends[0].group(GroupID{Backend: "x", Model: "other", Separate: true}).yield.wanted; n != 0 {
		t.Errorf("%d lines wait for the other model, want none", n)
	}
	b.wantReason("nightly-m", ReasonProtects)
}
