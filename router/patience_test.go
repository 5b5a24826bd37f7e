package router

import (
	"testing"
	"time"
)

// crowded has b full, with the prompts of all who come in its cache, and a nearly idle.
// Those on a keep it from being fresh.
func crowded(t *testing.T, prefer Prefer, steps []Step) (w *bench, there []*Lease, onA *Lease) {
	w = newBench(t, []string{"a", "b"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}, Prefer: prefer, OnInfeasible: steps})
	for _, name := range []string{"a", "b"} {
		f := carrying(40, 30, 60)
		f.d, f.answer = 1e-4, 250
		w.learn(name, f)
	}
	for range 40 {
		there = append(there, w.force(Request{Route: "chat", Stream: true}, Target{Backend: "b", Model: "m"}).Lease)
	}
	onA = w.force(Request{Route: "chat", Stream: true}, Target{Backend: "a", Model: "m"}).Lease
	w.run(append([]*Lease{onA}, there...), 31, 3*time.Second)
	return w, there, onA
}

func TestAWarmPlaceIsWorthAWait(t *testing.T) {
	w, there, onA := crowded(t, Headroom, queue(2*time.Second))
	long, onB := prompt(8000), warm(7900, "b") // 0.8 s elsewhere; some five of b end in a second

	first := w.stand("chat", long, onB, waiter("first"))
	second := w.stand("chat", long, onB, waiter("second"))
	d := w.place("chat", long)
	if d.Lease == nil || d.Lease.Target().Backend != "a" {
		t.Fatalf("one whose prompt is nowhere was held up: %+v", d)
	}
	d.Lease.Done(w.now, 100)
	if g := w.backends[1].groups[0]; g.awaited != 2 || w.routes[0].ahead(Interactive) > 0 {
		t.Errorf("%d wait for b, and %d go before newcomers; want 2, and none", g.awaited, w.routes[0].ahead(Interactive))
	}
	if g := w.backends[0].groups[0]; g.keptOut(w.now) {
		t.Error("batch is kept off a by who waits for b")
	}
	var grants []Grant
	for len(grants) == 0 && len(there) > 30 { // the margin counts too
		grants, there = there[0].Done(w.now, 100), there[1:]
	}
	w.wantGrants(grants, "first")
	if len(grants) == 1 && grants[0].Decision.Lease.Target().Backend != "b" {
		t.Errorf("who waited for b went to %v", grants[0].Decision.Lease.Target())
	}
	if d := first.Expire(w.now); d.Lease == nil {
		t.Error("the grant was lost")
	}

	// Nothing more comes free: it goes where there is room, and is not refused.
	w.run(append([]*Lease{onA}, there...), 31, 2*time.Second)
	onA.Done(w.now, 100) // so slow beside nobody, it would keep everybody out
	if d := second.Expire(w.now); d.Lease == nil || d.Lease.Target().Backend != "a" {
		t.Errorf("at the end of its wait: %+v, want a place on a", d)
	}
	if g := w.backends[1].groups[0]; g.awaited != 0 || w.routes[0].lines[Interactive].patient != 0 {
		t.Errorf("%d still wait for b", g.awaited)
	}
}

func TestAWarmPlaceIsNotWorthAWait(t *testing.T) {
	line := queue(2 * time.Second)
	for _, c := range []struct {
		name   string
		prefer Prefer
		steps  []Step
		edit   []func(*Request)
	}{
		{"what is left takes less than a place does", Headroom, line, []func(*Request){prompt(1000), warm(900, "b")}},
		{"nobody is sure of the cache", Headroom, line, []func(*Request){prompt(8000), warm(7900, "b"), func(r *Request) { r.Warm[0].Sure = 0 }}},
		{"a has it too", Headroom, line, []func(*Request){prompt(8000), warm(7900, "a", "b")}},
		{"the route has no line", Headroom, []Step{{Kind: Shed}}, []func(*Request){prompt(8000), warm(7900, "b")}},
		{"the order was asked for", Order, line, []func(*Request){prompt(8000), warm(7900, "b")}},
		{"it may not wait", Headroom, line, []func(*Request){prompt(8000), warm(7900, "b"), noQueue}},
	} {
		w, _, _ := crowded(t, c.prefer, c.steps)
		if d := w.place("chat", c.edit...); d.Lease == nil || d.Lease.Target().Backend != "a" {
			t.Errorf("%s: %+v, want a place on a", c.name, d)
		}
	}

	// A first token that was promised in 0.875 s leaves 50 ms for a wait, which counts for 75.
	w, _, _ := crowded(t, Headroom, line)
	if got := w.stand("chat", prompt(8000), warm(7900, "b"), ttft(875*time.Millisecond)).Deadline().Sub(w.now); (got - 50*time.Millisecond).Abs() > time.Microsecond {
		t.Errorf("waits for %v, want 50 ms", got)
	}

	// Each of those who wait makes the wait of the next longer: in the end they go
	// where they warm another cache.
	w, _, _ = crowded(t, Headroom, line)
	waiting := 0
	for ; waiting < 40; waiting++ {
		if d := w.place("chat", prompt(8000), warm(7900, "b")); d.Lease != nil {
			break
		}
	}
	if waiting < 2 || waiting > 6 {
		t.Errorf("%d wait for a place that saves 0.8 s, where five come free in a second", waiting)
	}
}

