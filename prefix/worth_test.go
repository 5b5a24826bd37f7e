package prefix

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// A cache whose tokens cost nothing, as far as anybody can tell, is counted on for all of a
// long prompt; one whose tokens cost two fifths of their prefill is not.
func TestWhatACacheSavesIsNotTakenForLess(t *testing.T) {
	for seed := range uint64(20) {
		for _, c := range []struct {
			cached      float64 // seconds of a token
			least, most float64
		}{{0, 1, 1}, {100e-6, 0.5, 0.7}} {
			r := rand.New(rand.NewPCG(seed, 1))
			var w worth
			for i := range 100 {
				computed, there := 100+400*r.Float64(), 1000+15_000*r.Float64()
				if i%10 == 0 {
					computed, there = computed+there, 0
				}
				w.see(computed, there, (0.03+250e-6*computed+c.cached*there)*(1+0.1*r.NormFloat64()), 0)
			}
			share, least, ok := w.share()
			if !ok || share < c.least || share > c.most || least < min(c.least, 0.4) || c.least == 1 && least != 1 {
				t.Errorf("seed %d: tokens at %v s each: %v of them cost nothing, %v surely (%v); want %v to %v", seed, c.cached, share, least, ok, c.least, c.most)
			}
		}
	}
}

// Where all prompts have nearly as much cached, those with a little more may have waited for
// longer by chance. That charges no token of the cache: the first token of a prompt would
// have come before it otherwise.
func TestPromptsThatShareAsMuchChargeNoCache(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		var w worth
		for range 100 {
			computed, more := 50+600*r.Float64(), 800*r.Float64()
			w.see(computed, 16_000+more, (0.03+250e-6*computed)*(1+0.1*r.NormFloat64())+45e-6*more, 0)
		}
		if f, _ := w.fit(0); f.base >= 0 {
			t.Fatalf("seed %d: the base is %v s: nothing to show", seed, f.base)
		}
		share, least, ok := w.share()
		if !ok || share < 0.95 || least < 0.95 {
			t.Errorf("seed %d: %v of 16,000 cached tokens cost nothing, %v surely (%v); want 0.95", seed, share, least, ok)
		}
	}
}

// Who tells of more than was ever sent there is not believed in what is accounted either,
// before first tokens say what its cache is worth: else the curve learns prompts for
// nothing.
func TestALieIsNotAccounted(t *testing.T) {
	for _, c := range []struct {
		name string
		told int // of the first prompt, which nobody had sent
		want func(int) bool
	}{
		{"a lie", 2000, func(n int) bool { return n == 0 }},
		{"the truth", 0, func(n int) bool { return n > 1800 }},
	} {
		x := New()
		x.Configure(0, []router.Target{target})
		first, next := chainOf(text(1, 8000)), chainOf(text(1, 8000), text(2, 400))
		v := x.Send(start, target, first, 2000)
		v.Settle(Outcome{PromptTokens: 2000, CachedTokens: c.told, AnswerTokens: 10, Took: time.Second})
		v = x.Send(start.Add(2*time.Second), target, next, 2100)
		if got := v.Trusted(2100, max(c.told+100, 1984)); !c.want(got) {
			t.Errorf("%s: %d of the tokens that are told are accounted", c.name, got)
		}
	}
}

// What the sums say is kept until a first token changes them.
func TestTheShareIsOfTheSumsAsTheyAre(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	var w worth
	known := 0
	for i := range 200 {
		computed, cached := rnd.Float64()*8000, rnd.Float64()*8000
		w.see(computed, cached, 0.05+computed*1e-4+cached*float64(i/50)*1e-5+0.01*rnd.Float64(), 0)
		share, least, ok := w.fitted()
		if ok {
			known++
		}
		for range 2 {
			if s, l, k := w.share(); s != share || l != least || k != ok {
				t.Fatalf("behind %d first tokens: got %v, %v, %v, want %v, %v, %v", i+1, s, l, k, share, least, ok)
			}
		}
	}
	if known < 100 {
		t.Errorf("the share was known %d times of 200, want 100 at least", known)
	}
}

// What every look at a target asks twice: budget 5 ns.
func BenchmarkShare(b *testing.B) {
	var w worth
	for i := range 20 {
		w.see(float64(4000+i%3*1000), float64(i%4*2000), 0.2, 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, ok := w.share(); !ok {
			b.Fatal("nothing is known")
		}
	}
}
