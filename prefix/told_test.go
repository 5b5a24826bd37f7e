package prefix

import (
	"testing"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// pair are the indexes of two replicas.
func pair() (here, there *Index) {
	here, there = New(), New()
	here.Configure(0, []router.Target{target})
	there.Configure(0, []router.Target{target})
	return here, there
}

// tell has there hear of what here sent.
func exchange(now time.Time, here, there *Index) {
	for t, text := range here.Tell(now) {
		there.Hear(now, t, text)
	}
}

func likely(x *Index, now time.Time, c *Chain, tokens int) int {
	for _, w := range x.Look(now, c, tokens, []router.Target{target}, nil) {
		return w.Likely
	}
	return 0
}

// The next turn of a conversation may come to another replica.
func TestReplicasTellWhatTheySent(t *testing.T) {
	here, there := pair()
	system, question := text(1, 8000), text(2, 800)
	first := chainOf(system, question)
	next := chainOf(system, question, text(3, 400), text(4, 400))
	v := here.Send(start, target, first, 2200)
	exchange(start, here, there)
	if got := likely(there, start, next, 2400); got != 0 {
		t.Fatalf("%d tokens are likely of a prompt that is not prefilled yet", got)
	}
	v.First(100*time.Millisecond, 0)
	exchange(start.Add(200*time.Millisecond), here, there)
	if got := likely(there, start.Add(time.Second), next, 2400); got < 2100 || got > 2300 {
		t.Errorf("%d tokens are likely of the 2,200 that the other replica sent", got)
	}
	if got := likely(there, start.Add(time.Second), chainOf(system, text(5, 800)), 2200); got < 1900 || got > 2000 {
		t.Errorf("%d tokens of another question are likely, of a system prompt of 2,000 that the other replica sent", got)
	}
	if got := likely(there, start.Add(time.Second), chainOf(text(6, 8000), question), 2200); got != 0 {
		t.Errorf("%d tokens of another system prompt are likely", got)
	}

	v.Settle(Outcome{PromptTokens: 2200, AnswerTokens: 100, Took: 3 * time.Second})
	before := likely(there, start.Add(4*time.Second), next, 2400)
	exchange(start.Add(3200*time.Millisecond), here, there)
	if after := likely(there, start.Add(4*time.Second), next, 2400); after <= before {
		t.Errorf("%d tokens are likely with the answer of 100, %d were without", after, before)
	}
	if all := here.Tell(start.Add(10 * time.Second)); len(all) != 0 {
		t.Errorf("after 10 s it still tells %v", all)
	}

	// The engine was started anew: what others sent there is gone too.
	now := start.Add(4 * time.Second)
	third := chainOf(text(8, 8000), text(9, 800))
	u := here.Send(now, target, third, 2200)
	u.First(0, 0)
	exchange(now, here, there)
	there.Returned(now.Add(time.Second), target.Backend)
	for range 2 { // the second one tells
		w := there.Send(now.Add(2*time.Second), target, next, 2400)
		w.Settle(Outcome{PromptTokens: 2400, CachedTokens: 16, Took: time.Second})
	}
	if got := likely(there, now.Add(4*time.Second), third, 2200); got != 0 {
		t.Errorf("%d tokens are likely that were sent before the engine was started anew", got)
	}
}

// Of a prompt that is given up before its first token the others hear nothing: they
// would count on what nobody has computed.
func TestWhoGivesUpIsNotToldOf(t *testing.T) {
	here, there := pair()
	v := here.Send(start, target, chainOf(text(1, 8000), text(2, 800)), 2200)
	exchange(start.Add(200*time.Millisecond), here, there)
	v.Settle(Outcome{})
	exchange(start.Add(400*time.Millisecond), here, there)
	if got := likely(there, start.Add(time.Second), chainOf(text(1, 8000), text(3, 800)), 2200); got != 0 {
		t.Errorf("%d tokens are likely of a prompt that the other replica gave up, want 0", got)
	}
}

// A system prompt is told once for each target: those that begin with it are known by
// their own ends.
func TestAnOpeningIsToldOnce(t *testing.T) {
	here, _ := pair()
	for i := range 3 {
		v := here.Send(start, target, chainOf(text(1, 8000), text(10+i, 800)), 2200)
		v.First(0, 0)
	}
	if got := len(here.Tell(start)[target])/toldBytes - 1; got != 3+1 {
		t.Errorf("%d ends are told of three prompts with one system prompt, want 4", got)
	}
}

// Who never sent a prompt to a target counts on what another replica sent there, as far as
// that one has seen that the cache keeps prompts: else it would send none there, and never
// know. First tokens that come late end it for both.
func TestWhoHasSentNothingCountsOnWhatOthersSaw(t *testing.T) {
	here, there := pair()
	here.Believe(func(router.Target) bool { return true })
	there.Believe(func(router.Target) bool { return true })
	system := text(1, 64_000)
	sure := func(now time.Time, c *Chain) int {
		for _, w := range there.Look(now, c, 16_200, []router.Target{target}, nil) {
			return w.Sure
		}
		return 0
	}
	now := start
	for i, c := range []struct {
		ttft        time.Duration
		least, most int
	}{
		{4 * time.Second, 16_000, 16_000},        // computed: what a token takes is known now
		{100 * time.Millisecond, 16_000, 16_000}, // it was there
		{4 * time.Second, 0, 0},                  // late, as often as soon
	} {
		v := here.Send(now, target, chainOf(system, text(10+i, 800)), 16_200)
		now = now.Add(c.ttft)
		v.First(c.ttft, 0)
		exchange(now, here, there)
		if got := sure(now, chainOf(system, text(100+i, 800))); got < c.least || got > c.most {
			t.Errorf("after %d prompts %d of 16,000 tokens are sure where others sent them, want %d to %d", i+1, got, c.least, c.most)
		}
	}
}

// Of three, one has seen that the cache keeps prompts, and one has sent there and cannot
// tell. The third one goes by the first, whichever of them it hears of last.
func TestWhoHasSeenNothingSaysNothingOfACache(t *testing.T) {
	sees, blind := pair()
	third, _ := pair()
	for _, x := range []*Index{sees, blind, third} {
		x.Believe(func(router.Target) bool { return true })
	}
	system := text(1, 64_000)
	v := sees.Send(start, target, chainOf(system, text(10, 800)), 16_200)
	now := start.Add(4 * time.Second)
	v.First(4*time.Second, 0)
	exchange(now, sees, blind)
	exchange(now, sees, third)
	u := blind.Send(now, target, chainOf(system, text(11, 800)), 16_200)
	now = now.Add(100 * time.Millisecond)
	u.First(100*time.Millisecond, 0)
	exchange(now, blind, third)
	c := chainOf(system, text(100, 800))
	if w := third.Look(now, c, 16_200, []router.Target{target}, nil); len(w) != 1 || w[0].Sure < 14_000 {
		t.Errorf("of 16,000 tokens that two others sent this is sure: %+v", w)
	}
}

// What others tell is bounded, and what no gateway can have written does nothing.
func TestWhatIsToldIsBounded(t *testing.T) {
	here, there := pair()
	there.Configure(100*nodeBytes, []router.Target{target})
	for i := range 2 * mostTold {
		v := here.Send(start, target, chainOf(text(i, 300)), 75)
		v.Settle(Outcome{PromptTokens: 75, Took: time.Millisecond})
	}
	all := here.Tell(start)[target]
	if len(all) != mostTold*toldBytes {
		t.Errorf("%d bytes are told, want those of the newest %d", len(all), mostTold)
	}
	exchange(start, here, there)
	exchange(start, here, there)
	if got, most := len(there.cache(target).heard.nodes), 100/heardShare; got != most {
		t.Errorf("%d of others are kept, want %d", got, most)
	}
	if got := likely(there, start, chainOf(text(2*mostTold-1, 300), text(1, 300)), 150); got == 0 {
		t.Error("the newest is forgotten")
	}
	there.Hear(start, router.Target{Backend: "gone"}, all)
	there.Hear(start, target, []byte("short"))
	there.Hear(start, target, make([]byte, 1<<20))
	if got := len(there.cache(target).heard.nodes); got > 100/heardShare {
		t.Errorf("%d of others are kept", got)
	}
}

// What another replica has seen of a cache holds until it tells otherwise, and ends some
// minutes after it told last: it may be gone, and the engine another one.
func TestWhatWasToldOfACacheEnds(t *testing.T) {
	here, _ := pair()
	c := chainOf(text(1, 8000), text(2, 800))
	sure := func(at time.Time) int {
		for _, w := range here.Look(at, c, 2200, []router.Target{target}, nil) {
			return w.Sure
		}
		return 0
	}
	here.Hear(start, target, appendTold(nil, aboutCache, keeps))
	v := here.Send(start, target, c, 2200)
	v.First(100*time.Millisecond, 0)
	here.cache(target).faith.seen = 0 // as of one that cannot tell
	if got := sure(start.Add(toldLife)); got < 1800 {
		t.Fatalf("%d tokens are sure while another replica believes in the cache, want some 2,000", got)
	}
	if got := sure(start.Add(toldLife + time.Second)); got != 0 {
		t.Errorf("%d tokens are sure when nobody has told for long, want none", got)
	}
	here.Hear(start.Add(toldLife+time.Minute), target, appendTold(nil, aboutCache, keeps))
	if got := sure(start.Add(toldLife + time.Minute)); got < 1800 {
		t.Errorf("%d tokens are sure when it is told anew, want some 2,000", got)
	}
}
