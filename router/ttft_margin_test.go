package router

import (
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// intime is a bench with one engine for seven, whose first tokens take a tenth of a
// second by prediction, and a route that promises them within two.
func intime(t *testing.T) *bench {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, MaxTTFT: 2 * time.Second}, OnInfeasible: queue(2 * time.Second)})
	c := carrying(7, 30, 60)
	c.first = profiles.TTFT{Base: 0.1, PerToken: 1e-4, Uncached: 1}
	b.learn("x", c)
	return b
}

// answers places one who waited for so long, and lets its first token come so much later.
func (b *bench) answers(waited, took time.Duration) {
	b.tb.Helper()
	d := b.place("chat", func(r *Request) { r.Arrived = b.now.Add(-waited) })
	if d.Lease == nil {
		b.tb.Fatalf("waited %v: got %+v, want a place", waited, d)
	}
	b.sleep(took)
	d.Lease.FirstToken(b.now)
	d.Lease.Done(b.now, 10)
}

func TestFirstTokensThatAreLateAreAllowedFor(t *testing.T) {
	b := intime(t)
	allowed := func(want time.Duration) {
		t.Helper()
		if got := b.routeOf["chat"].margin.time; (got - want).Abs() > time.Millisecond {
			t.Errorf("allowed for %v, want %v", got, want)
		}
	}
	waited := func(d time.Duration) func(*Request) {
		return func(r *Request) { r.Arrived, r.PromptTokens = b.now.Add(-d), 1 }
	}
	b.answers(0, 1900*time.Millisecond) // far later than predicted, but in time
	b.wantReason("chat", OK, waited(1890*time.Millisecond))
	allowed(0)
	b.answers(1850*time.Millisecond, 160*time.Millisecond)
	allowed(100 * time.Millisecond)
	b.wantReason("chat", ReasonTTFT, waited(1890*time.Millisecond))
	b.wantReason("chat", OK, waited(1790*time.Millisecond))
	var together []*Lease
	for range 3 {
		together = append(together, b.place("chat", waited(1750*time.Millisecond)).Lease)
	}
	b.sleep(time.Second)
	for _, l := range together {
		l.FirstToken(b.now)
		l.Done(b.now, 10)
	}
	allowed(200 * time.Millisecond) // they came before anybody knew: one rise for them all
	for range 1024 {
		b.answers(0, 50*time.Millisecond)
	}
	allowed(100 * time.Millisecond)
}

// Who comes to an idle engine can do no better by waiting.
func TestAnIdleEngineIsNoLateOne(t *testing.T) {
	b := intime(t)
	for range 100 {
		b.sleep(time.Second)
		b.answers(900*time.Millisecond, 5*time.Second)
	}
	if got, want := b.routeOf["chat"].margin.time, time.Second; got != want {
		t.Errorf("allowed for %v, want no more than half of what was promised", got)
	}
	long := func(waited time.Duration) func(*Request) {
		return func(r *Request) { r.Arrived, r.PromptTokens = b.now.Add(-waited), 18_000 } // 1.9 s
	}
	b.wantReason("chat", OK, long(0))
	b.wantReason("chat", OK, long(10*time.Millisecond))
	b.wantReason("chat", ReasonTTFT, long(60*time.Millisecond))
}

// Who has waited for long has little time left for a first token. Those behind have more.
func TestWhoseFirstTokenWouldBeLateHoldsUpNobody(t *testing.T) {
	b := intime(t)
	running := b.fill("chat", 10)
	for _, l := range running {
		l.FirstToken(b.now)
	}
	old := b.stand("chat", waiter("old"))
	b.sleep(1600 * time.Millisecond)
	b.routeOf["chat"].margin.time = 500 * time.Millisecond
	b.stand("chat", waiter("new"))
	b.wantGrants(running[0].Done(b.now, 10), "new")
	b.sleep(old.Deadline().Sub(b.now))
	b.wantRefusal(old.Expire(b.now), ShedTimeout)
}

