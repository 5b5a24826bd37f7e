package router

import (
	"testing"
	"time"
)

// hangs tells b that a backend hangs, or does no more.
func (b *bench) hangs(backend string, h Health, hung bool) []Grant {
	return b.Update(b.now, BackendHealth{Backend: backend, Health: h, Hung: hung})
}

// A backend that hangs gets nobody who can go elsewhere, but for one now and then, and
// nobody beside one who waits for the other; where all hang it serves as before.
func TestABackendThatHangsGetsAProbeNowAndThen(t *testing.T) {
	for _, prefer := range []Prefer{Headroom, Order, Pack, Cheapest} {
		b := newBench(t, []string{"bad", "good"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}, Prefer: prefer, OnInfeasible: queue(2 * time.Second)})
		b.learn("bad", carrying(40, 30, 90))
		b.learn("good", carrying(5, 30, 60))
		b.hangs("bad", Up, true)
		full := b.fill("chat", 6)
		if len(full) != 5 || b.load(0).M != 0 {
			t.Fatalf("%v: %d were placed, %d of them on the one that hangs, want 5 on the other", prefer, len(full), b.load(0).M)
		}
		if got := b.reasons("chat"); got[0] != ReasonDown {
			t.Errorf("%v: the reason is %v, want down", prefer, got[0])
		}
		if d := b.place("chat", func(r *Request) { r.Again, r.NoQueue = true, true }); d.Lease != nil {
			t.Errorf("%v: who failed over was placed on %v", prefer, d.Lease.Target())
		}
		b.sleep(hungProbe)
		d := b.place("chat")
		if d.Lease == nil || !d.Lease.Probe() || d.Lease.Target().Backend != "bad" {
			t.Errorf("%v: after %v nobody finds out: %+v", prefer, hungProbe, d)
		}
		if d := b.place("chat"); d.Lease != nil {
			t.Errorf("%v: a second one finds out", prefer)
		}
		b.hangs("good", Up, true)
		if d := b.place("chat", noQueue); d.Lease == nil {
			t.Errorf("%v: while both hang nobody is placed: %+v", prefer, d.Refusal)
		}
	}
}

// Who waits in line is let in at once when a backend shows life again, and it needs no
// ramp, also if its breaker opened while it hung; one that was down for another reason
// needs it.
func TestABackendThatHungServesAtOnce(t *testing.T) {
	for _, c := range []struct {
		hung bool
		want int
	}{{true, 40}, {false, slowStartCap}} {
		b := newBench(t, []string{"a"})
		b.learn("a", carrying(40, 30, 90))
		b.hangs("a", Up, c.hung)
		b.hangs("a", Down, c.hung)
		b.hangs("a", Probing, c.hung)
		b.hangs("a", Up, c.hung)
		b.hangs("a", Up, false)
		if got := len(b.fill("chat", 50)); got != c.want {
			t.Errorf("hung %v: %d were let in, want %d", c.hung, got, c.want)
		}
	}
}

// What first tokens took while their backend hung says nothing of what a prompt costs.
func TestFirstTokensAfterAHangTellNoPrice(t *testing.T) {
	for _, hung := range []bool{false, true} {
		b := newBench(t, []string{"a"}, Route{Name: "chat"})
		b.learn("a", carrying(40, 30, 90))
		for range 20 {
			l := b.place("chat", prompt(1000)).Lease
			b.sleep(100 * time.Millisecond)
			l.FirstToken(b.now)
			l.Done(b.now, 10)
			b.sleep(time.Second)
		}
		before := b.backends[0].groups[0].price.first
		l := b.place("chat", prompt(1000)).Lease
		b.sleep(15 * time.Second)
		b.hangs("a", Up, hung)
		b.sleep(35 * time.Second)
		b.hangs("a", Up, false)
		l.FirstToken(b.now)
		b.sleep(10 * time.Second) // a batch is over
		b.place("chat", prompt(1000)).Lease.FirstToken(b.now)
		if after := b.backends[0].groups[0].price.first; (after > 1.05*before) == hung {
			t.Errorf("hung %v: a prompt token cost %.3g s and costs %.3g", hung, before, after)
		}
	}
}
