package router

import (
	"testing"
	"time"
)

// sharing asks with a prompt of 16,200 tokens that b has in its cache but for the last 200;
// so many of them others have sent there just now.
func sharing(shared int) func(*Request) {
	return func(r *Request) {
		r.PromptTokens = 16_200
		r.Warm = []Warmth{{Target: Target{Backend: "b", Model: "m"}, Likely: 16_000, Sure: 16_000, Shared: shared}}
	}
}

// refusing is crowded, with two on a who have just begun: neither can stand still for
// the 1.6 s of that prompt.
func refusing(t *testing.T) (w *bench, onA []*Lease) {
	w, _, first := crowded(t, Headroom, nil)
	second := w.force(Request{Route: "chat", Stream: true}, Target{Backend: "a", Model: "m"}).Lease
	onA = []*Lease{first, second}
	second.FirstToken(w.now)
	return w, onA
}

func TestAnEngineIsClearedForWhatManyShare(t *testing.T) {
	w, onA := refusing(t)
	for range 3 {
		w.wantReasons("chat", "protects lead, own_floor", sharing(16_000))
		w.wantRefusal(w.place("chat", sharing(16_000)), ShedFloor)
	}
	w.wantReasons("chat", "protects clearing, own_floor", prompt(100))
	w.wantReasons("chat", "protects lead, own_floor", sharing(16_000))
	for _, l := range onA {
		l.Done(w.now, 100)
	}
	if d := w.place("chat", sharing(16_000)); d.Lease == nil || d.Lease.Target().Backend != "a" {
		t.Errorf("once a is empty, the prompt that many share does not go there: %+v", d)
	}
	w.wantReasons("chat", "ok, own_floor", prompt(100))
}

// Nobody has to be refused first: those who go elsewhere count, where twice as many run.
func TestAnEngineIsClearedWhileOthersHaveRoom(t *testing.T) {
	for _, c := range []struct {
		name string
		more int // on a, beside two
		want string
	}{
		{"a is nearly empty", 0, "protects clearing, ok"},
		{"as many run on a", 20, "ok, ok"},
	} {
		w, there, first := crowded(t, Headroom, nil)
		onA := []*Lease{first}
		for range 1 + c.more {
			onA = append(onA, w.force(Request{Route: "chat", Stream: true}, Target{Backend: "a", Model: "m"}).Lease)
		}
		for _, l := range there[:20] {
			l.Done(w.now, 100)
		}
		w.run(append(onA, there[20:]...), 40, 100*time.Millisecond)
		for range 12 {
			if d := w.place("chat", sharing(16_000)); d.Lease == nil || d.Lease.Target().Backend != "b" {
				t.Fatalf("%s: %+v, want a place on b", c.name, d)
			}
		}
		w.wantReasons("chat", c.want, prompt(100))
	}
}

// The first who brings it goes to the engine that was cleared, though a warm place came free:
// else it was cleared for nothing.
func TestWhatManyShareGoesToTheClearedEngine(t *testing.T) {
	w, there, first := crowded(t, Headroom, queue(2*time.Second))
	second := w.force(Request{Route: "chat", Stream: true}, Target{Backend: "a", Model: "m"}).Lease
	second.FirstToken(w.now)
	for range 3 {
		w.wantRefusal(w.place("chat", sharing(16_000), noQueue), ShedFloor)
	}
	for _, l := range append(there[:20], first, second) {
		l.Done(w.now, 100)
	}
	w.wantReasons("chat", "ok, ok", sharing(16_000))
	if d := w.place("chat", sharing(16_000)); d.Lease == nil || d.Lease.Target().Backend != "a" {
		t.Errorf("the prompt goes to %+v, want a", d)
	}
	if d := w.place("chat", sharing(16_000)); d.Lease == nil || d.Lease.Target().Backend != "b" {
		t.Errorf("the next one goes to %+v, want b", d)
	}
}

func TestNobodyIsKeptOffForWhatFewShare(t *testing.T) {
	for name, c := range map[string]struct {
		times  int
		shared int
		sure   int
		ends   float64
	}{
		"two were refused":                   {2, 16_000, 16_000, 0},
		"nobody else has sent it":            {20, 0, 16_000, 0},
		"nothing says that it is cached":     {20, 16_000, 0, 0},
		"most of it is of one conversation":  {20, 8_000, 16_000, 0},
		"more end on a than would be let in": {3, 16_000, 16_000, 20},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := refusing(t)
			w.backends[0].groups[0].ends = c.ends
			for range c.times {
				w.wantRefusal(w.place("chat", sharing(c.shared), func(r *Request) { r.Warm[0].Sure = c.sure }), ShedFloor)
			}
			w.wantReasons("chat", "ok, own_floor", prompt(100))
		})
	}
}

