package router

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// report pushes what the engine of backend x says at this moment, a second
// after the report before.
func (b *bench) report(running, waiting int) []Grant {
	b.sleep(time.Second)
	return b.Update(b.now, EngineLoad{Backend: "x", Running: running, Waiting: waiting, At: b.now})
}

// reports pushes the same so many times.
func (b *bench) reports(times, running, waiting int) {
	for range times {
		b.report(running, waiting)
	}
}

func (b *bench) wantLoad(m, n int) {
	b.tb.Helper()
	if l := b.load(0); l.M != m || l.N != n {
		b.tb.Errorf("m = %d, n = %d, want %d and %d", l.M, l.N, m, n)
	}
	if _, n := b.backends[0].groups[0].noted.occupancy.Load(); n != b.load(0).N {
		b.tb.Errorf("the streams read n = %d, the router says %d", n, b.load(0).N)
	}
}

// decode starts so many streams that have their first token.
func (b *bench) decodes(count int) []*Lease {
	var leases []*Lease
	for range count {
		l := b.force(Request{Route: "chat", Stream: true}, Target{Backend: "x", Model: "m"}).Lease
		l.FirstToken(b.now)
		leases = append(leases, l)
	}
	return leases
}

func TestForeignLoadCounts(t *testing.T) {
	b := newBench(t, []string{"x"})
	own := b.decodes(5)
	b.report(17, 3) // what came before it, is not known: none of it is believed
	b.wantLoad(5, 5)
	b.report(17, 3)
	b.wantLoad(20, 17)
	b.report(17, 3)
	b.wantLoad(20, 17)
	for _, l := range own {
		l.Done(b.now, 10)
	}
	b.wantLoad(15, 12) // the own ones leave at once, the others stay
	b.report(12, 3)
	b.wantLoad(15, 12)
	b.report(0, 0)
	b.wantLoad(15, 12)
	b.report(0, 0)
	b.wantLoad(0, 0)
}

// One odd report moves nothing.
func TestOneReportDoesNotFlap(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.decodes(5)
	b.reports(3, 15, 0)
	b.wantLoad(15, 15)
	for _, odd := range []int{200, 0, 5} {
		b.report(odd, 0)
		b.wantLoad(15, 15)
		b.report(15, 0)
		b.wantLoad(15, 15)
	}
}

// Own sequences in an engine's queue are not running: what runs there is the
// others'.
func TestForeignLoadOfAFullEngine(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.decodes(4)
	for range 6 {
		b.force(Request{Route: "chat", Stream: true}, Target{Backend: "x", Model: "m"})
	}
	b.reports(2, 24, 6)
	b.wantLoad(30, 24)
	for range 2 {
		b.report(24, 16) // ten more wait
	}
	b.wantLoad(40, 24)
}

// Whatever comes and goes of our own between the report's instant and ours, it
// is never taken for foreign; and foreign sequences whose number holds are
// found exactly once our own hold for a second.
func TestOwnChurnIsNeverForeign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(nil, []string{"x"})
		others := rapid.IntRange(0, 30).Draw(t, "others")
		var own []*Lease
		was := 0 // own sequences as the engine's last step saw them
		for range rapid.IntRange(1, 40).Draw(t, "seconds") {
			for range rapid.IntRange(0, 6).Draw(t, "changes") {
				if len(own) > 0 && rapid.Bool().Draw(t, "ends") {
					own[0].Done(b.now, 1)
					own = own[1:]
				} else {
					own = append(own, b.decodes(1)...)
				}
				if rapid.Bool().Draw(t, "steps") {
					was = len(own)
				}
			}
			b.report(others+was, 0)
			was = len(own)
			if got := b.load(0).M - len(own); got < 0 || got > others {
				t.Fatalf("%d foreign sequences, there are %d", got, others)
			}
		}
		b.reports(3, others+len(own), 0)
		if l := b.load(0); l.M != others+len(own) || l.N != l.M {
			t.Fatalf("m = %d and n = %d at rest, want %d", l.M, l.N, others+len(own))
		}
	})
}

