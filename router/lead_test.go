package router

import (
	"math"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// A prompt is admitted beside a stream whose lead can pay for its prefill. The
// stream has so many tokens a second after its first one, at a floor of 30 and
// with a second of grace; a prompt token costs 100 µs, taken 1.2 times.
func TestLeads(t *testing.T) {
	for _, c := range []struct {
		name   string
		tokens float64
		rough  bool
		silent time.Duration // since the last token
		prompt int
		want   Reason
	}{
		// Lead = 30/30 + 1 − 1 = 1 s; 8,300 tokens cost 0.996 s, 8,400 1.008 s.
		{"can pay", 30, false, 0, 8_300, OK},
		{"cannot pay", 30, false, 0, 8_400, ReasonProtects},
		// Lead = 60/30 + 1 − 1 = 2 s.
		{"twice as fast", 60, false, 0, 16_600, OK},
		// Lead = 9/30 + 1 − 1 = 0.3 s; while chunks may be several tokens, half the grace.
		{"slow", 9, false, 0, 4_000, ReasonProtects},
		{"slow in chunks", 9, true, 0, 4_000, OK},
		{"slow in chunks, long prompt", 9, true, 0, 4_300, ReasonProtects},
		// Two seconds later the lead is 2 s less.
		{"silent", 60, false, 2 * time.Second, 100, ReasonProtects},
		// Lead = 0/30 + 1 − 1.9 = −0.9 s: nobody waits for it any more.
		{"lost", 0, false, 900 * time.Millisecond, 8_400, OK},
		{"stuck", 30, false, 6 * time.Second, 8_400, OK},
		{"without a prompt", 30, false, 0, 0, OK},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}})
			curve := carrying(20, 30, 60)
			curve.d, curve.answer = 100e-6, 1e6 // spread over so long an answer, prompts cost no speed
			b.learn("x", curve)
			l := b.place("chat").Lease
			b.sleep(time.Second)
			l.FirstToken(b.now)
			b.sleep(time.Second)
			l.Progress(b.now, profiles.Count{Tokens: c.tokens, Rough: c.rough})
			b.sleep(c.silent)
			b.wantReason("chat", c.want, prompt(c.prompt))
			l.Done(b.now, c.tokens)
			b.wantReason("chat", OK, prompt(c.prompt))
		})
	}
}

// Where a floor is far below the speed of the engine, a stream may stand still for about
// as long as a token may take: nobody is refused while the second token is awaited.
func TestALowFloorLeavesTime(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 0.1, Grace: time.Second}})
	b.learn("x", carrying(20, 0.4, 0.5))
	l := b.place("chat").Lease
	b.sleep(time.Second)
	l.FirstToken(b.now)
	b.sleep(1200 * time.Millisecond) // its grace is over, and its second token is due after 11 s
	b.wantReason("chat", OK, prompt(100))
	b.sleep(3 * time.Second)
	b.wantReason("chat", OK, prompt(100))
}

// Who waits for its first token has nothing but its grace when it comes: so much
// may stand behind it. What stands before it does not count.
func TestLeadsOfThoseWhoWait(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}})
	curve := carrying(20, 30, 60)
	curve.d, curve.answer = 100e-6, 1e6
	b.learn("x", curve)
	b.place("chat", prompt(20_000))
	b.wantReason("chat", OK, prompt(8_300))
	b.wantReason("chat", ReasonProtects, prompt(8_400))
	b.place("chat", prompt(8_000))
	b.wantReason("chat", OK, prompt(300))
	b.wantReason("chat", ReasonProtects, prompt(400))
}

// A stream whose first token came since the last look has its grace to lose.
func TestAFreshStreamHasALead(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}})
	curve := carrying(20, 30, 60)
	curve.d, curve.answer = 100e-6, 1e6
	b.learn("x", curve)
	l := b.place("chat").Lease
	b.tick()
	b.sleep(time.Millisecond)
	l.FirstToken(b.now)
	b.wantReason("chat", ReasonProtects, prompt(8_400))
}

