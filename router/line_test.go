package router

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// full is a bench whose only backend is full, with a line of 2 s.
func full(tb testing.TB, routes ...Route) (*bench, []*Lease) {
	if len(routes) == 0 {
		routes = []Route{{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: queue(2 * time.Second), MaxWaiting: 5}}
	}
	b := newBench(tb, []string{"x"}, routes...)
	b.learn("x", carrying(3, 30, 40))
	return b, b.fill("chat", 3)
}

// waiters returns whom the grants are for, those that carry a lease.
func waiters(grants []Grant) []any {
	var out []any
	for _, g := range grants {
		if g.Decision.Lease != nil {
			out = append(out, g.Waiter)
		}
	}
	return out
}

func (b *bench) wantGrants(grants []Grant, want ...any) {
	b.tb.Helper()
	if got := waiters(grants); !slices.Equal(got, want) {
		b.tb.Errorf("granted %v, want %v", got, want)
	}
}

// stand places a request that has to wait.
func (b *bench) stand(route string, edit ...func(*Request)) *Ticket {
	b.tb.Helper()
	d := b.place(route, edit...)
	if d.Ticket == nil {
		b.tb.Fatalf("got %+v, want a ticket", d)
	}
	return d.Ticket
}

// Who comes back as told is one user that asks again, and decisions say so.
func TestADecisionSaysWhoComesBack(t *testing.T) {
	b, _ := full(t)
	b.routes[0].promises.make(b.now, promise{at: b.now, since: b.now.Add(-time.Second)}, 7)
	for key, want := range map[uint64]bool{7: true, 8: false} {
		if d := b.place("chat", func(r *Request) { r.Key = key }); d.Back != want {
			t.Errorf("key %d came back: %v, want %v", key, d.Back, want)
		}
	}
}

// Who gets no place though a candidate is ok is behind others in line, and decisions say how
// many: of those who have no place elsewhere, and of one who came.
func TestADecisionSaysWhoIsBefore(t *testing.T) {
	b, leases := full(t, Route{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: queue(2 * time.Second), MaxWaiting: 2})
	for range 2 {
		b.stand("chat", sequences(2))
	}
	b.stand("chat", sequences(2), fromHung("y", time.Minute))
	b.wantGrants(leases[0].Done(b.now, 100)) // one place is free, and all ask for two
	seen, _ := b.Preview(b.now, Request{Route: "chat", Arrived: b.now})
	b.wantRefusal(b.place("chat", id("full")), ShedQueueFull)
	b.place("chat", id("first of all"), noQueue).Lease.Done(b.now, 0)
	for _, c := range append(b.Decisions(2), seen) {
		want := 2
		if c.ID == "first of all" {
			want = 0
		}
		if ok := c.Candidates[0].Reason == OK; c.Behind != want || !ok {
			t.Errorf("%q: behind %d, want %d; %v", c.ID, c.Behind, want, c.Candidates[0].Reason)
		}
	}
}

func TestLineIsServedByDeadline(t *testing.T) {
	b, leases := full(t)
	if next := b.NextWake(b.now); !next.IsZero() {
		t.Errorf("wants to be woken at %v while nobody waits", next)
	}
	first := b.stand("chat", waiter("first"))
	b.sleep(100 * time.Millisecond)
	b.stand("chat", waiter("second"))
	b.stand("chat", waiter("urgent"), ttft(time.Second))
	b.stand("chat", waiter("third"))
	if got, want := first.Deadline(), start.Add(2*time.Second); !got.Equal(want) {
		t.Errorf("deadline %v, want %v", got, want)
	}
	if next := b.NextWake(b.now); next.Sub(b.now) != wakeEvery {
		t.Errorf("next wake in %v", next.Sub(b.now))
	}
	if got := b.Routes(b.now)[0].Waiting; got != 4 {
		t.Errorf("%d waiting, want 4", got)
	}
	b.sleep(100 * time.Millisecond)
	grants := leases[0].Done(b.now, 100)
	b.wantGrants(grants, "urgent")
	if w := grants[0].Decision.Waited; w != 100*time.Millisecond {
		t.Errorf("waited %v, want 100ms", w)
	}
	b.wantGrants(leases[1].Done(b.now, 100), "first")
	b.wantGrants(leases[2].Done(b.now, 100), "second")
	b.wantGrants(grants[0].Decision.Lease.Done(b.now, 100), "third")
}

