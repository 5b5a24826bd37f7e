package prefix

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// That a cache keeps prefixes does not say how many. What is older than all that was ever
// found there is likely to be there, and is not sure to be.
func TestACacheIsNotTakenForLargerThanWasSeen(t *testing.T) {
	x := New()
	x.Configure(0, []router.Target{target})
	x.Believe(func(router.Target) bool { return true })
	system, question := text(1, 8000), 1
	ask := func(c *Chain, tokens, cached int) {
		ttft := 20*time.Millisecond + time.Duration(tokens-cached)*100*time.Microsecond
		v := x.Send(start, target, c, tokens)
		v.First(ttft, 0)
		v.Settle(Outcome{PromptTokens: tokens, CachedTokens: cached, Took: ttft, TTFT: ttft})
	}
	next := func() *Chain {
		question++
		return chainOf(system, text(question, 800))
	}
	others := func(tokens int) {
		for ; tokens > 0; tokens -= 30_000 {
			question++
			ask(chainOf(text(question, 800)), 30_000, 0)
		}
	}
	want := func(when string, least, most int) {
		t.Helper()
		w := x.Look(start, next(), 2200, []router.Target{target}, nil)
		if len(w) != 1 || w[0].Likely < 1600 || w[0].Sure < least || w[0].Sure > most {
			t.Errorf("%s: %+v, want at least 1600 likely and %d to %d sure of 2,000 that were sent", when, w, least, most)
		}
	}
	ask(next(), 2200, 0)
	ask(next(), 2200, 2000)
	others(90_000)
	want("after 90,000 tokens of others", 1600, 2000)
	others(90_000)
	want("after 180,000, where nothing as old was found", 0, 0)
	ask(next(), 2200, 2000)
	others(180_000)
	want("after 180,000, where as old was found", 1700, 2000)
}

// An age that was not seen takes what those that were allow: the younger from above,
// the older from below.
func TestRatesTakeWhatNeighboursAllow(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var r rates
		for range rnd.IntN(12) {
			r.see(rnd.IntN(ages), rnd.Float64(), []float64{0.25, 0.5, 1, 8, 40}[rnd.IntN(5)])
		}
		for age := range ages {
			first := rnd.Float64()
			least, most := 0.0, 1.0
			for i, o := range r.of {
				switch {
				case o.looked < 0.5:
				case i < age:
					most = min(most, (o.found+first)/(o.looked+1))
				case i > age:
					least = max(least, o.found/(o.looked+1))
				}
			}
			want := (r.of[age].found + max(min(first, most), least)) / (r.of[age].looked + 1)
			if got := r.at(age, first); got != want {
				t.Fatalf("seed %d: the rate at age %d: got %v, want %v", seed, age, got, want)
			}
		}
	}
}
