package router

import (
	"testing"
	"time"
)

// warm has the caches of backends have so much of the prompt, as certain as can be.
func warm(tokens int, backends ...string) func(*Request) {
	return func(r *Request) {
		for _, name := range backends {
			r.Warm = append(r.Warm, Warmth{Target: Target{Backend: name, Model: "m"}, Likely: tokens, Sure: tokens})
		}
	}
}

// twins are two engines of 40 users each at the floor, and 0.1 ms a prompt token.
func twins(t *testing.T, prefer Prefer) *bench {
	w := newBench(t, []string{"a", "b"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}, Prefer: prefer})
	for _, name := range []string{"a", "b"} {
		f := carrying(40, 30, 60)
		f.d = 1e-4
		w.learn(name, f)
	}
	return w
}

func TestAPromptGoesWhereItIsCached(t *testing.T) {
	for _, c := range []struct {
		prefer Prefer
		there  int // streams on b, none on a
		prompt int
		warm   func(*Request)
		want   string
	}{
		{Headroom, 2, 8000, warm(7900, "b"), "b"},
		{Headroom, 5, 8000, warm(7900, "a", "b"), "a"}, // nothing to win: as the policy says
		{Headroom, 5, 8000, warm(100, "b"), "a"},       // less than a step
		{Headroom, 39, 8000, warm(7900, "b"), "a"},     // it costs those there more than it saves
		{Headroom, 5, 8000, func(*Request) {}, "a"},
		{Order, 5, 8000, warm(7900, "b"), "a"}, // the order was asked for
	} {
		for range 20 {
			w := twins(t, c.prefer)
			var there []*Lease
			for range c.there {
				there = append(there, w.force(Request{Route: "chat", Stream: true}, Target{Backend: "b", Model: "m"}).Lease)
			}
			w.run(there, 55, 3*time.Second)
			if d := w.place("chat", prompt(c.prompt), c.warm); d.Lease == nil || d.Lease.Target().Backend != c.want {
				t.Fatalf("%s, %d streams on b: went to %+v, want %s", c.prefer, c.there, d.Chosen.Target, c.want)
			}
		}
	}
}

// Without affinity nobody goes where a prompt is cached, nor waits for a place there, and no
// engine is cleared for it. What is there is not prefilled all the same. So it is by sessions
// where the session never was.
func TestWithoutAffinityAPromptIsStillCached(t *testing.T) {
	t.Run("off", func(t *testing.T) {
		wantStillCached(t, func(w *bench) *bench {
			w.topo.Routes[0].NoAffinity = true
			w.configure()
			return w
		}, func(*Request) {})
	})
	t.Run("another session", func(t *testing.T) {
		wantStillCached(t, func(w *bench) *bench { return w }, func(r *Request) {
			for i := range r.Warm {
				r.Warm[i].Aside = true
			}
		})
	})
}

func wantStillCached(t *testing.T, cold func(*bench) *bench, aside func(*Request)) {
	w := cold(twins(t, Headroom))
	var there []*Lease
	for range 10 {
		there = append(there, w.force(Request{Route: "chat", Stream: true}, Target{Backend: "b", Model: "m"}).Lease)
	}
	w.run(there, 50, 300*time.Millisecond) // hardly a lead beyond their grace
	if d := w.place("chat", prompt(20_000), warm(15_000, "b"), aside); d.Lease == nil || d.Lease.Target().Backend != "a" {
		t.Errorf("it goes to %+v, want a: nobody runs there", d.Chosen.Target)
	}
	on := func(r *Request) { r.Exclude = []string{"a"} }
	w.wantRefusal(w.place("chat", prompt(20_000), on, noQueue), ShedFloor)
	if d := w.place("chat", prompt(20_000), warm(15_000, "b"), aside, on, noQueue); d.Lease == nil {
		t.Error("a prompt of which 5,000 tokens are left was not let in where they are")
	} else if got := w.load(1).PromptTokens; got != 5000 {
		t.Errorf("%d prompt tokens wait on b, want 5,000", got)
	}

	w, _, _ = crowded(t, Headroom, queue(2*time.Second))
	if d := cold(w).place("chat", prompt(8000), warm(7900, "b"), aside); d.Lease == nil || d.Lease.Target().Backend != "a" {
		t.Errorf("who would wait for b with affinity got %+v, want a place on a", d)
	}

	w, _ = refusing(t)
	cold(w)
	for range 5 {
		w.wantRefusal(w.place("chat", sharing(16_000), aside), ShedFloor)
	}
	w.wantReasons("chat", "ok, own_floor", prompt(100))
}

// The floors say who may be let in, whatever is cached where; and what is cached
// need not be paid for by those who stream.
func TestACachedPromptCostsThoseWhoStreamLess(t *testing.T) {
	w := twins(t, Headroom)
	var there []*Lease
	for _, name := range []string{"a", "b"} {
		for range 10 {
			there = append(there, w.force(Request{Route: "chat", Stream: true}, Target{Backend: name, Model: "m"}).Lease)
		}
	}
	w.run(there, 40, 300*time.Millisecond) // hardly a lead beyond their grace
	long := prompt(20_000)
	if d := w.place("chat", long, noQueue); d.Lease != nil {
		t.Fatal("a prompt of 2.4 s was let in beside streams with a lead of one")
	}
	w.wantRefusal(w.place("chat", long, warm(15_000, "b"), func(r *Request) { r.Warm[0].Sure = 0 }, noQueue), ShedFloor)
	d := w.place("chat", long, warm(15_000, "b"), noQueue)
	if d.Lease == nil || d.Lease.Target().Backend != "b" {
		t.Fatalf("a prompt of which 5,000 tokens are left was not let in where they are: %+v", d)
	}
	if got := d.Chosen.Warm; got.Tokens != 15_000 || got.Prompt != 20_000 || got.Saves != 1500*time.Millisecond {
		t.Errorf("said to be warm: %+v, want 15,000 of 20,000 tokens and 1.5 s", got)
	}
	if got := w.load(1).PromptTokens; got != 5000 {
		t.Errorf("%d prompt tokens wait on b, want the 5,000 that have to be computed", got)
	}
	d.Lease.Done(w.now, 0)
	if got := w.load(1).PromptTokens; got != 0 {
		t.Errorf("%d prompt tokens wait on b at the end", got)
	}
}
