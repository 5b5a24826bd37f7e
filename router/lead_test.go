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

// The cost of a prompt token is what first tokens took, through the origin; who
// waited for others says nothing, and one that is far off little.
func TestPrefillCost(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat"})
	g := b.backends[0].groups[0]
	first := func(tokens int, took time.Duration) {
		l := b.place("chat", prompt(tokens)).Lease
		b.sleep(took)
		l.FirstToken(b.now)
		l.Done(b.now, 1)
	}
	near := func(want float64) {
		t.Helper()
		if got := g.firstCost * 1e6; math.Abs(got-want) > 0.1 {
			t.Errorf("a prompt token costs %.2f µs, want %.2f", got, want)
		}
	}
	near(100)
	first(1200, 360*time.Millisecond) // 300 µs each, of weight 4: (100 + 4·300)/5
	near(260)
	b.sleep(10 * time.Minute) // forgotten but for what is to come
	first(1200, 360*time.Millisecond)
	near(260)
	behind := b.place("chat", prompt(3000)).Lease
	first(1200, 10*time.Second) // 3,000 tokens before it
	near(260)
	behind.Done(b.now, 0)
}
