package router

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

func id(s string) func(*Request) { return func(r *Request) { r.ID = s } }

// outcomes lists what is kept, the latest first.
func (b *bench) outcomes(limit int) []string {
	var out []string
	for _, rec := range b.Decisions(limit) {
		out = append(out, rec.ID+" "+rec.Outcome.String())
	}
	return out
}

func (b *bench) wantOutcomes(want ...string) {
	b.tb.Helper()
	if got := b.outcomes(len(want)); !slices.Equal(got, want) {
		b.tb.Errorf("decisions %q, want %q", got, want)
	}
}

// Every way that a request may take is kept under its id.
func TestDecisionsTellEveryOutcome(t *testing.T) {
	chat := Route{Name: "chat", SLO: SLO{MinTPS: 30}, Targets: targets("x"), MaxWaiting: 1, OnInfeasible: []Step{
		{Kind: Queue, Wait: time.Second}, {Kind: Spill, Route: "small"}, {Kind: Shed},
	}}
	small := Route{Name: "small", SLO: SLO{MinTPS: 10}, Targets: targets("y")}
	eager := Route{Name: "eager", SLO: SLO{MinTPS: 30}, Targets: targets("x"), OnInfeasible: []Step{{Kind: BestEffort}}}
	greedy := Route{Name: "greedy", SLO: SLO{MinTPS: 99}, Targets: targets("y")}
	b := newBench(t, []string{"x", "y"}, chat, small, eager, greedy)
	b.learn("x", carrying(2, 30, 40))
	b.learn("y", carrying(2, 10, 40))

	b.place("greedy", id("g1"))
	b.sleep(probeEvery)
	probe := b.place("greedy", id("g2"), prompt(7)).Lease
	b.wantOutcomes("g2 probe", "g1 shed")
	probe.Done(b.now, 1)

	first := b.place("chat", id("a")).Lease
	b.place("chat", id("b"))
	waiting := b.stand("chat", id("c"))
	b.sleep(250 * time.Millisecond)
	b.place("chat", id("d"))
	b.place("eager", id("e"))
	b.wantOutcomes("e best_effort", "d spilled", "c queued", "b placed", "a placed")
	c, d := b.Decisions(3)[2], b.Decisions(2)[1]
	if c.MayWait != time.Second || c.Waited != 0 || c.Chosen != (Target{}) {
		t.Errorf("queued: %+v", c)
	}
	if d.Spilled != "small" || d.Chosen.Backend != "y" || d.Route != "chat" || d.Floor != 30 || !d.Time.Equal(b.now) {
		t.Errorf("spilled: %+v", d)
	}
	// Why it did not stay, and why it went there.
	if len(d.Candidates) != 2 || d.Candidates[0].Reason != ReasonOwnFloor || d.Candidates[0].M != 2 || !d.Candidates[1].Feasible || d.Candidates[1].Floor != 10 {
		t.Errorf("spilled: candidates %+v", d.Candidates)
	}

	b.sleep(250 * time.Millisecond)
	for _, l := range []*Lease{first, b.backends[0].groups[0].own.unserved.back} { // a, and the one without a floor
		l.Done(b.now, 10)
	}
	if waiting.state != granted {
		t.Fatal("c still waits")
	}
	b.wantOutcomes("c granted")
	if got := b.Decisions(1)[0]; got.Waited != 500*time.Millisecond || got.Chosen.Backend != "x" {
		t.Errorf("granted: %+v", got)
	}
	b.health("x", Down)
	b.place("chat", id("f"), noQueue)
	b.place("chat", id("g"))
	b.place("greedy", id("h"))
	b.wantOutcomes("h shed", "g no_backend", "f spilled")
	for _, rec := range b.Decisions(2) {
		if rec.Shed == NoBackend && rec.RetryAfter <= 0 || rec.Chosen != (Target{}) {
			t.Errorf("refused: %+v", rec)
		}
	}
}

// What is kept is what the decision saw, not what came of it.
func TestRecordedCandidatesAreThoseOfTheDecision(t *testing.T) {
	b := newBench(t, []string{"x", "y"})
	b.learn("x", carrying(5, 30, 60))
	for range 4 {
		b.force(Request{Route: "chat"}, Target{Backend: "x", Model: "m"})
	}
	d := b.place("chat", id("r"))
	rec := b.Decisions(1)[0]
	i := slices.IndexFunc(rec.Candidates, func(c Candidate) bool { return c.Target == d.Lease.Target() })
	want, got := d.Chosen, rec.Candidates[i]
	if math.IsNaN(want.TPS) && math.IsNaN(got.TPS) {
		want.TPS, got.TPS = 0, 0
	}
	if got != want || rec.Chosen != d.Lease.Target() {
		t.Errorf("kept %+v, decided on %+v", got, want)
	}
	if x := rec.Candidates[0]; x.M != 4 || x.TPS != carrying(5, 30, 60).TPS(5) || rec.Policy != "headroom" {
		t.Errorf("x: %+v", x)
	}
	if other := b.Decisions(2)[1]; other.Outcome != OutcomePlaced {
		t.Errorf("assigned: %+v", other)
	}
}

