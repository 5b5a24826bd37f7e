package prefix

import (
	"testing"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// of is what is expected of a prompt at the target of the tests.
func of(x *Index, now time.Time, c *Chain, tokens int) router.Warmth {
	for _, w := range x.Look(now, c, tokens, []router.Target{target}, nil) {
		return w
	}
	return router.Warmth{}
}

// An engine that was away may have been started anew: nobody is sure of its cache until
// one prompt has shown it, and one prompt is enough.
func TestAnEngineThatWasAwayIsInDoubt(t *testing.T) {
	for _, c := range []struct {
		name        string
		show        func(v *Visit)
		least, most int // of another prompt's 2,000 tokens, for sure, then
	}{
		{"it tells that nothing is there", func(v *Visit) {
			v.Settle(Outcome{PromptTokens: 2300, CachedTokens: 16, Took: 2 * time.Second})
		}, 0, 0},
		{"it tells that all is there", func(v *Visit) {
			v.Settle(Outcome{PromptTokens: 2300, CachedTokens: 2190, Took: 2 * time.Second})
		}, 250, 2100},
		{"its first token is late", func(v *Visit) { v.First(230*time.Millisecond, 0) }, 0, 0},
		{"its first token is soon", func(v *Visit) { v.First(30*time.Millisecond, 0) }, 250, 2100},
	} {
		x, now := New(), start
		x.Configure(0, []router.Target{target})
		first, other := []string{text(1, 8000), text(2, 800)}, []string{text(3, 8000), text(4, 800)}
		for range 3 { // each twice: it tells of cached tokens
			for _, messages := range [][]string{first, other} {
				v := x.Send(now, target, chainOf(messages...), 2200)
				ttft, cached := 220*time.Millisecond, 0
				if v.Predicted() > 0 {
					ttft, cached = 20*time.Millisecond, 2192
				}
				v.First(ttft, 0)
				v.Settle(Outcome{PromptTokens: 2200, CachedTokens: cached, Took: time.Second, TTFT: ttft})
				now = now.Add(2 * time.Second)
			}
		}
		next := chainOf(append(first, text(5, 400))...)
		if w := of(x, now, next, 2300); w.Sure < 700 {
			t.Fatalf("%s: %+v, want it sure before the engine was away", c.name, w)
		}
		now = now.Add(time.Second)
		x.Returned(now, target.Backend)
		now = now.Add(time.Second)
		if w := of(x, now, next, 2300); w.Sure != 0 || w.Told != 0 || w.Likely < 2000 {
			t.Errorf("%s: %+v while nothing was seen of the engine that is back, want it likely, and nothing sure", c.name, w)
		}
		v := x.Send(now, target, next, 2300)
		if w := of(x, now, next, 2300); w.Sure != 0 || w.Soon == 0 {
			t.Errorf("%s: %+v while the first prompt is computed, want nothing sure and something soon", c.name, w)
		}
		c.show(&v)
		w := of(x, now, chainOf(append(other, text(6, 400))...), 2300)
		if w.Sure < c.least || w.Sure > c.most || c.most == 0 && w.Likely != 0 {
			t.Errorf("%s: %+v of another prompt, want %d to %d for sure", c.name, w, c.least, c.most)
		}
	}
}

// Who tells of more than was ever sent there is not asked; that others use the engine too
// passes, as their prompts do.
func TestWhoTellsOfMoreThanWasSentIsNotAsked(t *testing.T) {
	x, now := New(), start
	x.Configure(0, []router.Target{target})
	ask := func(kind int, told func(possible int) int) {
		v := x.Send(now, target, chainOf(text(kind, 8000)), 2000)
		v.Settle(Outcome{PromptTokens: 2000, CachedTokens: told(int(v.Predicted())), Took: time.Second})
		now = now.Add(time.Second)
	}
	ask(1, func(int) int { return 2000 })
	if w := of(x, now, chainOf(text(1, 8000)), 2000); w.Sure != 0 || w.Told != 0 {
		t.Errorf("%+v of an engine that told of all of a prompt that nobody had sent, want nothing for sure", w)
	}
	for i := range 8 {
		ask(2+i%2, func(possible int) int {
			if possible == 0 {
				return 0
			}
			return 1984 // all of it, in whole blocks
		})
	}
	if w := of(x, now, chainOf(text(3, 8000)), 2000); w.Sure < 800 {
		t.Errorf("%+v after it told right, want half of the prompt for sure at least", w)
	}
}

// What ends before anything was seen of it brings nothing: who comes next with the same
// prompt is told of nothing that comes soon, nor that it is there. What was there before
// stays, and so does what somebody else asked for meanwhile.
func TestWhoGivesUpBringsNothing(t *testing.T) {
	for _, c := range []struct {
		name    string
		another bool
	}{{"alone", false}, {"another one asked for it, too", true}} {
		x, now := New(), start
		x.Configure(0, []router.Target{target})
		before, whole := text(1, 4000), []string{text(1, 4000), text(2, 8000)}
		for range 2 {
			v := x.Send(now, target, chainOf(before), 1000)
			v.Settle(Outcome{PromptTokens: 1000, CachedTokens: int(v.Predicted()) / 16 * 16, AnswerTokens: 10, Took: time.Second})
			now = now.Add(2 * time.Second)
		}
		v := x.Send(now, target, chainOf(whole...), 3000)
		if w := of(x, now, chainOf(whole...), 3000); w.Soon < 900 {
			t.Fatalf("%+v while it is computed, want some of the rest soon", w)
		}
		now = now.Add(time.Second)
		if c.another {
			x.Send(now, target, chainOf(whole...), 3000)
		}
		v.Settle(Outcome{})
		w := of(x, now.Add(time.Second), chainOf(whole...), 3000)
		if w.Soon != 0 || w.Likely < 800 || (w.Likely > 1100) != c.another {
			t.Errorf("%s: %+v, want nothing soon, what was there before, and the rest if another one asked for it", c.name, w)
		}
		if w := of(x, now.Add(2*time.Minute), chainOf(whole...), 3000); (w.Likely > 1100) != c.another {
			t.Errorf("%s: %+v minutes later", c.name, w)
		}
	}
}

// What is prefilled at the moment is there once its first token has come, and all of it: it
// cannot be forgotten before.
func TestWhatIsComputedComesWhole(t *testing.T) {
	x := New()
	x.Configure(0, []router.Target{target})
	x.Believe(func(router.Target) bool { return true })
	system := text(1, 64_000)
	x.Send(start, target, chainOf(system, text(2, 800)), 16_200)
	if w := of(x, start.Add(time.Second), chainOf(system, text(3, 800)), 16_200); w.Sure != 0 || w.Soon < 15_900 || w.Soon > 16_000 {
		t.Errorf("%+v while 16,000 tokens are computed, want nothing sure and all of them soon", w)
	}
}
