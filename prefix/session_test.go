package prefix

import (
	"testing"
	"time"
)

// Where a session went is known here and told to the others. It is no prompt: nothing of it
// is taken for cached, and it ages nothing.
func TestASessionIsKnownWhereItWent(t *testing.T) {
	here, there := pair()
	name, other := chainOf("session 1"), chainOf("session 2")
	if here.Knows(target, name) {
		t.Error("a session is known before it came")
	}
	p := chainOf(text(1, 8000))
	v := here.Send(start, target, p, 2000)
	v.First(100*time.Millisecond, 0)
	before := here.caches[target].computed
	here.Visited(start, target, name)
	if !here.Knows(target, name) || here.Knows(target, other) {
		t.Errorf("known: %v, another one %v; want the one that came", here.Knows(target, name), here.Knows(target, other))
	}
	if after := here.caches[target].computed; after != before {
		t.Errorf("a session counts as %.0f tokens that were computed", after-before)
	}
	if got := here.Counts(target); got != (Counts{}) {
		t.Errorf("a session counts as a prompt: %+v", got)
	}
	if there.Knows(target, name) {
		t.Error("another replica knows what nobody told")
	}
	exchange(start.Add(100*time.Millisecond), here, there)
	if !there.Knows(target, name) || there.Knows(target, other) {
		t.Errorf("told: %v, another one %v; want the one that came", there.Knows(target, name), there.Knows(target, other))
	}
	here.caches[target].forget(start.Add(time.Second).UnixNano())
	if here.Knows(target, name) {
		t.Error("a session is known on an engine that was started anew")
	}
	long := text(3, 400) // names that begin alike
	here.Visited(start, target, chainOf(long+"1"))
	if !here.Knows(target, chainOf(long+"1")) || here.Knows(target, chainOf(long+"2")) {
		t.Error("of long names that begin alike both are known, or none")
	}
	here.Visited(start, target, chainOf()) // one without a name
	if here.Knows(target, chainOf()) {
		t.Error("who has no name is known")
	}
}
