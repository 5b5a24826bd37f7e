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

// A prediction is a mean: who has waited is let in with time to spare.
func TestWhoWaitsHasTimeToSpare(t *testing.T) {
	b := intime(t)
	waited := func(d time.Duration, tokens int) func(*Request) {
		return func(r *Request) { r.Arrived, r.PromptTokens = b.now.Add(-d), tokens }
	}
	b.wantReason("chat", OK, waited(1260*time.Millisecond, 1))
	b.wantReason("chat", ReasonTTFT, waited(1270*time.Millisecond, 1))
	// Who comes to an idle engine can do no better by waiting.
	const long = 18_000 // 1.9 s
	b.wantReason("chat", OK, waited(0, long))
	b.wantReason("chat", OK, waited(60*time.Millisecond, long))
	b.wantReason("chat", ReasonTTFT, waited(70*time.Millisecond, long))
	for _, l := range b.fill("chat", 10) {
		l.FirstToken(b.now)
	}
	ticket := b.stand("chat", waiter("u"))
	if got, want := ticket.Deadline().Sub(b.now), 1900*time.Millisecond*2/3; (got - want).Abs() > time.Millisecond {
		t.Errorf("may wait %v, want %v", got, want)
	}
}

// Who has waited for long has little time left for a first token. Those behind have more.
func TestWhoseFirstTokenWouldBeLateHoldsUpNobody(t *testing.T) {
	b := intime(t)
	running := b.fill("chat", 10)
	last := len(running) - 1 // it has no first token yet, and those who come wait as long
	for _, l := range running[:last] {
		l.FirstToken(b.now)
	}
	old := b.stand("chat", waiter("old"))
	b.sleep(1150 * time.Millisecond)
	b.stand("chat", waiter("new"))
	b.wantGrants(running[0].Done(b.now, 10), "new")
	b.sleep(old.Deadline().Sub(b.now))
	b.wantRefusal(old.Expire(b.now), ShedTimeout)
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
