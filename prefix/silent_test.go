package prefix

import (
	"testing"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// A silent engine keeps 60,000 tokens. What is older has late first tokens, and is not
// expected any more; what is younger still is.
func TestFirstTokensSayWhatASilentCacheKeeps(t *testing.T) {
	x := New()
	x.Configure(0, []router.Target{target})
	x.Believe(func(router.Target) bool { return true })
	question := 1
	ask := func(system string, tokens, cached int) {
		question++
		ttft := 20*time.Millisecond + time.Duration(tokens-cached)*100*time.Microsecond
		v := x.Send(start, target, chainOf(system, text(question, 800)), tokens)
		v.First(ttft, 0)
		v.Settle(Outcome{PromptTokens: tokens, Took: ttft, TTFT: ttft})
	}
	system := text(1, 8000)
	ask(system, 2200, 0)
	for range 8 {
		for range 3 {
			ask(system, 2200, 2000)
		}
		for range 9 { // others
			ask(text(question+1000, 8000), 10_000, 0)
		}
		ask(system, 2200, 0)
	}
	if w := of(x, start, chainOf(system, text(9000, 800)), 2200); w.Likely < 1800 || w.Sure < 1200 {
		t.Errorf("just now: %+v, want nearly all of 2,000", w)
	}
	for range 9 {
		ask(text(question+1000, 8000), 10_000, 0)
	}
	if w := of(x, start, chainOf(system, text(9001, 800)), 2200); w.Likely > 500 || w.Sure != 0 {
		t.Errorf("after 90,000 tokens of others: %+v, want little of 2,000, and nothing for sure", w)
	}

	// Once it tells, that counts and nothing else.
	v := x.Send(start, target, chainOf(system, text(9002, 800)), 2200)
	v.First(220*time.Millisecond, 0)
	v.Settle(Outcome{PromptTokens: 2200, CachedTokens: 1990, Took: time.Second, TTFT: 220 * time.Millisecond})
	if k := &x.cache(target).keeping; k.kept.looked > 2 {
		t.Errorf("%.1f looks count once it tells, want those of one prompt", k.kept.looked)
	}
}
