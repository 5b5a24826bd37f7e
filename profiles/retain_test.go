package profiles

import (
	"slices"
	"testing"
	"time"
)

// What a configuration no longer names is forgotten; what it keeps keeps its
// evidence, and a stream that still runs on the forgotten one harms nobody.
func TestRetain(t *testing.T) {
	b := NewBook(Options{})
	stay, go1, go2 := Target{Backend: "a", Model: "m"}, Target{Backend: "a", Model: "old"}, Target{Backend: "b", Model: "m"}
	b.Ensure(stay, go1, go2)
	b.Prior(stay, []PriorPoint{{N: 1, TPS: 50}, {N: 8, TPS: 30}}, 0)
	now := time.Unix(1_700_000_000, 0)
	occ := NewOccupancy(now)
	running := b.Open(go2, Open{Sent: now, Occupancy: occ})

	fresh := Target{Backend: "c", Model: "m"}
	b.Retain(stay, fresh)
	if got := b.Targets(); !slices.Equal(got, []Target{stay, fresh}) {
		t.Fatalf("targets %v, want those that were kept", got)
	}
	if !b.Curve(stay).Known() {
		t.Error("the kept target lost its prior")
	}
	for i := range 20 {
		running.Read(now.Add(time.Duration(i)*time.Second), 1)
	}
	running.Close(now.Add(20*time.Second), true)
	if deltas := b.Fold(now.Add(30 * time.Second)); len(deltas) != 0 {
		t.Errorf("%d deltas of what is forgotten", len(deltas))
	}
	b.Restarted("b") // unknown: nothing happens
	b.Ensure(go2)
	if b.Curve(go2).Known() {
		t.Error("a target that is added again knows more than a new one")
	}
}

// A backend whose models change with every reload is as large as its models are
// many, and what is forgotten has no say in its margin.
func TestRetainLeavesNothingInTheBackend(t *testing.T) {
	b := NewBook(Options{})
	one, two := Target{Backend: "a", Model: "one"}, Target{Backend: "a", Model: "two"}
	for range 100 {
		b.Retain(one)
		b.Retain(two)
	}
	g := b.groups[one.GroupID()]
	if n := len(g.profiles); n != 2 {
		t.Errorf("%d profiles for 2 models", n)
	}
	forgotten := b.profile(one)
	b.Retain(two)
	for i, p := range g.profiles {
		if p == forgotten || p.index != i {
			t.Errorf("place %d holds %v with index %d", i, p.target, p.index)
		}
	}
	if p := b.profile(one); p == forgotten || p != g.profiles[p.index] {
		t.Error("a target that is added again has what was forgotten, or no place")
	}
}
