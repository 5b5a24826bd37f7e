package router

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// guaranteed is a route with a floor and places guaranteed.
func guaranteed(name string, floor float64, places int, on ...string) Route {
	return Route{Name: name, SLO: SLO{MinTPS: floor, Guarantee: Guarantee{Places: places}}, Targets: targets(on...)}
}

// On one engine that carries 20 at 30 tokens/s the others leave what is kept, and
// no more; who has it is sure of it.
func TestGuaranteedPlacesAreLeft(t *testing.T) {
	b := newBench(t, []string{"x"}, guaranteed("kept", 30, 6), Route{Name: "flood", SLO: SLO{MinTPS: 30}}, Route{Name: "batch", Class: Batch})
	b.learnNow("x", carrying(20, 30, 60))
	flood := b.fill("flood", 100)
	if len(flood) != 14 {
		t.Fatalf("%d of the others are let in beside 6 kept of 20, want 14", len(flood))
	}
	b.wantReason("flood", ReasonGuarantee)
	b.wantReason("batch", ReasonReserve)
	if c := b.seen(Request{Route: "flood"})[0]; c.Held != 6 {
		t.Errorf("%d places are kept there for others, want 6", c.Held)
	}
	if c := b.seen(Request{Route: "kept"})[0]; c.Held != 0 {
		t.Errorf("%d places are kept from who has them, want 0", c.Held)
	}
	held := b.fill("kept", 100)
	if len(held) != 6 {
		t.Fatalf("%d found a place, want the 6 that were kept", len(held))
	}
	// A place that is used is not kept any more, and comes back when it is free.
	held[0].Done(b.now, 100)
	b.wantReason("flood", ReasonGuarantee)
	flood[0].Done(b.now, 100)
	b.wantReason("flood", OK)
}

// The places are kept at the floor of their route: 10 at 60 tokens/s on an engine
// that carries 30 at 30. Who is let in beside takes them the speed.
func TestPlacesAreKeptAtTheirFloor(t *testing.T) {
	at := func(floor float64) int {
		b := newBench(t, []string{"x"}, Route{Name: "r", SLO: SLO{MinTPS: floor}})
		b.learnNow("x", carrying(30, 30, 100))
		return len(b.fill("r", 100))
	}
	fast := at(60)
	b := newBench(t, []string{"x"}, guaranteed("fast", 60, 3), Route{Name: "slow", SLO: SLO{MinTPS: 30}})
	b.learnNow("x", carrying(30, 30, 100))
	b.wantFill("slow", fast-3, "slow ones beside 3 places at 60")
	b.wantFill("fast", 3, "fast ones")
}

// Batch is let in for what it has saved up although others are kept out, but not
// onto a place that is guaranteed.
func TestTheShareOfBatchLeavesWhatIsGuaranteed(t *testing.T) {
	b := newBench(t, []string{"x"}, guaranteed("kept", 30, 6), Route{Name: "flood", SLO: SLO{MinTPS: 30}}, Route{Name: "batch", Class: Batch, BatchShare: 1})
	b.learnNow("x", carrying(20, 30, 60))
	b.fill("flood", 100)
	b.place("flood") // refused: batch lives on its share
	if d := b.place("batch"); d.Lease != nil {
		t.Error("a batch request took a place that is guaranteed")
	}
	b.wantReason("batch", ReasonGuarantee)
	b.wantFill("kept", 6, "found a place")
}

// Best effort takes no place that is guaranteed either.
func TestBestEffortLeavesWhatIsGuaranteed(t *testing.T) {
	b := newBench(t, []string{"x"}, guaranteed("kept", 30, 6), Route{Name: "flood", SLO: SLO{MinTPS: 30}, OnInfeasible: []Step{{Kind: BestEffort}}})
	b.learnNow("x", carrying(20, 30, 60))
	b.wantFill("flood", 14, "were let in")
	b.wantFill("kept", 6, "found a place")
}