// Waiting that is longer than the first token may take makes no sense.
func TestDeadlineLeavesTimeForTheFirstToken(t *testing.T) {
	b, leases := full(t)
	c := carrying(3, 30, 40)
	c.d = 1e-4
	b.learn("x", c)
	for _, l := range leases {
		l.Done(b.now, 1)
	}
	b.place("chat", prompt(3000)) // 0.3 s of prefill
	b.fill("chat", 3)
	d := b.stand("chat", ttft(time.Second))
	if got, want := d.Deadline().Sub(b.now), 700*time.Millisecond*2/3; (got - want).Abs() > time.Microsecond {
		t.Errorf("may wait %v, want %v", got, want)
	}
	b.wantRefusal(b.place("chat", ttft(200*time.Millisecond)), ShedTTFT)
}

func TestNewcomersDoNotPass(t *testing.T) {
	b, leases := full(t)
	b.stand("chat", waiter("big"), sequences(2))
	b.stand("chat", waiter("small"))
	b.wantGrants(leases[0].Done(b.now, 100)) // one place is not enough for the first in line
	b.stand("chat", waiter("newcomer"))
	b.wantGrants(leases[1].Done(b.now, 100), "big")
	b.wantGrants(leases[2].Done(b.now, 100), "small")
}

// Who comes back as told and asks for more than there is has nobody of its own
// tenant served who comes for the first time, however little that one asks for; and
// when it came back in vain before, nobody else who comes back either.
func TestNewcomersDoNotPassWhoComesBack(t *testing.T) {
	for _, c := range []struct {
		inVain bool
		want   []any
	}{
		{false, []any{"told", "other", "big", "newcomer"}},
		{true, []any{"other", "big", "told", "newcomer"}},
	} {
		b, leases := full(t)
		back := func(key uint64, inVain bool, edit ...func(*Request)) {
			b.routes[0].promises.make(b.now, promise{at: b.now, since: b.now.Add(time.Duration(key)*time.Second - time.Minute), back: inVain}, key)
			if ticket := b.stand("chat", append(edit, func(r *Request) { r.Key = key })...); !ticket.back() {
				t.Fatal("it is not recognised")
			}
		}
		back(1, c.inVain, waiter("big"), sequences(2))
		back(2, false, waiter("told"))
		b.stand("chat", waiter("newcomer"))
		b.stand("chat", waiter("other"), tenant("other"))
		var got []any
		for i := 0; i < len(leases); i++ {
			for _, g := range leases[i].Done(b.now, 100) {
				got = append(got, g.Waiter)
				leases = append(leases, g.Decision.Lease)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("in vain before: %v: served %v, want %v", c.inVain, got, c.want)
		}
	}
}

// What no backend takes at once, however idle, does not hold up the line.
func TestWhoIsTooWideDoesNotStandInLine(t *testing.T) {
	b := newBench(t, []string{"x", "y"}, Route{Name: "chat", OnInfeasible: queue(time.Second)})
	b.topo.Backends[0].MaxConcurrency, b.topo.Backends[1].MaxConcurrency = 2, 4
	b.configure()
	d := b.place("chat", sequences(5))
	b.wantRefusal(d, ShedFloor)
	if d.Refusal.RetryAfter != 0 {
		t.Errorf("comes back in %v, want never", d.Refusal.RetryAfter)
	}
	if d := b.place("chat", sequences(4)); d.Lease == nil {
		t.Errorf("got %+v, want a place", d)
	}
	b.stand("chat", sequences(4)) // fits once that one is gone
}

func TestFailoverDoesNotStandInLine(t *testing.T) {
	b, leases := full(t)
	b.wantRefusal(b.place("chat", noQueue), ShedFloor)
	b.stand("chat", waiter("first"), sequences(2))
	leases[0].Done(b.now, 100)
	if d := b.place("chat", noQueue); d.Lease == nil {
		t.Errorf("got %+v, want the free place", d)
	}
}

func TestQueueFullAndTimeout(t *testing.T) {
	b, _ := full(t)
	var tickets []*Ticket
	for range 5 {
		tickets = append(tickets, b.stand("chat"))
	}
	b.wantRefusal(b.place("chat"), ShedQueueFull)
	b.sleep(2 * time.Second)
	d := tickets[0].Expire(b.now)
	b.wantRefusal(d, ShedTimeout)
	if d.Waited != 2*time.Second {
		t.Errorf("waited %v", d.Waited)
	}
	if again := tickets[0].Expire(b.now); again.Refusal != d.Refusal {
		t.Error("expiring twice gives two answers")
	}
	if grants := tickets[0].Cancel(b.now); grants != nil {
		t.Errorf("cancelling an expired ticket granted %v", grants)
	}
	b.stand("chat")
}

// At the end of its time one takes a place that has come up since the line was looked at,
// where nobody stands before. Where somebody does the place is theirs, and the decision says
// so.
func TestThePlaceThatIsThereAtTheEndOfAWait(t *testing.T) {
	for _, c := range []struct {
		name   string
		before int // who ask for more than there is
		took   bool
	}{
		{"nobody stands before", 0, true},
		{"two stand before", 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, leases := full(t)
			for range c.before {
				b.stand("chat", sequences(2), ttft(2500*time.Millisecond))
			}
			last := b.stand("chat", id("last"), sequences(2))
			b.wantGrants(leases[0].Done(b.now, 100)) // one place is free, and all ask for two
			last.req.Sequences = 1                   // what kept it out is over without a word
			b.sleep(2 * time.Second)
			d := last.Expire(b.now)
			if took := d.Lease != nil; took != c.took {
				t.Errorf("took a place: %v, want %v", took, c.took)
			}
			if seen := b.Decisions(1)[0]; seen.ID != "last" || seen.Candidates[0].Reason != OK || !c.took && seen.Behind != c.before {
				t.Errorf("%q is behind %d, want %d; %v", seen.ID, seen.Behind, c.before, seen.Candidates[0].Reason)
			}
		})
	}
}