// What is not to be believed leaves the own count, and so does a report that
// has grown old, whatever entry of the router comes next.
func TestWithoutAReportTheOwnCountStands(t *testing.T) {
	heard := func() *bench {
		b := newBench(t, []string{"x"})
		b.decodes(5)
		b.reports(2, 20, 2)
		b.wantLoad(22, 20)
		return b
	}
	for name, e := range map[string]EngineLoad{
		"negative":       {Backend: "x", Running: -1},
		"much too large": {Backend: "x", Running: 2_000_000},
		"waiting":        {Backend: "x", Waiting: math.MaxInt},
		"unknown":        {Backend: "y", Running: 3},
	} {
		b := heard()
		for range 3 {
			b.sleep(time.Second)
			e.At = b.now
			b.Update(b.now, e)
			b.wantLoad(22, 20) // the last good one holds
		}
		b.sleep(EngineLoadLife)
		e.At = b.now
		b.Update(b.now, e)
		b.wantLoad(5, 5)
		if b.load(0).Engine != nil {
			t.Errorf("%s: there is a report in force", name)
		}
	}
	for name, enter := range map[string]func(*bench){
		"tick":    func(b *bench) { b.tick() },
		"place":   func(b *bench) { b.place("chat", noDecode) },
		"explain": func(b *bench) { b.reasons("chat") },
		"too old": func(b *bench) {
			b.Update(b.now, EngineLoad{Backend: "x", Running: 30, At: b.now.Add(-6 * time.Second)})
		},
		"the same again": func(b *bench) {
			b.Update(b.now, EngineLoad{Backend: "x", Running: 20, Waiting: 2, At: b.now.Add(-EngineLoadLife - 1)})
		},
	} {
		b := heard()
		b.sleep(EngineLoadLife)
		b.tick()
		b.wantLoad(22, 20)
		b.sleep(1)
		enter(b)
		if l := b.load(0); l.M != 5 || l.N != 5 || l.Engine != nil {
			t.Errorf("%s: m = %d, n = %d, report %+v; want 5 and 5 without one", name, l.M, l.N, l.Engine)
		}
	}
}

// A report that stands since before the last says nothing new, however often
// it is pushed.
func TestTheSameReportIsHeardOnce(t *testing.T) {
	b := newBench(t, []string{"x"})
	own := b.decodes(10)
	b.report(10, 0)
	at := b.now
	for _, l := range own {
		l.Done(b.now, 1)
	}
	for range 4 { // all aborted at once: the engine's page keeps its figures
		b.sleep(time.Second)
		b.Update(b.now, EngineLoad{Backend: "x", Running: 10, At: at})
		b.wantLoad(0, 0)
	}
}

// Foreign load is no reason to leave a backend unused of which nothing is
// known: the first stream teaches.
func TestSlowStartBesideForeignLoad(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}})
	b.reports(2, 20, 0)
	b.wantReason("chat", OK)
	first := b.fill("chat", 5)
	if len(first) != 1 {
		t.Fatalf("%d streams beside 20 foreign ones on an unknown backend, want 1 to begin with", len(first))
	}
	for range 3 { // 60 tokens/s are seen with 21 streams
		b.run(first, 60, time.Second)
		b.Update(b.now, EngineLoad{Backend: "x", Running: 21, At: b.now})
	}
	if more := b.fill("chat", 10); len(more) < 5 {
		t.Errorf("%d more after the first ran at twice the floor, want at least 5", len(more))
	}
}

// max_concurrency bounds what Pacer sends.
func TestForeignLoadDoesNotUseUpTheCap(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "free"})
	b.topo.Backends[0].MaxConcurrency = 10
	b.configure()
	b.reports(2, 50, 0)
	b.wantFill("free", 10, "of at most 10 requests beside 50 foreign sequences")
	b.wantReason("free", ReasonCap)
}