// The cost of a prompt token is what first tokens took, through the origin: of a
// batch, what all of it took; and one that is far off says little.
func TestPrefillCost(t *testing.T) {
	for _, c := range []struct {
		name string
		want float64 // µs
		see  func(b *bench, first func(took time.Duration, leases ...*Lease), place func(tokens int) *Lease)
	}{
		{"nothing", 400, func(*bench, func(time.Duration, ...*Lease), func(int) *Lease) {}},
		// 1200 µs each, of weight 4: (400 + 4·1200)/5.
		{"alone", 1040, func(_ *bench, first func(time.Duration, ...*Lease), place func(int) *Lease) {
			first(720*time.Millisecond, place(600))
		}},
		{"at once", 1040, func(_ *bench, first func(time.Duration, ...*Lease), place func(int) *Lease) {
			first(720*time.Millisecond, place(450), place(100), place(50))
		}},
		// 240 ms for the first, and then for the one behind it: (9·400 + 4·1200 + 4·1200)/17.
		{"one behind the other", 776.5, func(_ *bench, first func(time.Duration, ...*Lease), place func(int) *Lease) {
			front, back := place(200), place(200)
			first(240*time.Millisecond, front)
			first(240*time.Millisecond, back)
		}},
		// Taken for 4·400 µs each and 250 ms, 2016.7 µs: (400 + 4·2016.7)/5.
		{"an hour", 1693.3, func(_ *bench, first func(time.Duration, ...*Lease), place func(int) *Lease) {
			first(time.Hour, place(600))
		}},
		// 100 µs each, which an hour later still count as a prompt of 300: (400 + 100)/2.
		{"an hour ago", 250, func(b *bench, first func(time.Duration, ...*Lease), place func(int) *Lease) {
			first(480*time.Millisecond, place(4800))
			b.sleep(time.Hour)
			first(time.Millisecond, place(10))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, []string{"x"}, Route{Name: "chat"})
			c.see(b, func(took time.Duration, leases ...*Lease) {
				b.sleep(took)
				for _, l := range leases {
					l.FirstToken(b.now)
				}
				for _, l := range leases {
					l.Done(b.now, 1)
				}
			}, func(tokens int) *Lease { return b.place("chat", prompt(tokens)).Lease })
			if got := b.backends[0].groups[0].price.first * 1e6; math.Abs(got-c.want) > 0.1 {
				t.Errorf("a prompt token costs %.2f µs, want %.2f", got, c.want)
			}
		})
	}
}

// Fifty tokens that come at once were decoded before, and their time is none of the
// prompt's.
func TestPrefillCostBehindALongFirstChunk(t *testing.T) {
	for tokens, want := range map[float64]float64{1: 1040, 4: 1040, 5: 400, 50: 400} { // µs, as above
		b := newBench(t, []string{"x"}, Route{Name: "chat"})
		l := b.place("chat", prompt(600)).Lease
		b.sleep(720 * time.Millisecond)
		l.FirstTokens(b.now, tokens)
		l.Done(b.now, 1)
		if got := b.backends[0].groups[0].price.first * 1e6; math.Abs(got-want) > 0.1 {
			t.Errorf("a prompt token costs %.2f µs behind %v tokens, want %.2f", got, tokens, want)
		}
	}
}

// Who may have several tokens in a chunk has half its grace at least, and loses what
// prompts beside it take of that.
func TestTheLeadOfRoughCounts(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}})
	l := b.place("chat").Lease
	l.FirstToken(b.now)
	g := b.backends[0].groups[0]
	lead := func() time.Duration { return l.lead(b.now, progress{rough: true, last: l.first}) }
	b.sleep(2 * time.Second)
	if got := lead(); got != 500*time.Millisecond {
		t.Errorf("a lead of %v, want half a second", got)
	}
	beside := b.place("chat", prompt(2000)).Lease
	b.sleep(200 * time.Millisecond)
	beside.FirstToken(b.now)
	want := 500*time.Millisecond - seconds(2000*g.price.token)
	if got := lead(); (got - want).Abs() > time.Microsecond {
		t.Errorf("a lead of %v beside a prompt of 2,000, want %v", got, want)
	}
}