// Who ends may have read the clock before another one began to stand in line, and come to the
// lock after that: the grant is later all the same, and who looks for the last decision finds it.
func TestAGrantIsLaterThanTheWait(t *testing.T) {
	b, leases := full(t)
	b.stand("chat", func(r *Request) { r.Arrived = b.now.Add(-10 * time.Millisecond) })
	b.wantGrants(leases[0].Done(b.now.Add(-time.Millisecond), 100), nil)
	if last := b.Decisions(2)[0]; last.Outcome != OutcomeGranted || last.Waited != 10*time.Millisecond {
		t.Errorf("the last decision is %v, after %v", last.Outcome, last.Waited)
	}
}

func TestGrantToOneWhoIsGoneComesBack(t *testing.T) {
	b, leases := full(t)
	gone := b.stand("chat", waiter("gone"))
	b.stand("chat", waiter("next"))
	grants := leases[0].Done(b.now, 100)
	b.wantGrants(grants, "gone")
	b.wantGrants(gone.Cancel(b.now), "next")
	b.wantM(3, "")
	if grants := grants[0].Decision.Lease.Done(b.now, 0); grants != nil {
		t.Error("the lease was given back twice")
	}
	b.wantGrants(gone.Cancel(b.now))
	b.wantM(3, "after the second cancel")
}

func TestGrantOnItsWayWinsOverExpiry(t *testing.T) {
	b, leases := full(t)
	ticket := b.stand("chat")
	grants := leases[0].Done(b.now, 100)
	b.sleep(3 * time.Second)
	if d := ticket.Expire(b.now); d.Lease == nil || d.Lease != grants[0].Decision.Lease {
		t.Errorf("got %+v, want the lease that was granted", d)
	}
	// From here on the lease is its holder's alone.
	ticket.Cancel(b.now)
	b.wantM(3, "")
}

// Who has gone is held by nothing: tickets hold their requests, and these what waits.
func TestWhoHasLeftTheLineIsForgotten(t *testing.T) {
	b, leases := full(t)
	b.stand("chat")
	b.stand("chat", func(r *Request) { c := Batch; r.Class = &c })
	for _, l := range leases {
		l.Done(b.now, 10)
	}
	for i, q := range b.scratch.lines[:cap(b.scratch.lines)] {
		if q != (queued{}) {
			t.Errorf("line %d of the last round of waking is still there: %+v", i, q)
		}
	}
}

func TestCancelLetsThoseBehindGo(t *testing.T) {
	b, leases := full(t)
	big := b.stand("chat", waiter("big"), sequences(3))
	b.stand("chat", waiter("small"))
	leases[0].Done(b.now, 100)
	b.wantGrants(big.Cancel(b.now), "small")
}

