package router

import (
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-dev/pacer/profiles"
)

func TestTwoPhases(t *testing.T) {
	b := newBench(t, []string{"x"})
	l := b.place("chat", prompt(100), sequences(2)).Lease
	want := func(waiting, decoding, prompt int) {
		t.Helper()
		got := b.load(0)
		if got.Waiting != waiting || got.Decoding != decoding || got.PromptTokens != prompt {
			t.Errorf("load %+v, want %d waiting, %d decoding, %d prompt tokens", got, waiting, decoding, prompt)
		}
		if _, n := l.Occupancy().Load(); n != decoding {
			t.Errorf("the streams read n = %d, want %d", n, decoding)
		}
	}
	want(2, 0, 100)
	l.FirstToken(b.now)
	l.FirstToken(b.now)
	want(0, 2, 0)
	l.Done(b.now, 10)
	want(0, 0, 0)
	if l.Done(b.now, 10) != nil {
		t.Error("Done twice")
	}
	l.FirstToken(b.now)
	want(0, 0, 0)
}

// What tells no first token counts as decoding from its predicted TTFT on.
func TestWholeAnswersDecodeFromThePredictedTTFT(t *testing.T) {
	b := newBench(t, []string{"x"})
	c := carrying(38, 30, 60)
	c.d = 1e-4
	b.learn("x", c)
	ahead := b.place("chat", prompt(2000)).Lease // 0.2 s
	l := b.place("chat", whole, prompt(3000)).Lease
	b.sleep(499 * time.Millisecond)
	b.tick()
	if got := b.load(0); got.Decoding != 0 {
		t.Errorf("decoding after 499 ms: %+v", got)
	}
	b.sleep(2 * time.Millisecond)
	b.tick()
	if got := b.load(0); got.Decoding != 1 || got.PromptTokens != 2000 {
		t.Errorf("not decoding after 501 ms: %+v", got)
	}
	gone := b.place("chat", whole, prompt(3000)).Lease
	gone.Done(b.now, 0)
	l.Done(b.now, 10)
	ahead.Done(b.now, 10)
	b.sleep(time.Minute)
	b.tick()
	if got := b.load(0); got.M != 0 || got.N != 0 || got.PromptTokens != 0 {
		t.Errorf("at the end: %+v", got)
	}
}

// A backend that is removed and comes back is another one: what is given back
// late must not land on its counts.
func TestIncarnations(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.learn("x", carrying(38, 30, 60))
	old := b.fill("chat", 5)
	old[0].FirstToken(b.now)
	topo := b.topo
	b.topo.Backends = nil
	b.configure()
	if got := len(b.Loads()); got != 0 {
		t.Fatalf("%d backends after their removal", got)
	}
	b.topo = topo
	b.configure()
	l := b.place("chat").Lease
	l.FirstToken(b.now)
	for i, o := range old {
		o.FirstToken(b.now)
		if _, n := o.Occupancy().Load(); n != 1 {
			t.Errorf("n = %d on the old incarnation, want 1 (lease %d)", n, i)
		}
		o.Done(b.now, 1)
	}
	if got := b.load(0); got.M != 1 || got.N != 1 {
		t.Errorf("load of the new incarnation: %+v, want its own stream", got)
	}
	if _, n := l.Occupancy().Load(); n != 1 {
		t.Errorf("n = %d, want 1", n)
	}
}

// A reload changes what is promised, not who runs where.
func TestReloadKeepsLeasesAndCurves(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.learn("x", carrying(10, 30, 60))
	leases := b.fill("chat", 10)
	b.topo.Backends[0].MaxConcurrency = 11
	b.topo.Routes = append([]Route{{Name: "other", Targets: targets("x")}}, b.topo.Routes...)
	b.configure()
	b.wantReason("chat", ReasonOwnFloor)
	b.wantReason("other", ReasonProtects)
	b.topo.Routes = b.topo.Routes[:1]
	b.configure()
	b.wantReason("other", ReasonProtects) // the streams of the removed route keep their floor
	for _, l := range leases {
		l.Done(b.now, 1)
	}
	b.wantReason("other", OK)
	if l := b.load(0); l.M != 0 || l.Floor != 0 {
		t.Errorf("load %+v", l)
	}
}

