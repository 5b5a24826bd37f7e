package router

import "testing"

// Another engine behind a name is another incarnation: what runs on the old
// one counts there until it ends, and never on the new one.
func TestAnotherEngineIsAnotherIncarnation(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.topo.Backends[0].Engine = "http://old"
	b.configure()
	old := b.Place(b.now, Request{Route: "chat"}).Lease
	if old == nil || old.Engine() != "http://old" {
		t.Fatalf("got %v, want a lease on the old engine", old)
	}
	b.configure()
	if m := b.Loads()[0].M; m != 1 {
		t.Fatalf("m = %d after a reload that changes nothing, want 1", m)
	}
	b.topo.Backends[0].Engine = "http://new"
	b.configure()
	if m := b.Loads()[0].M; m != 0 {
		t.Errorf("m = %d on the new engine, want 0", m)
	}
	if got := old.Engine(); got != "http://old" {
		t.Errorf("the running lease is on %s", got)
	}
	young := b.Place(b.now, Request{Route: "chat"}).Lease
	old.Done(b.now, 10)
	if m := b.Loads()[0].M; m != 1 || young.Engine() != "http://new" {
		t.Errorf("m = %d, %s; want the one lease on the new engine", m, young.Engine())
	}
	young.Done(b.now, 10)
	if m := b.Loads()[0].M; m != 0 {
		t.Errorf("m = %d at the end", m)
	}
}

// An engine that is left out of the topology for a while, as by a resolver, and
// comes back still runs what it ran: it is not filled a second time. When all
// of it has ended, nothing is kept of it.
func TestWhoComesBackStillHasItsStreams(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.learn("x", carrying(10, 30, 60))
	leases := b.fill("chat", 20)
	if len(leases) != 10 {
		t.Fatalf("%d fit, want 10", len(leases))
	}
	backends := b.topo.Backends
	remove := func() {
		b.topo.Backends = nil
		b.configure()
		b.topo.Backends = backends
	}
	remove()
	leases[0].Done(b.now, 10) // while it is gone
	b.configure()
	b.learn("x", carrying(10, 30, 60))
	b.wantM(9, "after it came back")
	if more := b.fill("chat", 20); len(more) != 1 {
		t.Errorf("%d more fit, want 1", len(more))
	} else {
		more[0].Done(b.now, 10)
	}
	remove()
	for _, l := range leases {
		l.Done(b.now, 10)
	}
	b.configure()
	if got := b.load(0); got.M != 0 || len(b.left) != 0 {
		t.Errorf("m = %d and %d incarnations left, want none", got.M, len(b.left))
	}
}