func TestInteractiveBeforeBatch(t *testing.T) {
	b, leases := full(
		t,
		Route{Name: "nightly", Class: Batch, OnInfeasible: queue(time.Minute)},
		Route{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: queue(2 * time.Second)},
	)
	b.stand("nightly", waiter("batch"))
	b.sleep(time.Second)
	b.stand("chat", waiter("user"), wish(32)) // more than the route asks for: the reserve does not cover it
	b.wantGrants(leases[0].Done(b.now, 100))
	if got := b.reasons("nightly")[0]; got != ReasonReserve {
		t.Errorf("batch while a user waits for the backend: %v, want reserve", got)
	}
	b.wantGrants(leases[1].Done(b.now, 100), "user")
	b.wantGrants(leases[2].Done(b.now, 100)) // somebody interactive was kept out a moment ago
	b.sleep(afterWaiting)
	b.wantGrants(b.tick(), "batch")
}

// The line is woken by everything that may make room.
func TestWhatWakesTheLine(t *testing.T) {
	for _, c := range []struct {
		name string
		wake func(b *bench) []Grant
	}{
		{"curve", func(b *bench) []Grant { return b.learn("x", carrying(4, 30, 40)) }},
		{"reload", func(b *bench) []Grant {
			b.topo.Backends = append(b.topo.Backends, Backend{Name: "y"})
			b.topo.Routes[0].Targets = targets("x", "y")
			return b.configure()
		}},
		{"remote load", func(b *bench) []Grant { return b.Update(b.now, RemoteLoad{Replicas: 1}) }},
		{"health", func(b *bench) []Grant {
			b.topo.Backends = append(b.topo.Backends, Backend{Name: "y"})
			b.topo.Routes[0].Targets = targets("x", "y")
			b.topo.Replicas = 1
			b.Update(b.now, BackendHealth{Backend: "y", Health: Draining})
			return b.configure()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, leases := full(t)
			b.Update(b.now, RemoteLoad{Replicas: 2, ByBackend: map[string]Load{"x": {Decoding: 1}}})
			leases[0].Done(b.now, 1)
			b.stand("chat", waiter("first"))
			b.wantGrants(c.wake(b), "first")
		})
	}
}

func TestRemovedRouteDismissesItsLine(t *testing.T) {
	b, _ := full(t)
	ticket := b.stand("chat")
	b.topo.Routes[0].Name = "talk"
	grants := b.configure()
	if len(grants) != 1 || grants[0].Decision.Refusal == nil || grants[0].Decision.Refusal.Reason != NoBackend {
		t.Fatalf("grants %+v", grants)
	}
	b.wantRefusal(ticket.Expire(b.now), NoBackend)
	if next := b.NextWake(b.now); !next.IsZero() {
		t.Error("somebody still waits")
	}
}

func TestSpill(t *testing.T) {
	chat := Route{Name: "chat", SLO: SLO{MinTPS: 30}, Targets: targets("x"), OnInfeasible: []Step{
		{Kind: Queue, Wait: time.Second}, {Kind: Spill, Route: "nowhere"}, {Kind: Spill, Route: "small"}, {Kind: Shed},
	}}
	small := Route{Name: "small", SLO: SLO{MinTPS: 10}, Targets: targets("y"), OnInfeasible: queue(time.Second)}
	b := newBench(t, []string{"x", "y"}, chat, small)
	b.learn("x", carrying(2, 30, 40))
	b.learn("y", carrying(2, 10, 20))
	b.fill("chat", 2)
	expire := func() Decision { return b.stand("chat").Expire(b.now.Add(time.Second)) }
	d := expire()
	if d.Lease == nil || d.Spilled != "small" || d.Lease.Target().Backend != "y" || d.Lease.Floor() != 10 {
		t.Fatalf("got %+v", d)
	}
	b.place("small")
	b.wantRefusal(expire(), ShedTimeout)
	// Who waits on the other route is not passed.
	b.stand("small", sequences(2))
	d.Lease.Done(b.now, 1)
	b.wantRefusal(expire(), ShedTimeout)
}

