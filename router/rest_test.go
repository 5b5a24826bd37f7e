package router

import (
	"testing"
	"time"
)

// pool is a route to a backend bad and to a backend good that takes three.
func pool(tb testing.TB) *bench {
	b := newBench(tb, []string{"bad", "good"}, Route{Name: "chat", OnInfeasible: queue(2 * time.Second)})
	b.topo.Backends[1].MaxConcurrency = 3
	b.configure()
	return b
}

// rest is that of the i-th backend's target.
func (b *bench) rest(i int) *rest { return &b.backends[i].groups[0].models[0].rest }

// refuse sends a request to a backend that refuses it.
func (b *bench) refuse(backend string, sure bool, edit ...func(*Request)) (held, rests bool) {
	b.tb.Helper()
	other := map[string]string{"bad": "good", "good": "bad"}[backend]
	d := b.place("chat", append(edit, exclude(other), noQueue)...)
	if d.Lease == nil {
		b.tb.Fatalf("got %+v, want a lease on %s", d, backend)
	}
	d.Lease.Done(b.now, 0)
	return d.Lease.Refused(b.now, sure)
}

func by(tenant string) func(*Request) { return func(r *Request) { r.Tenant = tenant } }

// A backend that refuses everything at once is always empty. While others can
// serve it gets a try now and then, and not every request.
func TestWhatRefusesEverythingIsTriedByProbes(t *testing.T) {
	for _, prefer := range []Prefer{Headroom, Order, Pack} {
		for _, known := range []bool{false, true} {
			b := newBench(t, []string{"bad", "good"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}, Prefer: prefer})
			b.learn("good", carrying(40, 30, 60))
			if known {
				b.learn("bad", carrying(40, 30, 90))
			}
			tries := 0
			for range 100 {
				d := b.place("chat")
				if d.Lease.Target().Backend == "bad" {
					tries++
					d.Lease.Refused(b.now, false)
					d.Lease.Done(b.now, 0)
				} else {
					d.Lease.FirstToken(b.now)
					d.Lease.Done(b.now, 10)
				}
				b.sleep(100 * time.Millisecond)
			}
			if want := manyRefusals + 3; tries > want { // after 1, 2 and 4 s
				t.Errorf("%v, known %v: %d of 100 requests in 10 s went where all are refused, want %d at most", prefer, known, tries, want)
			}
			if d := b.place("chat", exclude("good")); d.Lease == nil || d.Lease.Probe() != (tries > 0) { // pack has never looked there
				t.Errorf("%v: without another it is not even tried: %+v", prefer, d)
			}
			b.sleep(restMost)
			l := b.place("chat", exclude("good")).Lease
			l.FirstToken(b.now)
			if b.rest(0).rests("") {
				t.Errorf("%v: it rests after a first token", prefer)
			}
		}
	}
}

// What refuses everything is no refuge for those who find the other one full:
// they wait in line for it, and whoever fails over does, too.
func TestWhatRefusesEverythingIsNoRefuge(t *testing.T) {
	b := pool(t)
	for i := range manyRefusals {
		if _, rests := b.refuse("bad", false); rests != (i == manyRefusals-1) {
			t.Errorf("after %d refusals it rests: %v", i+1, rests)
		}
	}
	running := b.fill("chat", 10)
	if len(running) != 3 {
		t.Fatalf("%d were placed, want 3: those that the good one takes", len(running))
	}
	if got := b.reasons("chat"); got[0] != ReasonRefuses || got[1] != ReasonCap {
		t.Errorf("reasons %v, want refuses and cap", got)
	}
	if s := b.Routes(b.now)[0]; s.Free != 0 || s.Unlimited {
		t.Errorf("free %d, unlimited %v; want none", s.Free, s.Unlimited)
	}
	waits := b.place("chat")
	if waits.Ticket == nil {
		t.Fatalf("got %+v, want a place in line", waits)
	}
	b.sleep(restLeast)
	grants := b.tick()
	if len(grants) != 1 || !grants[0].Decision.Lease.Probe() || grants[0].Decision.Lease.Target().Backend != "bad" {
		t.Fatalf("after %v: %+v, want one probe", restLeast, grants)
	}
	probe := grants[0].Decision.Lease
	if d := b.place("chat"); d.Ticket == nil {
		t.Errorf("beside the probe: %+v, want a place in line", d)
	}
	if _, rests := probe.Refused(b.now, false); !rests {
		t.Error("it rests no more after a probe that was refused")
	}
	probe.Done(b.now, 0)
	again := b.place("chat", exclude("bad"), func(r *Request) { r.Again = true })
	if again.Ticket == nil {
		t.Errorf("the probe moves on: %+v, want a place in line", again)
	}
	if grants := running[0].Done(b.now, 10); len(grants) != 1 || grants[0].Decision.Lease.Target().Backend != "good" {
		t.Errorf("when a place came free: %+v, want one of the good one", grants)
	}
	b.health("good", Down)
	if d := b.place("chat", noQueue); d.Lease == nil {
		t.Errorf("with no other in service: %+v, want the one that refuses, for it knows why", d)
	}
}