func TestDecisionsAreBounded(t *testing.T) {
	var names []string
	for i := range 3 * keptCandidates {
		names = append(names, fmt.Sprint("gpu-", i))
	}
	b := newBench(t, names, Route{Name: "chat", Prefer: Order}, Route{Name: "few", Targets: targets("gpu-1")})
	for _, name := range names[:len(names)-1] {
		b.health(name, Down)
	}
	last := names[len(names)-1]
	b.place("chat")
	rec := b.Decisions(1)[0]
	if len(rec.Candidates) != keptCandidates || rec.LeftOut != len(names)-keptCandidates {
		t.Errorf("%d candidates and %d left out, want %d and %d", len(rec.Candidates), rec.LeftOut, keptCandidates, len(names)-keptCandidates)
	}
	if c := rec.Candidates[keptCandidates-1]; c.Target.Backend != last || rec.Chosen.Backend != last {
		t.Errorf("the last one kept is %s, want the chosen %s", c.Target.Backend, last)
	}
	if all := b.seen(Request{Route: "chat"}); len(all) != len(names) {
		t.Errorf("%d candidates explained, want all %d", len(all), len(names))
	}
	for i := range keptRecords + 5 {
		b.place("few", id(fmt.Sprint(i)))
	}
	all := b.Decisions(1 << 30)
	if len(all) != keptRecords || all[0].ID != fmt.Sprint(keptRecords+4) || all[keptRecords-1].ID != "5" {
		t.Errorf("%d kept, from %q to %q", len(all), all[0].ID, all[len(all)-1].ID)
	}
	if got := b.Decisions(0); len(got) != 0 {
		t.Errorf("%d decisions, asked for none", len(got))
	}
}

// Each request reads the clock before it waits for the lock.
func TestDecisionsAreSortedByTime(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat"})
	start := b.now
	for i, name := range []string{"first", "third", "second"} {
		b.now = start.Add(time.Duration([]int{0, 2, 1}[i]) * time.Millisecond)
		b.place("chat", id(name))
	}
	b.wantOutcomes("third placed", "second placed", "first placed")
}

// Of those placed at once a second has so many; what is unusual is all kept.
func TestPlacedAtOnceAreSampled(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat"}, Route{Name: "strict", SLO: SLO{MinTPS: 1e6}})
	b.learn("x", carrying(5, 30, 60))
	for range 3 {
		for i := range placedEach + 50 {
			b.place("chat", id("chat"))
			if i%50 == 0 {
				b.place("strict", id("strict"))
			}
		}
		b.sleep(time.Second)
	}
	count := map[string]int{}
	for _, rec := range b.Decisions(keptRecords) {
		count[rec.ID]++
	}
	if count["chat"] != 3*placedEach || count["strict"] != 9 {
		t.Errorf("kept %v, want %d and 9", count, 3*placedEach)
	}
}

// A preview is what Place does next, and changes nothing.
func TestPreview(t *testing.T) {
	b, leases := full(t)
	b.fill("chat", 5) // nobody: it is full
	preview := func(edit ...func(*Request)) Record {
		t.Helper()
		req := Request{Route: "chat", Arrived: b.now, Stream: true}
		for _, e := range edit {
			e(&req)
		}
		before := b.seed
		rec, ok := b.Preview(b.now, req)
		if again, _ := b.Preview(b.now, req); !ok || again.Outcome != rec.Outcome || again.RetryAfter != rec.RetryAfter {
			t.Fatalf("asked twice: %+v, then %+v", rec, again)
		}
		if b.seed != before {
			t.Error("the preview took from the random source")
		}
		return rec
	}
	if got := preview(); got.Outcome != OutcomeQueued || got.MayWait != 2*time.Second {
		t.Errorf("got %+v, want two seconds in line", got)
	}
	if got := b.Routes(b.now)[0].Waiting; got != 0 {
		t.Errorf("%d wait after a preview", got)
	}
	got := preview(noQueue)
	if got.Outcome != OutcomeShed || got.Shed != ShedFloor || got.RetryAfter < time.Second || got.Best <= 0 {
		t.Errorf("got %+v, want a refusal that says when to come back", got)
	}
	for range 5 { // those sent away make others wait longer, a preview does not
		b.place("chat", noQueue)
	}
	if later := preview(noQueue); later.RetryAfter < got.RetryAfter {
		t.Errorf("after five refusals %v, before them %v", later.RetryAfter, got.RetryAfter)
	}
	if got := preview(wish(99)); got.Outcome != OutcomeShed || got.Shed != ShedUnattainable || got.RetryAfter != 0 {
		t.Errorf("got %+v, want unattainable", got)
	}
	b.sleep(time.Hour) // no preview starts the minute to the first probe
	leases[0].Done(b.now, 10)
	if got := preview(wish(99)); got.Outcome != OutcomeShed {
		t.Errorf("got %+v, want a refusal", got)
	}
	if got := preview(); got.Outcome != OutcomePlaced || got.Chosen.Backend != "x" || len(got.Candidates) != 1 {
		t.Errorf("got %+v, want a place on x", got)
	}
	b.wantM(2, "after the previews")
	if _, ok := b.Preview(b.now, Request{Route: "nowhere"}); ok {
		t.Error("a route that does not exist was explained")
	}
	if n := len(b.Decisions(keptRecords)); n != 3+1+5 {
		t.Errorf("%d decisions kept, want those of Place alone", n)
	}
}