// What other routes spill takes no place that is guaranteed either.
func TestSpillLeavesWhatIsGuaranteed(t *testing.T) {
	b := newBench(t, []string{"x", "y"}, guaranteed("kept", 30, 6, "x"),
		Route{Name: "flood", SLO: SLO{MinTPS: 30}, Targets: targets("y"), OnInfeasible: []Step{{Kind: Spill, Route: "kept"}}})
	b.learnNow("x", carrying(20, 30, 60))
	b.health("y", Down)
	b.wantFill("flood", 14, "were let in beside 6 kept of 20")
	b.wantFill("kept", 6, "found a place")
}

// What is kept below a cap is kept from requests that do not decode, too.
func TestGuaranteedPlacesBelowACap(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "kept", SLO: SLO{Guarantee: Guarantee{Places: 3}}}, Route{Name: "flood"})
	b.topo.Backends[0].MaxConcurrency = 8
	b.configure()
	if got := len(b.fill("flood", 100)) + len(b.fill("flood", 100, noDecode)); got != 5 {
		t.Errorf("%d were let in below a cap of 8 with 3 kept, want 5", got)
	}
	b.wantReason("flood", ReasonGuarantee, noDecode)
	b.wantFill("kept", 3, "found a place")
}

// The places are split by what the targets carry; those of a target that is down are
// kept on the others.
func TestGuaranteedPlacesAreSplit(t *testing.T) {
	b := newBench(t, []string{"x", "y"}, guaranteed("kept", 30, 9, "x", "y"), Route{Name: "flood", SLO: SLO{MinTPS: 30}})
	b.learnNow("x", carrying(20, 30, 60))
	b.learnNow("y", carrying(10, 30, 60))
	split := func() (out [2]int) {
		for i, c := range b.seen(Request{Route: "flood"}) {
			out[i] = c.Held
		}
		return out
	}
	if got := split(); got != [2]int{6, 3} {
		t.Errorf("kept %v, want 6 and 3", got)
	}
	b.health("x", Down)
	if got := split(); got != [2]int{0, 9} {
		t.Errorf("with x down kept %v, want 9 on y", got)
	}
	b.health("x", Up)
	b.health("y", Draining)
	if got := split(); got[1] != 0 || got[0] == 0 {
		t.Errorf("with y draining kept %v", got)
	}
}

// A share is of what the targets carry at the floor of the route.
func TestAGuaranteedShare(t *testing.T) {
	rt := guaranteed("kept", 30, 0)
	rt.SLO.Guarantee.Share = 0.25
	b := newBench(t, []string{"x"}, rt, Route{Name: "flood", SLO: SLO{MinTPS: 30}})
	b.learnNow("x", carrying(20, 30, 60))
	b.wantFill("flood", 15, "were let in beside a quarter of 20")
}

// While nothing is known of an engine, half of what slow start lets in is kept: the
// others have to show what it carries.
func TestHalfOfASlowStartIsKept(t *testing.T) {
	b := newBench(t, []string{"x"}, guaranteed("kept", 30, 10), Route{Name: "flood", SLO: SLO{MinTPS: 30}})
	b.wantFill("flood", slowStartCap/2, "were let in on an unknown engine")
	b.wantFill("kept", slowStartCap/2, "found a place")
}

// Where nobody saw as many users as an engine is thought to carry, half of them are left to
// the others, whatever all routes together have guaranteed: else nobody shows that it
// carries more, and it stands idle beside refusals.
func TestHalfIsLeftWhereNobodyWas(t *testing.T) {
	flood := Route{Name: "flood", SLO: SLO{MinTPS: 30}}
	for _, c := range []struct {
		name   string
		routes []Route
	}{
		{"one route has all guaranteed", []Route{guaranteed("kept", 30, 100), flood}},
		{"two have", []Route{guaranteed("kept", 30, 100), guaranteed("slow", 20, 100), flood}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, []string{"x"}, c.routes...)
			seen := carrying(20, 30, 60)
			seen.visited = 14
			b.learnNow("x", seen)
			carries, unseen := b.backends[0].groups[0].models[0].carriesMost(30)
			if got := len(b.fill("flood", 100)); !unseen || got < carries/2-1 {
				t.Errorf("%d were let in of %d, want about half", got, carries)
			}
		})
	}
}

