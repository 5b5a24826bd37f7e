package router

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-dev/pacer/internal/racetest"
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
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}})
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

// A backend that is removed and comes back with another engine is another one:
// what is given back late must not land on its counts.
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
	b.topo.Backends = slices.Clone(topo.Backends)
	b.topo.Backends[0].Engine = "http://new"
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
	b.Update(b.now, RemoteLoad{Replicas: 3, Lost: true}) // what was told last holds
	want(8, 14)
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
	pick    func(n int) int // of 0 to n−1
	leases  []*Lease
	tickets []*Ticket
	ever    []*Lease // also those given back, of late
}

func newLedger(pick func(int) int) *ledger {
	g := &ledger{pick: pick, bench: newBench(nil, []string{"x", "y"},
		Route{Name: "chat", SLO: SLO{MinTPS: 30}, MaxWaiting: 8, OnInfeasible: []Step{{Kind: Queue, Wait: 2 * time.Second}, {Kind: Spill, Route: "small"}}},
		Route{Name: "nightly", Class: Batch, OnInfeasible: []Step{{Kind: Queue, Wait: time.Minute}, {Kind: BestEffort}}},
		Route{Name: "small", Targets: targets("y")},
	)}
	g.topo.Backends[1].MaxConcurrency = 12
	g.configure()
	g.learn("x", carrying(5, 30, 60))
	return g
}