func TestBestEffortDoesLeastHarm(t *testing.T) {
	rt := Route{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: []Step{{Kind: BestEffort}, {Kind: Shed}}}
	b := newBench(t, []string{"x", "y"}, rt)
	b.learn("x", carrying(5, 30, 40))
	b.learn("y", carrying(3, 30, 100))
	b.fill("chat", 5, exclude("y"))
	// y would be slower, but only three streams would suffer there.
	b.fill("chat", 3, exclude("x"))
	if d := b.place("chat"); d.Lease == nil || d.Lease.Target().Backend != "y" || d.Lease.Floor() != 0 {
		t.Errorf("got %+v", d)
	}
	b.health("x", Down)
	b.health("y", Down)
	b.wantRefusal(b.place("chat"), NoBackend)
}

// Batch breaks no floor, whatever comes after it in on_infeasible.
func TestBestEffortOfBatchHarmsNobody(t *testing.T) {
	rt := Route{Name: "chat", SLO: SLO{MinTPS: 30}, Reserve: 1, OnInfeasible: []Step{{Kind: BestEffort}, {Kind: Shed}}}
	b := newBench(t, []string{"x", "y"}, rt)
	b.learn("x", carrying(3, 30, 40))
	b.learn("y", carrying(2, 30, 40))
	batch := func(r *Request) { class := Batch; r.Class = &class }
	leases := b.fill("chat", 5)
	b.wantRefusal(b.place("chat", batch), ShedFloor)
	leases[0].Done(b.now, 100)
	b.wantRefusal(b.place("chat", batch), ShedFloor) // the place that is left is the reserve
	if d := b.place("chat"); d.Lease == nil || d.Lease.Floor() != 30 {
		t.Errorf("got %+v, want a place with the floor", d)
	}
	if d := b.place("chat"); d.Lease == nil || d.Policy != "best_effort" {
		t.Errorf("got %+v, want best effort for a user", d)
	}
}

// Nobody in service is no load: no waiting, and another answer.
func TestNoBackendIsNotLoad(t *testing.T) {
	b, _ := full(t)
	b.health("x", Down)
	d := b.place("chat")
	b.wantRefusal(d, NoBackend)
	if d.Refusal.RetryAfter < time.Second || d.Refusal.RetryAfter > 10*time.Second {
		t.Errorf("come back in %v", d.Refusal.RetryAfter)
	}
	b.health("x", Draining)
	b.wantRefusal(b.place("chat"), NoBackend)
	b.health("x", Up)
	b.stand("chat")
}

// It is pointless to stand behind more people than places that come free; said
// at once, but only when all that is well known.
func TestRefusedAtOnceWhenTheWaitIsTooLong(t *testing.T) {
	b, leases := full(t, Route{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: queue(2 * time.Second)})
	stand := func() (n int) {
		for n < 1100 {
			d := b.place("chat")
			if d.Ticket == nil {
				if d.Refusal.Reason == ShedQueueFull {
					return n
				}
				b.wantRefusal(d, ShedFloor)
				return n
			}
			defer d.Ticket.Cancel(b.now)
			n++
		}
		return n
	}
	if got := stand(); got != usualMaxWaiting {
		t.Errorf("%d stand in line while nothing is known of the answers, want %d", got, usualMaxWaiting)
	}
	for range 40 {
		l := b.force(Request{Route: "chat", Stream: true}, leases[0].Target()).Lease
		l.Done(b.now, 30)
	}
	// Three streams at TPS(3), answers of 30 tokens, 2 s, hopeTimes as many.
	b.sleep(2 * forecastStale)
	rate := 3 * carrying(3, 30, 40).TPS(3) / 30
	if got, want := stand(), int(hopeTimes*rate*2); got < want-1 || got > want+1 {
		t.Errorf("%d stand in line, want %d", got, want)
	}
}

// Who is told to come back goes before those who come for the first time, and fewer of
// these stand in line meanwhile. Where nobody ever came back they all do.
func TestPromisesThatNobodyHeedsLeaveTheLineOpen(t *testing.T) {
	b, leases := full(t, Route{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: queue(2 * time.Second)})
	for range 40 {
		b.force(Request{Route: "chat", Stream: true}, leases[0].Target()).Lease.Done(b.now, 30)
	}
	b.sleep(2 * forecastStale)
	key := uint64(0)
	stand := func(refused int) (n int) {
		for refused > 0 {
			key++
			d := b.place("chat", func(r *Request) { r.Key = key })
			if d.Ticket == nil {
				refused--
				continue
			}
			defer d.Ticket.Cancel(b.now)
			n++
		}
		return n
	}
	const soon = 8 * time.Second // when the first of them are to come
	alone := stand(100)
	b.sleep(soon)
	if got := stand(1); got >= alone {
		t.Errorf("%d stand in line beside 100 who were told to come back, %d without", got, alone)
	}
	b.sleep(promiseLate*time.Second + soon) // too late for some of them
	stand(100)
	b.sleep(soon)
	if got := stand(1); got < 3*alone/4 {
		t.Errorf("%d stand in line though nobody ever came back, want about %d", got, alone)
	}
}