// However many routes share the half, it is no more than that: four of them kept all four
// places of an engine that nobody knows.
func TestManyRoutesKeepNoMoreThanHalf(t *testing.T) {
	for routes := 1; routes <= 6; routes++ {
		all := []Route{{Name: "flood", SLO: SLO{MinTPS: 30}}}
		for i := range routes {
			all = append(all, guaranteed(fmt.Sprint("kept", i), 30, 100))
		}
		b := newBench(t, []string{"x"}, all...)
		if c := b.seen(Request{Route: "flood"})[0]; c.Held != slowStartCap/2 {
			t.Errorf("%d routes keep %d places of %d, want half", routes, c.Held, slowStartCap)
		}
	}
}

// Leases of a reload ago go on being counted.
func TestAReloadKeepsWhatIsUsed(t *testing.T) {
	b := newBench(t, []string{"x"}, guaranteed("kept", 30, 6), Route{Name: "flood", SLO: SLO{MinTPS: 30}})
	b.learnNow("x", carrying(20, 30, 60))
	leases := b.fill("kept", 4)
	b.configure()
	if c := b.seen(Request{Route: "flood"})[0]; c.Held != 2 {
		t.Errorf("%d are kept after a reload beside 4 used of 6, want 2", c.Held)
	}
	b.topo.Routes[0].SLO.Guarantee = Guarantee{}
	b.configure()
	if c := b.seen(Request{Route: "flood"})[0]; c.Held != 0 {
		t.Errorf("%d are kept without a guarantee, want 0", c.Held)
	}
	for _, l := range leases {
		l.Done(b.now, 100)
	}
	b.topo.Routes[0].SLO.Guarantee = Guarantee{Places: 6}
	b.configure()
	if c := b.seen(Request{Route: "flood"})[0]; c.Held != 6 {
		t.Errorf("%d are kept, want 6: those of before have ended", c.Held)
	}
}

// A target that goes and comes back has the leases that were there; and those that a
// route has when it gets its guarantee are of that.
func TestLeasesAreCountedWhateverIsReloaded(t *testing.T) {
	b := newBench(t, []string{"x", "y"}, guaranteed("kept", 30, 6, "x"), Route{Name: "flood", SLO: SLO{MinTPS: 30}, Targets: targets("x")})
	b.learnNow("x", carrying(20, 30, 60))
	want := func(held int, what string) {
		t.Helper()
		if c := b.seen(Request{Route: "flood"})[0]; c.Held != held {
			t.Errorf("%s: %d are kept, want %d", what, c.Held, held)
		}
	}
	leases := b.fill("kept", 4)
	all := b.topo.Backends
	for range 2 {
		b.topo.Backends = all[1:]
		b.configure()
	}
	b.topo.Backends = all
	b.configure()
	b.learnNow("x", carrying(20, 30, 60))
	want(2, "4 used of 6, the target was gone for two reloads")
	for _, g := range []Guarantee{{}, {Places: 5}} {
		b.topo.Routes[0].SLO.Guarantee = g
		b.configure()
	}
	want(1, "4 used of 5, given anew")
	leases = append(leases, b.fill("kept", 1)...)
	want(0, "5 used of 5")
	routes := b.topo.Routes
	for range 2 {
		b.topo.Routes = routes[1:]
		b.configure()
	}
	b.topo.Routes = routes
	b.configure()
	want(0, "5 used of 5, the route was gone for two reloads")
	b.topo.Routes = routes[1:]
	b.configure()
	for _, l := range leases {
		l.Done(b.now, 100)
	}
	b.topo.Routes = routes
	b.configure()
	want(5, "all have ended")
	if len(b.gone) != 0 {
		t.Errorf("%d routes are remembered that are there, or have nothing", len(b.gone))
	}
}