func TestRemoteLoad(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.learn("x", carrying(38, 30, 60))
	l := b.place("chat", prompt(10)).Lease
	l.FirstToken(b.now)
	b.place("chat", prompt(10))
	want := func(n, m int) {
		t.Helper()
		if got := b.load(0); got.N != n || got.M != m || got.Waiting != 1 || got.Decoding != 1 {
			t.Errorf("load %+v, want n = %d, m = %d", got, n, m)
		}
		if _, got := l.Occupancy().Load(); got != n {
			t.Errorf("the streams read n = %d, want %d", got, n)
		}
	}
	want(1, 2)
	b.Update(b.now, RemoteLoad{Replicas: 3, ByBackend: map[string]Load{"x": {Waiting: 5, Decoding: 7}}})
	want(8, 14)
	b.Update(b.now, RemoteLoad{Replicas: 3, Lost: true})
	want(3, 6)
	b.Update(b.now, RemoteLoad{Replicas: 1})
	want(1, 2)
	b = newBench(t, []string{"x"})
	b.topo.Replicas = 4 // until remote load tells
	b.configure()
	b.learn("x", carrying(38, 30, 60))
	l = b.place("chat").Lease
	l.FirstToken(b.now)
	b.place("chat")
	if got := b.load(0); got.N != 4 || got.M != 8 {
		t.Errorf("load %+v of one in four replicas, want n = 4, m = 8", got)
	}
}

// ledger drives a router with random events and knows what has to come out.
type ledger struct {
	*bench
	leases  []*Lease
	tickets []*Ticket
	ever    []*Lease // also those given back
}

func (g *ledger) settle(grants []Grant) {
	for _, grant := range grants {
		if l := grant.Decision.Lease; l != nil {
			g.hold(l)
		}
	}
}

func (g *ledger) hold(l *Lease) {
	g.leases = append(g.leases, l)
	g.ever = append(g.ever, l)
}

func (g *ledger) settled(d Decision) {
	if d.Lease != nil {
		g.hold(d.Lease)
	}
	if d.Ticket != nil {
		g.tickets = append(g.tickets, d.Ticket)
	}
}

// step is one random event.
func (g *ledger) step(t *rapid.T) {
	pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "i") }
	g.sleep(time.Duration(pick(200)) * time.Millisecond)
	switch event := pick(12); {
	case event < 4:
		req := Request{
			Route: []string{"chat", "nightly"}[pick(2)], Arrived: g.now, PromptTokens: pick(3) * 500,
			Sequences: pick(3), Stream: pick(4) > 0, NoDecode: pick(8) == 0, NoQueue: pick(4) == 0,
		}
		g.settled(g.Place(g.now, req))
	case event < 6 && len(g.leases) > 0:
		l := g.leases[pick(len(g.leases))]
		l.FirstToken(g.now)
		l.Progress(g.now, profiles.Count{Tokens: float64(pick(100)), Rough: pick(4) == 0})
	case event < 8 && len(g.leases) > 0:
		i := pick(len(g.leases))
		g.settle(g.leases[i].Done(g.now, float64(pick(300))))
		g.leases = append(g.leases[:i:i], g.leases[i+1:]...)
	case event == 8 && len(g.ever) > 0: // once more, or first
		l := g.ever[pick(len(g.ever))]
		g.settle(l.Done(g.now, 1))
	case event == 9 && len(g.tickets) > 0:
		ticket := g.tickets[pick(len(g.tickets))]
		if pick(2) == 0 {
			g.settle(ticket.Cancel(g.now))
		} else if ticket.state == inLine {
			g.settled(ticket.Expire(g.now))
		}
	case event == 10:
		g.reconfigure(pick(6))
	case event == 11:
		g.tell(pick(5), pick(4))
	}
}

func (g *ledger) reconfigure(kind int) {
	full := g.topo
	switch kind {
	case 0: // one is removed and comes back
		g.topo.Backends = g.topo.Backends[1:]
		g.settle(g.configure())
		g.topo = full
	case 1: // and with its routes
		g.topo.Routes = nil
		g.settle(g.configure())
		g.topo = full
	}
	g.settle(g.configure())
}

func (g *ledger) tell(kind, n int) {
	switch kind {
	case 0:
		g.settle(g.Update(g.now, RemoteLoad{Replicas: 2, ByBackend: map[string]Load{"x": {Decoding: n, Floor: 30}}}))
	case 1:
		g.settle(g.Update(g.now, RemoteLoad{Replicas: n, Lost: true}))
	case 2:
		g.settle(g.health("x", Health(n)))
	case 3:
		g.settle(g.learn("y", carrying(2+n, 30, 60)))
	default:
		g.settle(g.tick())
	}
}