// Those of another tenant who do come back go before one whose own never do.
func TestWhoComesBackGoesBeforeATenantThatNeverDoes(t *testing.T) {
	var p promises
	now, key := start, uint64(0)
	tell := func(tenant string, in time.Duration) {
		for range 10 {
			key++
			p.make(now, promise{at: now.Add(in), tenant: tenant}, key)
		}
	}
	tell("never", time.Second)
	tell("never", 20*time.Second)
	tell("comes", 20*time.Second)
	tell("comes", 40*time.Second)
	now = now.Add(20 * time.Second) // too late for the first ten
	for k := uint64(21); k <= 30; k++ {
		if _, ok := p.keep(now, k); !ok {
			t.Fatalf("the promise of %d is not known", k)
		}
	}
	if got := p.before(now, now.Add(time.Minute), "never"); got < 9 || got > 15 {
		t.Errorf("%v are expected before one of a tenant that never comes, want the ten of the other one and few of its own", got)
	}
}

// Where nobody goes before it nothing is promised, however long the answers are:
// who is refused is told a time, and only the next one that no place comes free.
func TestWhoIsAloneIsToldATime(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.topo.Backends[0].MaxConcurrency = 1
	b.configure()
	b.learn("x", carrying(10, 30, 60))
	for range 40 {
		b.place("chat").Lease.Done(b.now, 5000) // 100 s each
	}
	b.place("chat").Lease.FirstToken(b.now)
	if f := b.place("chat").Refusal; f.NoPlace || f.RetryAfter < retryMost {
		t.Errorf("alone: told %v, no place %v; want a time", f.RetryAfter, f.NoPlace)
	}
	if f := b.place("chat").Refusal; !f.NoPlace || f.RetryAfter < retryMost {
		t.Errorf("the next one: told %v, no place %v; want the longest time, and that no place comes free by then", f.RetryAfter, f.NoPlace)
	}
}

// Batch that is kept out of an idle backend, because somebody interactive was
// refused there, waits for time to pass: it is told to come back, all of it.
func TestBatchThatYieldsIsToldATime(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}}, Route{Name: "jobs", Class: Batch})
	b.learn("x", carrying(4, 30, 60))
	for range 40 {
		b.place("jobs").Lease.Done(b.now, 300)
	}
	leases := b.fill("chat", 4)
	b.wantRefusal(b.place("chat"), ShedFloor)
	for _, l := range leases {
		l.Done(b.now, 300)
	}
	b.sleep(time.Second)
	for i := range 3 {
		if f := b.place("jobs").Refusal; f == nil || f.NoPlace || f.RetryAfter <= 0 {
			t.Errorf("number %d on an idle backend: %+v, want a time", i+1, f)
		}
	}
}