// Who stands in line takes a place where it has no more to prefill than others there: left to
// the next, it would cost the engine as much. Where it has more it waits for the full target
// that has its prompt.
func TestWhoStandsInLineTakesAPlaceThatSuitsIt(t *testing.T) {
	for _, c := range []struct {
		name    string
		cached  int // on a, of 8000
		granted bool
	}{
		{"others bring as much", 7000, true},
		{"others bring less", 3000, false},
	} {
		w, there, onA := crowded(t, Headroom, queue(2*time.Second))
		all := append([]*Lease{onA}, there...)
		for range 40 {
			all = append(all, w.force(Request{Route: "chat", Stream: true, PromptTokens: 1500}, Target{Backend: "a", Model: "m"}).Lease)
		}
		w.run(all, 31, 5*time.Second)
		w.stand("chat", prompt(8000), waiter("waits"), func(r *Request) {
			for name, cached := range map[string]int{"a": c.cached, "b": 7990} {
				r.Warm = append(r.Warm, Warmth{Target: Target{Backend: name, Model: "m"}, Likely: cached, Sure: cached})
			}
		})
		var grants []Grant
		for _, l := range all[41:61] { // half of a's
			grants = append(grants, l.Done(w.now, 100)...)
		}
		if c.granted {
			w.wantGrants(grants, "waits")
		} else {
			w.wantGrants(grants)
		}
	}
}

// caches says what is cached, as of when it is asked.
type caches struct {
	warm  []Warmth
	asked int
}

func (c *caches) Warm(_ time.Time, into []Warmth) []Warmth {
	c.asked++
	return append(into, c.warm...)
}

// Who waits in line asks again what the caches have: what was prefilled meanwhile lets it
// go.
func TestWhoWaitsAsksTheCachesAgain(t *testing.T) {
	w, _, onA := crowded(t, Headroom, queue(2*time.Second))
	w.run([]*Lease{onA}, 45, 2*time.Second) // a lead of some two seconds
	w.health("b", Down)
	c := &caches{}
	ticket := w.stand("chat", prompt(40_000), waiter("long"), func(r *Request) { r.Caches = c })
	w.wantGrants(w.run([]*Lease{onA}, 45, 150*time.Millisecond))
	if c.asked != 1 {
		t.Errorf("the caches were asked %d times in 150 ms, want once", c.asked)
	}
	c.warm = []Warmth{{Target: Target{Backend: "a", Model: "m"}, Likely: 39_900, Sure: 39_900}}
	w.wantGrants(w.run([]*Lease{onA}, 45, 150*time.Millisecond), "long")
	if d := ticket.Expire(w.now); d.Lease == nil || d.Chosen.Warm.Tokens != 39_900 {
		t.Errorf("%+v, want a place on a, warm", d)
	}
}