// Models that are counted by themselves share the cap of their backend, so half of it
// is kept and half is left.
func TestAGuaranteedShareOfACapThatModelsShare(t *testing.T) {
	both := []RouteTarget{{Target: Target{Backend: "x", Model: "a", Separate: true}}, {Target: Target{Backend: "x", Model: "b", Separate: true}}}
	for _, most := range []int{1, 3, 10} {
		b := newBench(t, []string{"x"}, Route{Name: "kept", SLO: SLO{Guarantee: Guarantee{Share: 0.5}}, Targets: both}, Route{Name: "flood", Targets: both})
		b.topo.Backends[0].MaxConcurrency = most
		b.configure()
		kept := (most + 1) / 2
		if got := b.Routes(b.now)[0].Held; got != kept {
			t.Errorf("%d places are held below a cap of %d, want %d", got, most, kept)
		}
		if got := len(b.fill("flood", 100)); got != most-kept {
			t.Errorf("%d were let in below a cap of %d with %d kept, want %d", got, most, kept, most-kept)
		}
		b.wantFill("kept", kept, "found a place")
	}
}

// In any world, after any flood, what is kept of known engines is found: as many as
// are kept and unused are placed, one after the other.
func TestWhatIsKeptIsFound(t *testing.T) {
	found, worlds := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"x", "y"}[:rapid.IntRange(1, 2).Draw(t, "backends")]
		b := newBench(nil, names, Route{Name: "none"})
		b.topo.Routes = nil
		for i := range rapid.IntRange(1, 2).Draw(t, "guaranteed") {
			b.topo.Routes = append(b.topo.Routes, guaranteed(fmt.Sprint("kept", i), rapid.SampledFrom([]float64{0, 20, 30, 45}).Draw(t, "floor"), rapid.IntRange(1, 8).Draw(t, "places"), names...))
		}
		b.topo.Routes = append(b.topo.Routes,
			Route{Name: "flood", SLO: SLO{MinTPS: rapid.SampledFrom([]float64{0, 15, 30, 50}).Draw(t, "flood")}, Targets: targets(names...)},
			Route{Name: "batch", Class: Batch, BatchShare: 1, Targets: targets(names...)})
		for i := range names {
			if rapid.Bool().Draw(t, "capped") {
				b.topo.Backends[i].MaxConcurrency = rapid.IntRange(1, 20).Draw(t, "cap")
			}
		}
		b.configure()
		for _, name := range names {
			b.learnNow(name, carrying(rapid.IntRange(2, 40).Draw(t, "carries"), 30, 60))
		}
		for _, back := range b.backends { // all that is promised has to fit
			places, floor := 0, 0.0
			g := back.groups[0]
			for _, k := range g.held {
				places, floor = places+k.places, max(floor, k.route.floor())
			}
			_, _, fits := g.models[0].carries(places, 0, floor)
			if !fits || back.maxConcurrency > 0 && places > back.maxConcurrency {
				return
			}
		}
		var leases []*Lease
		for range rapid.IntRange(1, 12).Draw(t, "events") {
			if rapid.IntRange(0, 2).Draw(t, "event") == 0 && len(leases) > 0 {
				i := rapid.IntRange(0, len(leases)-1).Draw(t, "which")
				leases[i].Done(b.now, 100)
				leases = append(leases[:i], leases[i+1:]...)
				continue
			}
			route := rapid.SampledFrom(b.topo.Routes).Draw(t, "route").Name
			leases = append(leases, b.fill(route, rapid.IntRange(1, 60).Draw(t, "users"))...)
			b.sleep(rapid.SampledFrom([]time.Duration{0, scanEvery}).Draw(t, "later"))
		}
		for _, rt := range b.guarantees {
			want := 0
			for _, k := range rt.held {
				want += k.unused()
			}
			if got := len(b.fill(rt.conf.Name, want)); got != want {
				t.Fatalf("%s: %d of %d found the place that is kept: %v", rt.conf.Name, got, want, b.reasons(rt.conf.Name))
			}
			found += want
		}
		worlds++
	})
	if found < worlds/2 {
		t.Errorf("%d places found in %d worlds: no test", found, worlds)
	}
}