// Where a place is free, and only time keeps somebody from it, that time is told,
// also to the next, and it is not said that no place comes free.
func TestWhatTimeEndsIsToldThatTime(t *testing.T) {
	long := func(t *testing.T) (*bench, *Lease) {
		b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}})
		b.learn("x", carrying(10, 30, 60))
		for range 40 {
			b.place("chat").Lease.Done(b.now, 60_000) // 20 min each
		}
		return b, b.place("chat").Lease
	}
	for _, c := range []struct {
		name string
		told time.Duration // the first
		ask  func(t *testing.T) func() Decision
	}{
		{"the first token would be late", 6 * time.Second, func(t *testing.T) func() Decision {
			b, l := long(t)
			l.Done(b.now, 60_000)
			if b.place("chat", prompt(15_000), wish(0)).Lease == nil { // 400 µs a token, as long as none was seen
				t.Fatal("nothing is prefilled")
			}
			return func() Decision { return b.place("chat", prompt(1000), ttft(2*time.Second)) }
		}},
		{"a stream would fall behind", time.Second, func(t *testing.T) func() Decision {
			b, l := long(t)
			l.FirstToken(b.now)
			return func() Decision { return b.place("chat", prompt(15_000)) }
		}},
		{"a backend came back", time.Second, func(t *testing.T) func() Decision {
			b, l := long(t)
			l.Done(b.now, 60_000)
			b.health("x", Down)
			b.health("x", Up)
			for range slowStartCap {
				b.place("chat").Lease.FirstToken(b.now)
			}
			return func() Decision { return b.place("chat") }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			again := c.ask(t)
			for i := range 3 {
				f := again().Refusal
				if f == nil {
					t.Fatal("it is placed")
				}
				least, most := c.told, time.Duration(1.2*float64(c.told))
				if i > 0 {
					most = 25 * time.Second
				}
				if f.NoPlace || f.RetryAfter < least || f.RetryAfter > most {
					t.Errorf("number %d, refused for %v: told %v, no place %v; want %v to %v", i+1, f.Reason, f.RetryAfter, f.NoPlace, least, most)
				}
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	b, leases := full(t, Route{Name: "chat", SLO: SLO{MinTPS: 30}})
	for range 400 {
		l := b.force(Request{Route: "chat", Stream: true}, leases[0].Target()).Lease
		l.Done(b.now, 300)
	}
	rate := 3 * carrying(3, 30, 40).TPS(3) / 300 // places per second
	least, most := math.Inf(1), 0.0              // of what is told, as a share of what is meant
	for k := 1; k <= 40; k++ {
		d := b.place("chat")
		b.wantRefusal(d, ShedFloor)
		want := max(float64(k)/rate, 1)
		got := d.Refusal.RetryAfter.Seconds()
		if want > 52 || d.Refusal.NoPlace && want > 48 { // beyond what SDKs wait for
			if !d.Refusal.NoPlace || got < 50 || got > 60 {
				t.Errorf("refused number %d comes back in %.2f s, want it told that no place comes free", k, got)
			}
			continue
		}
		least, most = min(least, got/want), max(most, got/want)
		if got < 0.8*want-1e-6 || got > 1.2*want+1e-6 {
			t.Errorf("refused number %d comes back in %.2f s, want %.2f ± 20 %%", k, got, want)
		}
		if d.Refusal.Best <= 0 || d.Refusal.Best >= 30 || d.Refusal.Floor != 30 {
			t.Errorf("best %.1f, floor %.1f", d.Refusal.Best, d.Refusal.Floor)
		}
	}
	if most-least < 0.15 {
		t.Errorf("from %.2f to %.2f of it is told, want it spread by 20 %%", least, most)
	}
	b.sleep(time.Hour) // they have all been
	if got := b.place("chat").Refusal.RetryAfter.Seconds(); got > 1.2*max(1/rate, 1) {
		t.Errorf("an hour later: %.2f s", got)
	}
}

func TestUnattainable(t *testing.T) {
	b := newBench(t, []string{"x", "y"}, Route{Name: "chat", SLO: SLO{MinTPS: 60}, OnInfeasible: queue(2 * time.Second)})
	b.learn("x", carrying(20, 20, 50))
	for _, l := range b.fill("chat", 10) {
		defer l.Done(b.now, 1)
	}
	b.stand("chat").Cancel(b.now) // y is unknown: nobody can say
	b.learn("y", carrying(20, 20, 40))
	d := b.place("chat")
	b.wantRefusal(d, ShedUnattainable)
	if d.Refusal.RetryAfter != 0 || d.Refusal.Best != carrying(20, 20, 50).Low(1, 0) {
		t.Errorf("refusal %+v", d.Refusal)
	}
	if r := b.reasons("chat"); r[0] != ReasonOwnFloor || r[1] != ReasonOwnFloor {
		t.Errorf("reasons %v", r)
	}
	// A target that could give it, but is down, makes it a matter of waiting.
	b.learn("y", carrying(20, 60, 90))
	b.health("y", Down)
	b.stand("chat").Cancel(b.now)
}

// A request for far more sequences than an idle backend gives the floor to says nothing of
// the floor, so it is no probe: as one it would hold all places of the backend until its end.
// One for a few more may find out that the engine is faster than it was.
func TestWhatIsWideIsNoProbe(t *testing.T) {
	for n, want := range map[int]int{5: 4, 200: 0} { // of 5, the first of which says when to try
		b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: queue(2 * time.Second)})
		b.learn("x", carrying(3, 30, 40))
		probes := 0
		for range 5 {
			d := b.place("chat", sequences(n))
			switch {
			case d.Lease != nil:
				probes++
				d.Lease.Done(b.now, 1)
			case d.Refusal.Reason != ShedUnattainable || d.Refusal.Sequences != n:
				t.Errorf("n = %d: refusal %+v", n, d.Refusal)
			}
			b.sleep(time.Minute)
		}
		if probes != want {
			t.Errorf("n = %d: %d probes, want %d", n, probes, want)
		}
	}
}

// After 5, 10 and 20 s; then by the engine's own tries a quarter later each time, until
// that is more than a minute.
func TestUnattainableIsProbedEverLessOften(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 60}})
	b.learn("x", carrying(20, 20, 50))
	admitted := 0
	var last Decision
	for range 181 {
		if d := b.place("chat"); d.Lease != nil {
			admitted, last = admitted+1, d
			d.Lease.Done(b.now, 10)
		} else {
			b.wantRefusal(d, ShedUnattainable)
		}
		b.sleep(time.Second)
	}
	if admitted != 6 {
		t.Errorf("%d probes in 180 s, want 6", admitted)
	}
	if last.Lease.Floor() != 0 || last.Chosen.Floor != 60 {
		t.Errorf("the probe carries %v, asked for %v; want 0 and 60", last.Lease.Floor(), last.Chosen.Floor)
	}
	b.sleep(time.Minute)
	b.wantRefusal(b.place("chat", wish(1e5)), ShedUnattainable) // absurd is not worth a probe
	b.place("chat", wish(10))
	b.wantRefusal(b.place("chat"), ShedUnattainable) // not idle
}