// Who is served by best effort where there is no room keeps a floor on an engine that is
// cleared: else it would go there as well, without one.
func TestWhoIsNeverRefusedKeepsItsFloorOnAClearedEngine(t *testing.T) {
	w, _ := refusing(t)
	for range 3 {
		w.wantRefusal(w.place("chat", sharing(16_000)), ShedFloor)
	}
	w.wantReasons("chat", "protects clearing, own_floor", prompt(100))
	for _, steps := range [][]Step{{{Kind: BestEffort}}, {{Kind: Queue, Wait: time.Second}, {Kind: BestEffort}}} {
		w.routes[0].conf.OnInfeasible = steps
		if l := w.place("chat", prompt(100)).Lease; l == nil || l.Target().Backend != "a" || l.Floor() != 30 {
			t.Errorf("%+v: placed as %+v, want on a with its floor of 30", steps, l)
		}
	}
}

// An engine is cleared for some seconds, and not again within the minute.
func TestClearingEnds(t *testing.T) {
	w, onA := refusing(t)
	for _, c := range []struct {
		after time.Duration
		want  string
	}{
		{0, "protects clearing, own_floor"},
		{clearFor - time.Second, "protects clearing, own_floor"},
		{time.Second, "ok, own_floor"},
		{clearAgain - time.Second, "ok, own_floor"},
		{time.Second, "protects clearing, own_floor"},
	} {
		w.sleep(c.after)
		for i, l := range onA { // others, who have just begun
			l.Done(w.now, 100)
			onA[i] = w.force(Request{Route: "chat", Stream: true}, Target{Backend: "a", Model: "m"}).Lease
			onA[i].FirstToken(w.now)
		}
		w.backends[0].groups[0].ends = 0
		for range 3 {
			w.wantRefusal(w.place("chat", sharing(16_000)), ShedFloor)
		}
		w.wantReasons("chat", c.want, prompt(100))
	}
}

// wantReasons compares what speaks against each target, and where that is the floor of
// others, on what it rests.
func (b *bench) wantReasons(route, want string, edit ...func(*Request)) {
	b.tb.Helper()
	req := Request{Route: route, Stream: true}
	for _, e := range edit {
		e(&req)
	}
	got := ""
	for _, c := range b.seen(req) {
		if got != "" {
			got += ", "
		}
		got += c.Reason.String()
		if c.Reason == ReasonProtects {
			got += " " + c.Basis.String()
		}
	}
	if got != want {
		b.tb.Errorf("%q, want %q", got, want)
	}
}

// One engine is cleared at a time, whoever asks: else nobody would have a place anywhere.
// Who has one kept there has it all the same, and all have it once nothing runs there.
func TestAClearingLeavesARoom(t *testing.T) {
	vip := Route{Name: "vip", SLO: SLO{MinTPS: 30, Guarantee: Guarantee{Places: 3}}, Targets: targets("x")}
	b := newBench(t, []string{"x", "y"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}}, vip)
	b.learnNow("x", carrying(20, 30, 60))
	b.learnNow("y", carrying(20, 30, 60))
	onX := b.force(Request{Route: "chat", Stream: true}, Target{Backend: "x", Model: "m"}).Lease
	for range 3 {
		b.backends[0].groups[0].clear(b.now, 1)
		b.backends[1].groups[0].clear(b.now, 1)
	}
	if got := b.reasons("chat"); got[0] != ReasonProtects || got[1] != OK {
		t.Errorf("two engines for whom many share prompts: %v, want one that is cleared", got)
	}
	b.wantReason("vip", OK)
	onX.Done(b.now, 100)
	b.sleep(emptyFor)
	if got := b.reasons("chat"); got[0] != OK {
		t.Errorf("%v, though nothing runs there", got)
	}
}

// One replica has an engine cleared, and the others let nobody in either: each would fill it
// meanwhile. It is over for them when it is over there, and they do not tell it on.
func TestReplicasClearTogether(t *testing.T) {
	w, _ := refusing(t)
	tell := func(left time.Duration) {
		w.Update(w.now, RemoteLoad{Replicas: 2, ByBackend: map[string]Load{
			"a": {Decoding: 1, Clearing: left}, "b": {Decoding: 1},
		}})
	}
	told := func() time.Duration { return w.Own(w.now)["a"].Clearing }
	tell(0)
	w.wantReasons("chat", "ok, own_floor", prompt(100))
	tell(clearFor)
	w.wantReasons("chat", "protects clearing, own_floor", prompt(100))
	if told() != 0 {
		t.Errorf("what another replica clears is told for %v, want 0", told())
	}
	tell(0)
	w.wantReasons("chat", "ok, own_floor", prompt(100))

	w, _ = refusing(t)
	tell(0)
	for range 3 {
		w.wantRefusal(w.place("chat", sharing(16_000)), ShedFloor)
	}
	w.wantReasons("chat", "protects clearing, own_floor", prompt(100))
	if told() != clearFor {
		t.Errorf("it is told to be cleared for %v, want %v", told(), clearFor)
	}
}