// What is being prefilled counts for who can wait no longer: it goes behind that prompt. It
// does not where nothing is prefilled any more.
func TestWhoCanWaitNoLongerGoesBehindThePromptThatItNeeds(t *testing.T) {
	for _, c := range []struct {
		name           string
		soon           int
		ended, granted bool
	}{
		{"it is prefilled", 99_800, false, true},
		{"another one is", 0, false, false},
		{"its client has gone", 99_800, true, false},
	} {
		w, _, onA := crowded(t, Headroom, queue(2*time.Second))
		w.run([]*Lease{onA}, 45, 14*time.Second) // a lead of some eight seconds
		w.health("b", Down)
		brings := w.force(Request{Route: "chat", Stream: true, PromptTokens: 12_000}, Target{Backend: "a", Model: "m"}).Lease
		ticket := w.stand("chat", prompt(100_000), func(r *Request) {
			r.Warm = []Warmth{{Target: Target{Backend: "a", Model: "m"}, Soon: c.soon}}
		})
		if c.ended {
			brings.Done(w.now, 0)
		}
		w.run([]*Lease{onA}, 45, 2*time.Second)
		if d := ticket.Expire(w.now); (d.Lease != nil) != c.granted {
			t.Errorf("%s: %+v, want a place: %v", c.name, d, c.granted)
		}
	}
}

// Who has a place elsewhere waits for the prompt that brings the most of its own, and not
// for an engine that hangs, nor where nobody's prompt is prefilled.
func TestNobodyWaitsBehindAnEngineThatHangs(t *testing.T) {
	for _, c := range []struct {
		name  string
		since time.Duration // that the prompt is prefilled, of 8,000 tokens
		ended bool
		waits bool
	}{
		{"just sent", 100 * time.Millisecond, false, true},
		{"a little late", time.Second, false, true},
		{"overdue", 3 * time.Second, false, false},
		{"hangs", 20 * time.Second, false, false},
		{"its client has gone", 100 * time.Millisecond, true, false},
	} {
		w := newBench(t, []string{"a", "b"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}, OnInfeasible: queue(2 * time.Second)})
		for _, name := range []string{"a", "b"} {
			f := carrying(40, 30, 60)
			f.d, f.answer = 1e-4, 250
			w.learn(name, f)
		}
		var running []*Lease
		for _, name := range []string{"a", "b"} {
			running = append(running, w.force(Request{Route: "chat", Stream: true}, Target{Backend: name, Model: "m"}).Lease)
		}
		w.run(running, 58, 10*time.Second) // leads that bear a prompt
		brings := w.force(Request{Route: "chat", Stream: true, PromptTokens: 8_000}, Target{Backend: "a", Model: "m"}).Lease
		if c.ended {
			brings.Done(w.now, 0)
		}
		w.run(running, 58, c.since)
		d := w.place("chat", prompt(8_000), func(r *Request) {
			r.Warm = []Warmth{{Target: Target{Backend: "a", Model: "m"}, Soon: 7_900}}
		})
		if waits := d.Ticket != nil; waits != c.waits {
			t.Errorf("%s: %+v, want it to wait: %v", c.name, d, c.waits)
		}
		if d.Ticket != nil {
			d.Ticket.Cancel(w.now)
		}
	}
}

// Whoever comes while its prompt is prefilled spreads it to engines that are idle, and leaves
// as many of them as prefill it: a second prompt finds one without streams. Who needs that
// one goes there all the same, once it can wait no longer.
func TestAPromptThatSpreadsLeavesIdleEnginesToOthers(t *testing.T) {
	for _, c := range []struct {
		engines []string
		takes   int // of those who come at once
	}{
		{[]string{"a", "b"}, 1},
		{[]string{"a", "b", "c"}, 2},
		{[]string{"a", "b", "c", "d"}, 2},
		{[]string{"a", "b", "c", "d", "e", "f"}, 3},
	} {
		w := newBench(t, c.engines, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}, OnInfeasible: queue(2 * time.Second)})
		var there []Warmth
		soon := func(r *Request) { r.Warm = append(r.Warm, there...) }
		var ticket *Ticket
		for ticket == nil && len(there) <= len(c.engines) {
			w.sleep(100 * time.Millisecond)
			d := w.place("chat", prompt(16_100), soon)
			if ticket = d.Ticket; d.Lease != nil {
				there = append(there, Warmth{Target: d.Lease.Target(), Soon: 16_000})
			}
		}
		if len(there) != c.takes || ticket == nil {
			t.Errorf("%d of %d idle engines prefill the prompt, want %d", len(there), len(c.engines), c.takes)
			continue
		}
		if d := w.place("chat", prompt(16_000)); d.Lease == nil || d.Chosen.M != 0 {
			t.Errorf("of %d engines none is left for another prompt: %+v", len(c.engines), d)
		}
		w.sleep(2 * time.Second)
		if d := ticket.Expire(w.now); d.Lease == nil {
			t.Errorf("who left an idle engine to others was refused: %+v", d.Refusal)
		}
	}
}
