package prefix

import (
	"testing"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// Where every prompt has as much cached, no fit tells what that saves; that first
// tokens came soon all the same does. One who lies tells so by being late.
func TestPromptsAllAlikeShowWhatACacheSaves(t *testing.T) {
	for name, c := range map[string]struct {
		ttft        time.Duration
		least, most float64 // seconds for each cached token
	}{
		"a cache": {80 * time.Millisecond, 4e-6, 8e-6},
		"a lie":   {4 * time.Second, 2e-4, 3e-4},
	} {
		x, now := New(), time.Unix(1000, 0)
		x.Configure(0, []router.Target{target})
		var chain Chain
		prompt := func(n byte) {
			chain.Begin()
			chain.Add(make([]byte, 64_000))
			chain.Add([]byte{n})
		}
		for i := range byte(12) {
			prompt(i)
			v := x.Send(now, target, &chain, 16_000)
			v.First(10*c.ttft, 16_000) // behind another prompt: that says nothing
			v.First(c.ttft, 0)
			now = now.Add(5 * time.Second)
			if i > 0 {
				v.Settle(Outcome{PromptTokens: 16_000, CachedTokens: 15_900, TTFT: c.ttft})
			}
		}
		prompt(99)
		w := x.Look(now, &chain, 16_000, []router.Target{target}, nil)
		if len(w) != 1 || w[0].Told < 10_000 || w[0].Most < c.least || w[0].Most > c.most {
			t.Errorf("%s: %+v, want most of the prompt told, at %v to %v s each", name, w, c.least, c.most)
		}
	}
}

// What other prompts are ahead may be prefilled already, and then says nothing of what
// a token costs: where it counted, no token seemed to cost anything, and no cache to
// save anything.
func TestWhoWaitedSaysNothingOfTheCache(t *testing.T) {
	x, now := New(), time.Unix(1000, 0)
	x.Configure(0, []router.Target{target})
	system := text(1, 8000)
	for i := range 60 {
		question := 100 + 50*(i%4)
		c := chainOf(system, text(100+i, 4*question))
		computed, cached, ahead := question, 2000, 0
		switch i % 3 {
		case 0: // nobody had it
			c, computed, cached = chainOf(text(200+i, 32*question)), 8*question, 0
		case 1: // others are said to be ahead, and are not
			ahead = 3000
		}
		prompt := computed + cached
		v := x.Send(now, target, c, prompt)
		ttft := time.Duration(20+computed/10+i%5) * time.Millisecond
		v.Settle(Outcome{PromptTokens: prompt, CachedTokens: cached, TTFT: ttft, Ahead: ahead})
		now = now.Add(3 * time.Second)
	}
	w := x.Look(now, chainOf(system, text(99, 400)), 2100, []router.Target{target}, nil)
	if len(w) != 1 || w[0].Likely < 1800 || w[0].Sure < 1300 {
		t.Errorf("%+v, want nearly all of the 2,000 tokens of the system prompt, and most of them for sure", w)
	}
}