// A floor is kept for all that run, the foreign ones counted: they take places
// and give them back.
func TestForeignLoadTakesPlaces(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: queue(30 * time.Second)})
	b.learn("x", carrying(38, 30, 51))
	b.reports(2, 20, 0)
	b.wantFill("chat", 18, "streams beside 20 foreign ones on a backend that carries 38")
	b.place("chat", waiter("w"))
	b.report(38, 0) // 18 of them are ours, and wait
	if grants := b.report(28, 0); len(grants) != 0 {
		t.Errorf("%d were let go at the first report of less", len(grants))
	}
	if grants := b.report(28, 0); len(grants) != 1 {
		t.Errorf("%d were let go when ten foreign sequences had left, want 1", len(grants))
	}
}

// What other replicas run is not foreign, and is told as own by nobody else.
func TestForeignLoadBesideReplicas(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.decodes(5)
	b.Update(b.now, RemoteLoad{Replicas: 2, ByBackend: map[string]Load{"x": {Waiting: 1, Decoding: 6}}})
	b.reports(2, 20, 0)
	b.wantLoad(20, 5+6+8)
	if l := b.load(0); l.Waiting != 0 || l.Decoding != 5 || l.ForeignDecoding+l.ForeignWaiting != 8 {
		t.Errorf("this replica says %+v; want 5 decoding and 8 foreign ones", l)
	}
	// Without word of the others what they told last holds, and the report goes on.
	b.Update(b.now, RemoteLoad{Replicas: 2, Lost: true})
	b.reports(3, 20, 0)
	b.wantLoad(20, 5+6+8)
}

// Requests that do not decode are in the engine's figures and not in ours.
func TestEmbeddingsAreNotForeign(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat"})
	for range 3 {
		if b.place("chat", noDecode).Lease == nil {
			t.Fatal("not placed")
		}
	}
	b.reports(3, 3, 0)
	b.wantLoad(0, 0)
}

// Budget: under 1 µs and no allocation with 16 backends: once a second each.
func BenchmarkEngineLoad(b *testing.B) {
	w := loaded(b, 16)
	e := EngineLoad{Backend: "gpu-3", Running: 20, Waiting: 1}
	b.ReportAllocs()
	for b.Loop() {
		w.now = w.now.Add(time.Millisecond)
		e.At = w.now
		w.Update(w.now, e)
	}
}

// Requests that come and go before their first token are our own too.
func TestShortOwnRequestsAreNotForeign(t *testing.T) {
	b := newBench(t, []string{"x"})
	for range 4 {
		b.force(Request{Route: "chat", Stream: true}, Target{Backend: "x", Model: "m"}).Lease.Done(b.now, 0)
		b.report(1, 0)
		b.wantLoad(0, 0)
	}
}

// When own sequences that wait take the place of foreign ones, what decodes
// falls with what runs.
func TestForeignLoadThatGivesWay(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.reports(2, 10, 0)
	b.wantLoad(10, 10)
	for range 5 {
		b.force(Request{Route: "chat", Stream: true}, Target{Backend: "x", Model: "m"})
	}
	b.reports(3, 10, 0)
	b.wantLoad(10, 5)
}

// Whatever is reported, what decodes is a part of what runs, and own sequences
// always count.
func TestForeignLoadIsConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(nil, []string{"x"})
		var own []*Lease
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0:
				own = append(own, b.force(Request{Route: "chat", Stream: true}, Target{Backend: "x", Model: "m"}).Lease)
			case 1:
				if len(own) > 0 {
					own[0].FirstToken(b.now)
				}
			case 2:
				if len(own) > 0 {
					own[0].Done(b.now, 1)
					own = own[1:]
				}
			case 3:
				b.report(rapid.IntRange(-1, 20).Draw(t, "running"), rapid.IntRange(-1, 20).Draw(t, "waiting"))
			}
			l := b.load(0)
			if l.N > l.M || l.M < len(own) || l.N < l.Decoding || l.ForeignWaiting < 0 || l.ForeignDecoding < 0 ||
				l.M != len(own)+l.ForeignWaiting+l.ForeignDecoding || l.N != l.Decoding+l.ForeignDecoding {
				t.Fatalf("%d own, and %+v", len(own), l)
			}
		}
	})
}
