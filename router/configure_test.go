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