// A probe that is served ends the rest, and those in line go there at once.
func TestAProbeThatIsServedEndsTheRest(t *testing.T) {
	for name, serve := range map[string]func(*bench, *Lease){
		"stream":   func(b *bench, l *Lease) { l.FirstToken(b.now) },
		"document": func(b *bench, l *Lease) { l.Served(); l.Done(b.now, 10) },
	} {
		t.Run(name, func(t *testing.T) {
			b := pool(t)
			for range manyRefusals {
				b.refuse("bad", false)
			}
			b.fill("chat", 3)
			for range 5 {
				b.place("chat")
			}
			b.sleep(restLeast)
			probe := b.tick()[0].Decision.Lease
			probe.stream = name == "stream"
			serve(b, probe)
			if b.rest(0).rests("") {
				t.Fatal("it rests still")
			}
			b.tick()
			if d := b.place("chat"); d.Lease == nil || d.Lease.Probe() || d.Lease.Target().Backend != "bad" {
				t.Errorf("afterwards: %+v, want a place like any other", d)
			}
		})
	}
}

// A backend that has just served speaks for itself: what may be the client's
// doing is not held against it, but what another one served is. An answer to
// what was sent before a refusal takes nothing back.
func TestWhoseRefusalItIs(t *testing.T) {
	b := pool(t)
	l := b.place("chat", exclude("good")).Lease
	old := b.place("chat", exclude("good")).Lease
	l.FirstToken(b.now)
	for range 3 * manyRefusals {
		if held, rests := b.refuse("bad", false); held || rests {
			t.Fatalf("held %v, rests %v: it had served a moment before", held, rests)
		}
	}
	b.sleep(time.Second)
	for range manyRefusals - 1 {
		if held, rests := b.refuse("bad", true); !held || rests {
			t.Fatalf("held %v, rests %v, want held though it had served: another one served the same", held, rests)
		}
	}
	old.FirstToken(b.now)
	if _, rests := b.refuse("bad", true); !rests {
		t.Error("a stream that it took before it began to refuse was taken for a good answer")
	}
	b = pool(t)
	b.place("chat", exclude("good")).Lease.FirstToken(b.now)
	b.sleep(servedLately)
	if held, _ := b.refuse("bad", false); !held {
		t.Error("not held after a while without a good answer")
	}
	l = b.place("chat", exclude("good")).Lease
	l.Refused(b.now, true)
	l.Refused(b.now, true)
	if got := b.rest(0).refusals; got != 2 {
		t.Errorf("%d refusals, want 2: one of a request", got)
	}
}