// The streams of other replicas are protected like the own: their least lead pays
// for a prompt, which counts 1.3 times since somebody else may be placing one, too.
// One that does not tell is protected by speed alone.
func TestLeadsOfOtherReplicas(t *testing.T) {
	for _, c := range []struct {
		name   string
		far    Load
		prompt int
		want   Reason
	}{
		// 1.2 · 100 µs · 1.3 · 6,400 tokens = 0.998 s.
		{"can pay", Load{Decoding: 1, Leads: Leads{Streams: 1, Least: time.Second}}, 6_400, OK},
		{"cannot pay", Load{Decoding: 1, Leads: Leads{Streams: 1, Least: time.Second}}, 6_500, ReasonProtects},
		{"no lead at all", Load{Decoding: 1, Leads: Leads{Streams: 1}}, 100, ReasonProtects},
		{"does not tell", Load{Decoding: 1}, 50_000, OK},
		// 1.2 · 100 µs · (2,000 + 1.3 · 4,800) = 0.989 s.
		{"behind their prompt", Load{Decoding: 1, Waiting: 1, PromptTokens: 2_000, Leads: Leads{Streams: 1, Least: time.Second}}, 4_800, OK},
		{"too much behind it", Load{Decoding: 1, Waiting: 1, PromptTokens: 2_000, Leads: Leads{Streams: 1, Least: time.Second}}, 4_900, ReasonProtects},
		// Who waits there with a floor has a grace of a second.
		{"behind one that waits", Load{Waiting: 1, PromptTokens: 2_000, Floor: 30}, 4_800, OK},
		{"too much for one that waits", Load{Waiting: 1, PromptTokens: 2_000, Floor: 30}, 4_900, ReasonProtects},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}})
			curve := carrying(20, 30, 60)
			curve.d, curve.answer = 100e-6, 1e6
			b.learn("x", curve)
			b.Update(b.now, RemoteLoad{Replicas: 2, ByBackend: map[string]Load{"x": c.far}})
			b.wantReason("chat", c.want, prompt(c.prompt))
			b.Update(b.now, RemoteLoad{Replicas: 1})
			b.wantReason("chat", OK, prompt(c.prompt))
		})
	}
}

// What a replica tells is what another one reckons with: counts, the least lead and the
// level; of models that are counted by themselves each its own.
func TestOwn(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}})
	curve := carrying(20, 30, 60)
	b.learn("x", curve)
	if own := b.Own(b.now); len(own) != 0 {
		t.Errorf("an idle replica tells %+v", own)
	}
	first := b.place("chat", prompt(1200)).Lease
	b.sleep(360 * time.Millisecond)
	first.FirstToken(b.now)
	b.place("chat", prompt(500))
	b.tick()
	b.sleep(500 * time.Millisecond)
	first.Progress(b.now, profiles.Count{Tokens: 21})
	own := b.Own(b.now)["x"]
	if own.Waiting != 1 || own.Decoding != 1 || own.PromptTokens != 500 || own.Floor != 30 {
		t.Errorf("tells %+v, want one that waits with 500 tokens, one that decodes, a floor of 30", own)
	}
	// 21/30 + 1 − 0.5 = 1.2 s.
	if want := (Leads{Streams: 1, Least: 1200 * time.Millisecond}); own.Leads.Streams != 1 || (own.Leads.Least-want.Least).Abs() > time.Microsecond {
		t.Errorf("tells leads %+v, want %+v", own.Leads, want)
	}
	if own.Level.Tokens != 21 || own.Level.Seconds != 0.5 {
		t.Errorf("tells a level of %+v, want 21 tokens in half a second", own.Level)
	}
}

// That a dear prompt was placed is news for the others; a cheap one is none, and
// nothing is while there are no others.
func TestDearPromptsAreNews(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat"})
	place := func(tokens int, want uint64) {
		t.Helper()
		before := b.News()
		b.place("chat", prompt(tokens))
		if got := b.News() - before; got != want {
			t.Errorf("a prompt of %d tokens is news %d times, want %d", tokens, got, want)
		}
	}
	place(300, 0)
	b.Update(b.now, RemoteLoad{Replicas: 2})
	place(200, 0)
	place(300, 1) // 120 ms
}

// A prompt that the leads of those who stream cannot pay for comes back as told:
// it waits, and its tenant's newcomers take the places that are there. They would
// not make it wait less by waiting too.
func TestWhoWaitsForLeadsHoldsUpNobody(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}, OnInfeasible: queue(5 * time.Second), MaxWaiting: 5})
	curve := carrying(20, 30, 60)
	curve.d, curve.answer = 100e-6, 1e6
	b.learn("x", curve)
	l := b.place("chat").Lease
	b.sleep(time.Second)
	l.FirstToken(b.now)
	b.sleep(time.Second)
	l.Progress(b.now, profiles.Count{Tokens: 30})
	b.routes[0].promises.make(b.now, promise{at: b.now, since: b.now.Add(-time.Minute)}, 1)
	dear := b.stand("chat", prompt(60_000), waiter("dear"), func(r *Request) { r.Key = 1 })
	if !dear.back() {
		t.Fatal("it is not recognised")
	}
	d := b.place("chat", waiter("newcomer"), prompt(20))
	if d.Lease == nil {
		b.wantGrants(b.tick(), "newcomer")
	}
	if leads := b.routes[0].lines[Interactive].told.first(); leads != dear {
		t.Error("the prompt that leads cannot pay for is not in line")
	}
}
