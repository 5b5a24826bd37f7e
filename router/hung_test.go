package router

import (
	"testing"
	"time"
)

// fromHung asks for a place elsewhere for one that has waited at a backend for so long.
func fromHung(at string, waited time.Duration) func(*Request) {
	return func(r *Request) {
		r.Exclude, r.Again, r.Moves = append(r.Exclude, at), true, true
		r.Arrived = r.Arrived.Add(-waited)
	}
}

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

// besideHung has bad hang, and good full with five.
func besideHung(t *testing.T, routes ...Route) (b *bench, full []*Lease) {
	b = newBench(t, []string{"bad", "good"}, routes...)
	b.learn("bad", carrying(5, 30, 60))
	b.learn("good", carrying(5, 30, 60))
	b.hangs("bad", Up, true)
	return b, b.fill(routes[0].Name, 5)
}

// However many move and fit nowhere, who waits behind them is found.
func TestManyWhoMoveHoldUpNobody(t *testing.T) {
	b, full := besideHung(t, Route{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: queue(2 * time.Second)})
	for range 2 * mostLooked {
		b.stand("chat", fromHung("bad", time.Minute), func(r *Request) { r.MinTPS = new(float64(45)) })
	}
	b.stand("chat", waiter("waits"))
	b.wantGrants(full[0].Done(b.now, 100), "waits")
}

// Who waits in vain where it is goes before those in line who came later, of its own class.
func TestWhoMovesGoesByItsArrival(t *testing.T) {
	interactive := Route{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: queue(2 * time.Second), MaxWaiting: 3}
	night := Route{Name: "night", Class: Batch, OnInfeasible: queue(time.Minute)}
	b, full := besideHung(t, interactive, night)
	b.stand("night", waiter("moves by night"), fromHung("bad", time.Minute))
	b.stand("chat", waiter("came"))
	b.stand("chat", waiter("moves"), fromHung("bad", 20*time.Second))
	b.stand("chat", waiter("moves, too"), fromHung("bad", 30*time.Second))
	b.sleep(10 * time.Second) // it does not expire
	b.wantGrants(full[0].Done(b.now, 100), "moves, too")
	b.wantGrants(full[1].Done(b.now, 100), "moves")
	b.wantGrants(full[2].Done(b.now, 100), "came")
}

// Who moves has a place: it takes none of the line, displaces nobody, and is displaced by
// nobody. As many may move as may wait.
func TestWhoMovesTakesNoPlaceOfTheLine(t *testing.T) {
	b, full := besideHung(t, Route{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: queue(time.Minute), MaxWaiting: 3})
	const back = 7
	rt := b.routeOf["chat"]
	rt.promises.make(b.now, promise{at: b.now, since: b.now.Add(-time.Second)}, back)
	for i := range 3 {
		b.stand("chat", waiter("moves"), fromHung("bad", time.Duration(i+1)*time.Minute), tenant("t"))
	}
	for range 3 {
		b.stand("chat", waiter("came"), tenant("t"))
	}
	if d := b.place("chat", fromHung("bad", time.Hour)); d.Refusal == nil || rt.promises.open > 1 {
		t.Errorf("three move, and one more got %+v", d)
	}
	b.wantRefusal(b.place("chat", tenant("t")), ShedQueueFull)
	b.stand("chat", tenant("other"))
	b.stand("chat", func(r *Request) { r.Key = back })
	for _, g := range b.tick() {
		if g.Waiter != "came" {
			t.Errorf("%v made room", g.Waiter)
		}
	}
	if s := b.Routes(b.now)[0]; s.Waiting != 3 || s.Moving != 3 {
		t.Errorf("%d wait and %d move, want 3 of either", s.Waiting, s.Moving)
	}
	b.wantGrants(full[0].Done(b.now, 100), "moves")
}

// Who moves, and cannot go, holds up nobody who comes; batch leaves it what comes free.
func TestWhoMovesHoldsUpNobody(t *testing.T) {
	interactive := Route{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: queue(2 * time.Second)}
	night := Route{Name: "night", Class: Batch, OnInfeasible: queue(time.Minute)}
	b, full := besideHung(t, interactive, night)
	wide := b.stand("chat", fromHung("bad", time.Minute), sequences(4))
	b.wantGrants(full[0].Done(b.now, 100)) // there is one place
	if d := b.place("night"); d.Lease != nil {
		t.Error("batch came before one who moves")
	}
	if d := b.place("chat"); d.Lease == nil {
		t.Errorf("a newcomer found %+v, want the place that there is", d)
	}
	wide.Cancel(b.now)
	if q := &b.routeOf["chat"].lines[Interactive]; q.len() != 0 || q.moving != 0 || b.backends[1].groups[0].yield.wanted != 0 {
		t.Errorf("nobody stands in line, and %d, of them %d who move, are counted", q.len(), q.moving)
	}
	if d := b.place("chat", fromHung("good", time.Minute), exclude("bad")); d.Ticket != nil {
		t.Error("who can go nowhere stands in line")
	}
}

// An engine whose pages answer while it hangs is asked at once when nobody is there any more,
// and then less and less often.
func TestWhatNobodyWaitsForIsAskedSooner(t *testing.T) {
	b := newBench(t, []string{"bad", "good"}, Route{Name: "chat"})
	b.learn("bad", carrying(40, 30, 90))
	b.learn("good", carrying(40, 30, 90))
	there := b.place("chat", exclude("good")).Lease
	b.Update(b.now, BackendHealth{Backend: "bad", Hung: true, Answers: true})
	asks := func() *Lease {
		for range 3 {
			if d := b.place("chat"); d.Lease.Probe() {
				return d.Lease
			}
		}
		return nil
	}
	b.sleep(time.Minute)
	if asks() != nil {
		t.Error("it is asked while somebody waits there")
	}
	there.Done(b.now, 0)
	for _, wait := range []time.Duration{0, vainLeast, 2 * vainLeast, 4 * vainLeast, hungProbe, hungProbe} {
		if wait > 0 {
			b.sleep(wait - time.Millisecond)
			if asks() != nil {
				t.Errorf("it is asked sooner than after %v", wait)
			}
			b.sleep(time.Millisecond)
		}
		probe := asks()
		if probe == nil {
			t.Fatalf("it is not asked after %v", wait)
		}
		probe.Done(b.now, 0)
	}
	b.Update(b.now, BackendHealth{Backend: "bad"})
	b.Update(b.now, BackendHealth{Backend: "bad", Hung: true})
	if b.sleep(hungProbe - time.Millisecond); asks() != nil {
		t.Error("one whose pages do not answer is asked sooner")
	}
}
