package router

import "testing"

// What other models on an engine show of a model that was never asked lets
// requests in, and keeps none out: where they are too slow for its floor, slow
// start finds out what it gives, however busy the others are.
func TestAGuessKeepsNobodyOut(t *testing.T) {
	b := newBench(t, []string{"x"},
		Route{Name: "slow", OnInfeasible: queue(0)},
		Route{Name: "new", SLO: SLO{MinTPS: 70}, Targets: []RouteTarget{{Target: Target{Backend: "x", Model: "new"}}}},
	)
	slow := form{a: 0.05, b: 0.001, visited: 8}
	b.learn("x", slow)
	slow.others, slow.visited = true, 8
	b.learnTarget(Target{Backend: "x", Model: "new"}, slow)

	if s := b.Routes(b.now)[1]; s.Free != slowStartCap || !s.FreeLowerBound {
		t.Errorf("%d free on the new model (lower bound %v), want the %d of slow start", s.Free, s.FreeLowerBound, slowStartCap)
	}
	b.fill("slow", 2)
	b.wantCap(slowStartCap, "")
	leases := b.fill("new", 20, noQueue)
	if len(leases) != slowStartCap-2 {
		t.Fatalf("%d streams of the new model beside 2 others, want %d", len(leases), slowStartCap-2)
	}
	d := b.place("new", noQueue)
	b.wantRefusal(d, ShedFloor)
	if d.Refusal.RetryAfter <= 0 {
		t.Error("it is not told when to come back")
	}
	b.wantReason("new", ReasonSlowStart)
	for _, l := range leases {
		l.Done(b.now, 100)
	}

	// Its own evidence says so too: that is no guess any more.
	b.learnTarget(Target{Backend: "x", Model: "new"}, form{a: 0.05, b: 0.001, visited: 8})
	b.wantRefusal(b.place("new", noQueue), ShedUnattainable)

	// Where the others are fast enough, it is let in as they are.
	b.learnTarget(Target{Backend: "x", Model: "new"}, form{a: 0.005, b: 0.0001, visited: 40, others: true})
	if n := len(b.fill("new", 30, noQueue)); n != 30 {
		t.Errorf("%d streams of a model that is guessed to be fast, want 30", n)
	}
}

// One who comes to an idle engine is let in, however many sequences it starts.
func TestAGuessLetsOneOntoAnIdleEngine(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 70}})
	b.learn("x", form{a: 0.05, b: 0.001, visited: 8, others: true})
	if d := b.place("chat", sequences(slowStartCap+2)); d.Lease == nil || d.Lease.Floor() != 70 {
		t.Errorf("got %+v, want a place with the floor", d)
	}
}
