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