// One tenant's requests that a backend refuses take it from him, not from others.
func TestOneTenantCannotTakeABackendFromTheOthers(t *testing.T) {
	b := pool(t)
	for range 100 {
		b.refuse("bad", true, by("hostile"))
	}
	if !b.rest(0).rests("hostile") || b.rest(0).rests("victim") {
		t.Fatalf("rests for the hostile one %v, for the victim %v; want only the first", b.rest(0).rests("hostile"), b.rest(0).rests("victim"))
	}
	b.fill("chat", 3, exclude("bad"))
	if d := b.place("chat", by("hostile")); d.Ticket == nil {
		t.Fatalf("the hostile one: %+v, want a place in line", d)
	}
	d := b.place("chat", by("victim"))
	grants := append(b.tick(), Grant{Decision: d})
	if last := grants[0].Decision.Lease; last == nil || last.Target().Backend != "bad" || last.Probe() {
		t.Fatalf("the victim: %+v, want a place on what serves him", grants)
	}
	b.refuse("bad", false, by("victim"))
	if !b.rest(0).rests("somebody") {
		t.Error("it does not rest for all, though it refused two tenants")
	}
	b = pool(t)
	for i, tenant := range []string{"hostile", "hostile", "victim"} {
		l := b.place("chat", exclude("good"), by(tenant)).Lease
		l.Full(b.now, 0)
		l.Done(b.now, 0)
		if rests := b.rest(0).rests("somebody"); rests != (i == 2) || !b.rest(0).rests("hostile") {
			t.Errorf("full for %d: rests for others %v", i+1, rests)
		}
	}
}

// Refusals that come faster than the first tokens of others make no target rest
// that serves what is sent there between them: nobody takes it from others by
// what he alone is refused for, and no second tenant who is refused once helps.
func TestWhatServesBetweenRefusalsDoesNotRest(t *testing.T) {
	b := pool(t)
	b.refuse("bad", true, by("victim"))
	var streams []*Lease
	for range 100 {
		streams = append(streams, b.place("chat", exclude("good"), by("victim")).Lease)
		b.sleep(10 * time.Millisecond)
		b.refuse("bad", true, by("hostile"))
		if len(streams) == 4 { // the first tokens come after 40 ms, with four refusals between
			streams[0].FirstToken(b.now)
			streams[0].Done(b.now, 10)
			streams = streams[1:]
		}
		if b.rest(0).rests("victim") {
			t.Fatalf("it rests after %d refusals in a row", b.rest(0).refusals)
		}
	}
}

// A backend that says it is full rests for as long as it says, within bounds, or
// until one of its streams ends.
func TestAFullBackendRests(t *testing.T) {
	for _, c := range []struct{ told, want time.Duration }{{0, restLeast}, {7 * time.Second, 7 * time.Second}, {time.Hour, restTold}} {
		b := pool(t)
		runs := b.place("chat", exclude("good")).Lease
		runs.FirstToken(b.now)
		full := b.place("chat", exclude("good")).Lease
		full.Full(b.now, c.told)
		full.Done(b.now, 0)
		b.fill("chat", 3)
		b.sleep(c.want - time.Millisecond)
		if got := b.reasons("chat"); got[0] != ReasonRefuses {
			t.Errorf("told %v: %v just before %v", c.told, got, c.want)
		}
		b.sleep(time.Millisecond)
		if got := b.reasons("chat"); got[0] != OK {
			t.Errorf("told %v: %v after %v, want a probe", c.told, got, c.want)
		}
		full = b.place("chat").Lease
		full.Full(b.now, c.told)
		full.Done(b.now, 0)
		runs.Done(b.now, 10)
		if got := b.reasons("chat")[0]; (got == OK) != (c.told == 0) {
			t.Errorf("told %v: %v after one of its streams has ended", c.told, got)
		}
	}
}

// The clock was set back by an hour: the rest does not become longer.
func TestARestOutlivesNoClock(t *testing.T) {
	b := pool(t)
	for range manyRefusals {
		b.refuse("bad", false)
	}
	b.now = b.now.Add(-time.Hour)
	if got := b.reasons("chat"); got[0] != OK {
		t.Errorf("%v, want a probe", got)
	}
}