// Who allows more than the route is in time whatever happens. It says nothing of the time
// that the others need.
func TestWhoAllowsMoreTakesNoTimeOffTheOthers(t *testing.T) {
	for name, c := range map[string]struct{ route, asked, want time.Duration }{
		"more":    {2 * time.Second, 24 * time.Hour, 500 * time.Millisecond},
		"less":    {2 * time.Second, time.Second, 500*time.Millisecond - time.Second/20/1024*10},
		"no more": {2 * time.Second, 2 * time.Second, 500*time.Millisecond - 2*time.Second/20/1024*10},
		"none":    {0, 24 * time.Hour, 500 * time.Millisecond},
	} {
		b := intime(t)
		b.topo.Routes[0].SLO.MaxTTFT = c.route
		b.configure()
		margin := &b.routeOf["chat"].margin
		margin.time = 500 * time.Millisecond
		for range 10 {
			d := b.place("chat", func(r *Request) { r.MaxTTFT = &c.asked })
			b.sleep(50 * time.Millisecond)
			d.Lease.FirstToken(b.now)
			d.Lease.Done(b.now, 10)
		}
		if got := margin.time; (got - c.want).Abs() > time.Microsecond {
			t.Errorf("%s: allowed for %v, want %v", name, got, c.want)
		}
	}
}

// A route that promises less than before allows for no more than half of that.
func TestAShorterPromiseHasAShorterMargin(t *testing.T) {
	b := intime(t)
	b.topo.Routes[0].SLO.MaxTTFT = 10 * time.Second
	b.configure()
	old := b.place("chat")
	margin := &b.routeOf["chat"].margin
	margin.time = 4 * time.Second
	b.topo.Routes[0].SLO.MaxTTFT = time.Second
	b.configure()
	b.answers(0, 50*time.Millisecond)
	if got, want := margin.time, 500*time.Millisecond; got > want {
		t.Errorf("allowed for %v, want %v at most", got, want)
	}
	b.sleep(11 * time.Second)
	old.Lease.FirstToken(b.now)
	if got, want := margin.time, 500*time.Millisecond; got > want {
		t.Errorf("after one of before that was late: allowed for %v, want %v at most", got, want)
	}
}

// Clients that hang up as soon as a first token is late say as much as those that wait.
func TestWhoHangsUpLateSaysSo(t *testing.T) {
	for name, c := range map[string]struct{ after, want time.Duration }{
		"late":    {2100 * time.Millisecond, 100 * time.Millisecond},
		"in time": {1900 * time.Millisecond, 0},
	} {
		b := intime(t)
		d := b.place("chat")
		b.sleep(c.after)
		d.Lease.Done(b.now, 0)
		if got := b.routeOf["chat"].margin.time; got != c.want {
			t.Errorf("%s: allowed for %v, want %v", name, got, c.want)
		}
	}
}

// An engine whose first tokens are too late for everybody is no reason to pass who waits
// for another.
func TestWhoIsLateElsewhereIsNotPassed(t *testing.T) {
	for _, engines := range [][]string{{"x"}, {"x", "far"}} {
		b := newBench(t, engines, Route{Name: "chat", SLO: SLO{MinTPS: 30, MaxTTFT: 2 * time.Second}, OnInfeasible: queue(2 * time.Second)})
		for _, name := range engines {
			c := carrying(7, 30, 60)
			c.d, c.first = 1e-4, profiles.TTFT{Base: 0.1, PerToken: 1e-4, Uncached: 1}
			if name == "far" {
				c.first.Base = 5
			}
			b.learn(name, c)
		}
		var running []*Lease
		for range 6 {
			l := b.place("chat", prompt(1)).Lease
			if l == nil || l.Target().Backend != "x" {
				t.Fatalf("%v: %+v, want a place on x", engines, l)
			}
			l.FirstToken(b.now)
			running = append(running, l)
		}
		b.stand("chat", waiter("long"), prompt(15_000))
		b.stand("chat", waiter("short"), prompt(1))
		b.wantGrants(running[0].Done(b.now, 10))
	}
}