// Who waits for a floor that turns out to be out of reach is told so.
func TestWaitersLearnThatTheFloorIsOutOfReach(t *testing.T) {
	b, _ := full(t)
	b.stand("chat", waiter("first"))
	grants := b.learn("x", carrying(3, 10, 20))
	if len(grants) != 1 || grants[0].Decision.Refusal == nil || grants[0].Decision.Refusal.Reason != ShedUnattainable {
		t.Errorf("grants %+v", grants)
	}
}

// While nobody can go, a release costs no more where many routes have a line on the
// engine: those share what are tried.
func TestTheLinesOfAnEngineShareWhatAReleaseCosts(t *testing.T) {
	for name, c := range map[string]struct {
		routes, most int
		late         bool
	}{
		"long prompts, one route":     {routes: 1, most: 64},
		"long prompts, eight routes":  {routes: 8, most: 64},
		"long prompts, thirty routes": {routes: 30, most: 30 * leastTried},
		"late, eight routes":          {routes: 8, most: 64, late: true},
		"late, thirty routes":         {routes: 30, most: 30 * leastTried, late: true},
	} {
		var routes []Route
		for i := range c.routes {
			routes = append(routes, Route{Name: fmt.Sprint(i), SLO: SLO{MinTPS: 30, Grace: time.Second}, OnInfeasible: queue(5 * time.Second)})
		}
		w := newBench(t, []string{"x"}, routes...)
		f := carrying(7, 30, 60)
		f.d = 1e-4
		w.learn("x", f)
		running := w.fill("0", 10)
		for _, l := range running {
			l.FirstToken(w.now)
		}
		for route := range c.routes {
			for i := range 80 {
				w.stand(fmt.Sprint(route), waiter(fmt.Sprint(route, i)), func(r *Request) {
					r.Tenant, r.PromptTokens = fmt.Sprint(i), 40_000-100*i
					if most := 3*time.Second + time.Duration(i)*time.Millisecond; c.late {
						r.PromptTokens, r.MaxTTFT = 100, &most
					}
				})
			}
		}
		if c.late {
			w.run(running, 60, 2500*time.Millisecond)
		}
		for _, l := range running[:3] {
			w.wantGrants(l.Done(w.now, 10))
		}
		tried := 0
		for _, rt := range w.routes {
			for own := rt.lines[Interactive].fresh.front; own != nil; own = own.next {
				for _, ticket := range own.tickets {
					if ticket.tried == rt.lines[Interactive].waking.round {
						tried++
					}
				}
			}
		}
		if tried == 0 || tried > c.most {
			t.Errorf("%s: a release had %d tried, want some, and %d at most", name, tried, c.most)
		}
	}
}