// settle takes the leases of grants. Some of those they are for have just gone.
func (g *ledger) settle(grants []Grant) {
	for len(grants) > 0 {
		grant := grants[0]
		grants = grants[1:]
		l := grant.Decision.Lease
		switch {
		case l == nil:
		case g.pick(4) == 0:
			grants = append(grants, grant.Ticket.Cancel(g.now)...)
			if l.phase != done {
				panic("a grant to one who is gone did not come back")
			}
			g.ever = append(g.ever, l)
		default:
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

// request is a random one.
func (g *ledger) request() Request {
	req := Request{
		Route: []string{"chat", "nightly", "small"}[g.pick(3)], Arrived: g.now, PromptTokens: g.pick(3) * 500,
		Sequences: g.pick(3), Stream: g.pick(4) > 0, NoDecode: g.pick(8) == 0, NoQueue: g.pick(4) == 0,
		Tenant: []string{"", "a", "b"}[g.pick(3)], Key: uint64(g.pick(5)), Moves: g.pick(16) == 0,
	}
	switch g.pick(4) {
	case 0:
		req.Into = new(Lease)
	case 1: // memory that is taken, or was
		if len(g.ever) > 0 {
			req.Into = g.ever[g.pick(len(g.ever))]
		}
	}
	return req
}

// step is one random event.
func (g *ledger) step() {
	g.sleep(time.Duration(g.pick(200)) * time.Millisecond)
	switch event := g.pick(13); {
	case event < 4:
		g.settled(g.Place(g.now, g.request()))
	case event < 6 && len(g.leases) > 0:
		l := g.leases[g.pick(len(g.leases))]
		l.FirstToken(g.now)
		l.Progress(g.now, profiles.Count{Tokens: float64(g.pick(100)), Rough: g.pick(4) == 0})
	case event < 8 && len(g.leases) > 0:
		g.settle(g.give(g.pick(len(g.leases)), float64(g.pick(300))))
	case event == 8 && len(g.ever) > 0: // once more, or first
		g.settle(g.ever[g.pick(len(g.ever))].Done(g.now, 1))
	case event == 9 && len(g.tickets) > 0:
		ticket := g.tickets[g.pick(len(g.tickets))]
		if g.pick(2) == 0 {
			g.settle(ticket.Cancel(g.now))
		} else if ticket.state == inLine {
			g.settled(ticket.Expire(g.now))
		}
	case event == 10:
		g.reconfigure(g.pick(8))
	case event == 11:
		g.tell(g.pick(6), g.pick(5))
	case event == 12 && len(g.leases) > 0:
		g.moveOn(g.pick(len(g.leases)))
	}
	if len(g.ever) > 512 {
		g.forget()
	}
}

// give ends the i-th lease.
func (g *ledger) give(i int, tokens float64) []Grant {
	l := g.leases[i]
	g.leases = append(g.leases[:i:i], g.leases[i+1:]...)
	return l.Done(g.now, tokens)
}

// moveOn is a failover: the backend of the i-th lease refused, and another one
// is tried, before or after the first place is given back.
func (g *ledger) moveOn(i int) {
	l := g.leases[i]
	l.Refused(g.now, g.pick(2) == 0)
	req := g.request()
	req.Exclude, req.NoQueue, req.Spare = []string{l.Target().Backend}, true, g.pick(2) == 0
	if g.pick(2) == 0 {
		g.settled(g.Place(g.now, req))
		g.settle(l.Done(g.now, 0))
		return
	}
	g.settle(g.give(i, 0))
	g.settled(g.Place(g.now, req))
}

// forget drops most of what has ended.
func (g *ledger) forget() {
	kept := g.ever[:0]
	for i, l := range g.ever {
		if l.phase != done || i > len(g.ever)-64 {
			kept = append(kept, l)
		}
	}
	g.ever = kept
	waiting := g.tickets[:0]
	for i, t := range g.tickets {
		if t.state == inLine || i > len(g.tickets)-64 {
			waiting = append(waiting, t)
		}
	}
	g.tickets = waiting
	held := g.leases[:0]
	for _, l := range g.leases {
		if l.phase != done {
			held = append(held, l)
		}
	}
	g.leases = held
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
	case 2: // another engine stands behind a name
		g.topo.Backends = slices.Clone(full.Backends)
		g.topo.Backends[g.pick(2)].Engine += "'"
		if len(g.topo.Backends[0].Engine) > 3 {
			g.topo.Backends[0].Engine = ""
		}
	case 3: // a target is gone
		g.topo.Routes = slices.Clone(full.Routes)
		g.topo.Routes[0].Targets = targets("y")
		g.settle(g.configure())
		g.topo = full
	case 4: // models are counted otherwise
		g.topo.Routes = slices.Clone(full.Routes)
		for i, rt := range g.topo.Routes {
			g.topo.Routes[i].Targets = slices.Clone(rt.Targets)
			for j := range rt.Targets {
				g.topo.Routes[i].Targets[j].Separate = !rt.Targets[j].Separate
			}
		}
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
		g.settle(g.health([]string{"x", "y"}[n%2], Health(n)))
	case 3:
		g.settle(g.learn("y", carrying(2+n, 30, 60)))
	case 4:
		g.settle(g.Update(g.now, EngineLoad{Backend: "x", Running: n, Waiting: n / 2, At: g.now}))
	default:
		g.settle(g.tick())
	}
}

// check compares every count with the sum of the leases it stands for.
func (g *ledger) check(t interface{ Fatalf(string, ...any) }) {
	type sums struct{ waiting, decoding, prompt, streams int }
	type own struct{ own, idle int }
	want, wantOwn, floors := map[*group]*sums{}, map[*backend]*own{}, map[*model]int{}
	for _, b := range g.backends {
		wantOwn[b] = &own{}
		for _, group := range b.groups {
			want[group] = &sums{}
		}
	}
	inQueue, moving := 0, map[*route]int{}
	for _, ticket := range g.tickets {
		if ticket.state == inLine {
			inQueue++
			if ticket.req.Moves {
				moving[ticket.route]++
			}
		}
	}
	for _, rt := range g.routes {
		if got := rt.moving(); got != moving[rt] || max(got, rt.waiting()) > rt.mostWaiting() {
			t.Fatalf("%s: %d in line, and %d who move, want %d, and at most %d of either", rt.conf.Name, rt.waiting(), got, moving[rt], rt.mostWaiting())
		}
	}
	if g.lines.waiting != inQueue {
		t.Fatalf("%d counted in line, want %d", g.lines.waiting, inQueue)
	}
	all := slices.Clone(g.ever)
	for _, grant := range g.lines.displaced { // not yet told
		if l := grant.Decision.Lease; l != nil {
			all = append(all, l)
		}
	}
	for _, l := range all {
		if want[l.group] == nil {
			want[l.group] = &sums{} // retired, or of a removed incarnation
		}
		if wantOwn[l.group.backend] == nil {
			wantOwn[l.group.backend] = &own{}
		}
		w, o := want[l.group], wantOwn[l.group.backend]
		switch l.phase {
		case waiting:
			w.waiting, w.prompt = w.waiting+l.weight, w.prompt+l.prompt
			o.own += l.weight
		case decoding:
			w.decoding += l.weight
			o.own += l.weight
			if l.stream {
				w.streams++
			}
		case holding:
			o.idle++
		}
		if l.phase != done && l.floor > 0 {
			floors[l.model]++
		}
	}
	for b, w := range wantOwn {
		if got := (own{b.own, b.idle}); got != *w {
			t.Fatalf("%s: counts %+v, the leases say %+v", b.name, got, *w)
		}
	}
	for group, w := range want {
		got := sums{waiting: group.own.waiting, decoding: group.own.decoding, prompt: group.own.prompt, streams: len(group.own.streams)}
		if got != *w {
			t.Fatalf("%v: counts %+v, the leases say %+v", group.id, got, *w)
		}
		b := group.backend
		if !slices.Contains(b.groups, group) && w.waiting+w.decoding > 0 {
			t.Fatalf("%v is not listed, and %+v run there", group.id, *w)
		}
		if _, n := group.noted.occupancy.Load(); g.byName[b.name] == b && slices.Contains(b.groups, group) && n != group.n() {
			t.Fatalf("%v: the streams read n = %d, want %d", group.id, n, group.n())
		}
		for _, m := range group.models {
			got := 0
			for _, f := range m.floors.running {
				got += f.count
			}
			if got != floors[m] {
				t.Fatalf("%v %s: %d floors, the leases have %d", group.id, m.name, got, floors[m])
			}
		}
	}
}

// end gives back everything, and checks that nothing is left.
func (g *ledger) end(t interface{ Fatalf(string, ...any) }) {
	for _, ticket := range g.tickets {
		g.settle(ticket.Cancel(g.now))
	}
	for len(g.leases) > 0 {
		g.settle(g.give(0, 0))
	}
	for _, l := range g.ever {
		l.Done(g.now, 0)
	}
	g.check(t)
	for _, b := range g.backends {
		for _, g := range b.groups {
			if b.own != 0 || g.own.waiting != 0 || g.own.decoding != 0 || b.idle != 0 || g.own.prompt != 0 || g.highestFloor() != 0 || g.own.unserved.front != nil || g.yield.wanted != 0 {
				t.Fatalf("left on %s: %+v %+v", b.name, b, g)
			}
		}
	}
	if len(g.pending) != 0 || g.lines.waiting != 0 || len(g.lines.displaced) != 0 {
		t.Fatalf("%d pending, %d in line, %d not told", len(g.pending), g.lines.waiting, len(g.lines.displaced))
	}
	for _, rt := range g.routes {
		for class := range rt.lines {
			if q := &rt.lines[class]; len(q.told.tenants)+len(q.fresh.tenants) != 0 {
				t.Fatalf("%s: tenants of empty lines", rt.conf.Name)
			}
		}
	}
}

// Sums of leases equal the counts after any events, and end at zero.
func TestLeasesAreGivenBackExactlyOnce(t *testing.T) {
	events := 0
	worlds(t, racetest.Some(100))
	rapid.Check(t, func(t *rapid.T) {
		g := newLedger(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "i") })
		for range rapid.IntRange(400, 600).Draw(t, "events") {
			g.step()
			g.check(t)
			events++
		}
		g.end(t)
	})
	if events < racetest.Some(40_000) && !testing.Short() {
		t.Errorf("only %d events", events)
	}
}

// And after a million of them.
func TestLeasesAfterAMillionEvents(t *testing.T) {
	if racetest.On || testing.Short() {
		t.Skip("make numbers runs it")
	}
	r := rand.New(rand.NewPCG(11, 12))
	g := newLedger(r.IntN)
	placed, waited := 0, uint64(0)
	for range 1_000_000 {
		before := len(g.ever)
		g.step()
		g.check(t)
		placed += max(len(g.ever)-before, 0)
	}
	waited = g.Router.lines.tickets
	g.end(t)
	t.Logf("%d leases, %d tickets, %d decisions", placed, waited, g.journal.written)
	if placed < 100_000 || waited < 10_000 {
		t.Errorf("%d leases and %d tickets in a million events: too few", placed, waited)
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
			b.Preview(now, Request{Route: "chat"})
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