// check compares every count with the sum of the leases it stands for.
func (g *ledger) check(t *rapid.T) {
	type sums struct{ waiting, decoding, idle, prompt, floors, streams int }
	want := map[*backend]*sums{}
	for _, b := range g.backends {
		want[b] = &sums{}
	}
	inQueue := 0
	for _, ticket := range g.tickets {
		if ticket.state == inLine {
			inQueue++
		}
	}
	if g.inLine != inQueue {
		t.Fatalf("%d counted in line, want %d", g.inLine, inQueue)
	}
	for _, l := range g.ever {
		b := l.backend
		if want[b] == nil {
			want[b] = &sums{} // a removed incarnation
		}
		w := want[b]
		switch l.phase {
		case waiting:
			w.waiting, w.prompt = w.waiting+l.weight, w.prompt+l.prompt
		case decoding:
			w.decoding += l.weight
			if l.stream {
				w.streams++
			}
		case holding:
			w.idle++
		}
		if l.phase != done && l.floor > 0 {
			w.floors++
		}
	}
	for b, w := range want {
		got := sums{waiting: b.waiting, decoding: b.decoding, idle: b.idle, prompt: b.prompt, streams: len(b.streams)}
		for _, m := range b.models {
			for _, f := range m.floors {
				got.floors += f.count
			}
		}
		if g.byName[b.name] != b {
			got.floors = w.floors // its targets are no longer listed
		}
		if got != *w {
			t.Fatalf("%s: counts %+v, the leases say %+v", b.name, got, *w)
		}
		if _, n := b.occupancy.Load(); g.byName[b.name] == b && n != b.n() {
			t.Fatalf("%s: the streams read n = %d, want %d", b.name, n, b.n())
		}
	}
}

// Sums of leases equal the counts after any events, and end at zero.
func TestLeasesAreGivenBackExactlyOnce(t *testing.T) {
	events := 0
	rapid.Check(t, func(t *rapid.T) {
		g := &ledger{bench: newBench(nil, []string{"x", "y"},
			Route{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: queue(2 * time.Second)},
			Route{Name: "nightly", Class: Batch, OnInfeasible: []Step{{Kind: Queue, Wait: time.Minute}, {Kind: BestEffort}}},
		)}
		g.learn("x", carrying(5, 30, 60))
		for range rapid.IntRange(1000, 1400).Draw(t, "events") {
			g.step(t)
			g.check(t)
			events++
		}
		for _, ticket := range g.tickets {
			g.settle(ticket.Cancel(g.now))
		}
		for _, l := range g.ever {
			l.Done(g.now, 0)
		}
		g.leases = nil
		g.check(t)
		for _, b := range g.backends {
			if b.waiting != 0 || b.decoding != 0 || b.idle != 0 || b.prompt != 0 || b.highestFloor() != 0 || b.unserved.front != nil {
				t.Fatalf("left on %s: %+v", b.name, b)
			}
		}
		if len(g.pending) != 0 || g.inLine != 0 {
			t.Fatalf("%d pending, %d in line", len(g.pending), g.inLine)
		}
	})
	if events < 100_000 && !testing.Short() {
		t.Errorf("only %d events", events)
	}
}

// Everything at once, for the race detector.
func TestConcurrentUse(t *testing.T) {
	b := newBench(t, []string{"x", "y"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: queue(time.Second)})
	b.learn("x", carrying(8, 30, 60))
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			now := start
			for i := range 500 {
				now = now.Add(time.Millisecond)
				d := b.Place(now, Request{Route: "chat", Stream: true, Arrived: now, NoQueue: worker%2 == 0})
				if d.Ticket != nil {
					if i%3 == 0 {
						discard(now, d.Ticket.Cancel(now))
						continue
					}
					d = d.Ticket.Expire(now)
				}
				if d.Lease == nil {
					continue
				}
				d.Lease.FirstToken(now)
				for k := range 10 {
					d.Lease.Progress(now.Add(time.Duration(k)*time.Millisecond), profiles.Count{Tokens: float64(k)})
				}
				discard(now, d.Lease.Done(now, 10))
			}
		})
	}
	all.Go(func() {
		for i := range 200 {
			now := start.Add(time.Duration(i) * 10 * time.Millisecond)
			discard(now, b.Update(now, RemoteLoad{Replicas: 2, ByBackend: map[string]Load{"y": {Decoding: i % 5}}}))
			discard(now, b.Update(now, Tick{}))
			b.Loads()
			b.Routes(now)
			b.Explain(now, Request{Route: "chat"})
			b.NextWake(now)
			b.InService()
		}
	})
	all.Wait()
	for _, l := range b.Loads() {
		if l.Waiting != 0 || l.Decoding != 0 {
			t.Errorf("left: %+v", l)
		}
	}
}

// discard gives back what was granted to those who are gone, and what that
// grants.
func discard(now time.Time, grants []Grant) {
	for len(grants) > 0 {
		next := grants[0].Ticket.Cancel(now)
		if l := grants[0].Decision.Lease; l != nil {
			next = append(next, l.Done(now, 0)...)
		}
		grants = append(grants[1:], next...)
	}
}