// No target is no refuge that could never serve the request.
func TestWhatNeverFitsIsNoRefuge(t *testing.T) {
	b := pool(t)
	b.learn("good", carrying(4, 30, 50))
	for range manyRefusals {
		b.refuse("bad", false)
	}
	b.fill("chat", 3)
	d := b.place("chat", sequences(4))
	if d.Lease == nil {
		t.Fatalf("four sequences: %+v, want the one that refuses: the other takes three", d)
	}
	d.Lease.Done(b.now, 0)
	if d := b.place("chat", wish(200)); d.Lease == nil {
		t.Errorf("200 tokens/s: %+v, want the one that refuses: the other gives 50", d)
	}
}

// Who failed over waits for the backends that are left, and holds up nobody who
// may still go where it failed.
func TestWhoFailedOverHoldsUpNobody(t *testing.T) {
	b := pool(t)
	b.fill("chat", 3, exclude("bad"))
	for i := range 10 {
		d := b.place("chat", exclude("bad"), prompt(1000-100*i), func(r *Request) { r.Again = true })
		if d.Ticket == nil {
			t.Fatalf("got %+v, want a place in line", d)
		}
	}
	d := b.place("chat", prompt(5000))
	grants := b.tick()
	if d.Ticket == nil || len(grants) != 1 || grants[0].Ticket != d.Ticket {
		t.Errorf("%+v, then %+v: want the newcomer placed where the others had failed", d, grants)
	}
}

// What takes so many requests a minute has no room when a stream ends: the first who finds
// out is the last one sent for that. What takes so many at once is asked at each end.
func TestTheEndOfAStreamMakesRoomOrNot(t *testing.T) {
	for name, c := range map[string]struct {
		room  bool // at each end
		asked int  // within a minute
	}{"so many a minute": {false, 15}, "so many at once": {true, 50}} {
		b := pool(t)
		var runs []*Lease
		for range 50 {
			l := b.place("chat", exclude("good")).Lease
			l.FirstToken(b.now)
			runs = append(runs, l)
		}
		b.fill("chat", 3, exclude("bad"))
		asked := 0
		ask := func(served bool) bool {
			d := b.place("chat", noQueue)
			if d.Lease == nil {
				return false
			}
			asked++
			if served {
				d.Lease.FirstToken(b.now)
			} else {
				d.Lease.Full(b.now, 0)
				d.Lease.Done(b.now, 0)
			}
			return true
		}
		ask(false)
		for _, l := range runs {
			b.sleep(1200 * time.Millisecond)
			l.Done(b.now, 10)
			b.sleep(time.Millisecond)
			if ask(c.room) && c.room {
				b.sleep(time.Millisecond)
				if ask(false); b.reasons("chat")[0] == OK {
					t.Errorf("%s: it takes one at each end, and another one is sent there", name)
				}
			}
		}
		if c.room && asked < c.asked || !c.room && asked > c.asked {
			t.Errorf("%s: it was asked %d times in a minute, want %d", name, asked, c.asked)
		}
	}
}

// Streams may end faster than a full target answers: one request finds out for all of them,
// and none goes there for the ends that come meanwhile or later.
func TestEndsFasterThanAnAnswerSendOneThere(t *testing.T) {
	b := pool(t)
	var runs, asked []*Lease
	for range 40 {
		l := b.place("chat", exclude("good")).Lease
		l.FirstToken(b.now)
		runs = append(runs, l)
	}
	b.fill("chat", 3, exclude("bad"))
	full := func(l *Lease) {
		l.Full(b.now, 0)
		l.Done(b.now, 0)
	}
	full(b.place("chat", noQueue).Lease)
	answered := 0
	for i, l := range runs { // an end each 20 ms, an answer after 300 ms
		b.sleep(20 * time.Millisecond)
		l.Done(b.now, 10)
		if d := b.place("chat", noQueue); d.Lease != nil {
			asked = append(asked, d.Lease)
		}
		if i == 15 {
			for _, l := range asked {
				full(l)
			}
			answered = len(asked)
		}
	}
	if len(asked) != 1 || answered != 1 {
		t.Errorf("%d were sent there before it answered and %d after, want one and none", answered, len(asked)-answered)
	}
}
