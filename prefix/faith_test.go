package prefix

import (
	"testing"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// A prompt is found by others once its first token has come, and not before.
func TestAPromptIsThereOnceItIsPrefilled(t *testing.T) {
	x := New()
	x.Configure(0, []router.Target{target})
	system := text(1, 8000)
	v := x.Send(start, target, chainOf(system, text(2, 800)), 2200)
	next := chainOf(system, text(3, 800))
	if got := likely(x, start, next, 2200); got != 0 {
		t.Errorf("%d tokens are likely of a system prompt that is being prefilled", got)
	}
	w := x.Send(start, target, next, 2200) // it comes behind, and finds nothing either
	if w.Predicted() != 0 {
		t.Errorf("%v tokens are predicted of a system prompt that is being prefilled", w.Predicted())
	}
	v.First(time.Second, 0)
	if got := likely(x, start, chainOf(system, text(4, 800)), 2200); got < 1900 || got > 2000 {
		t.Errorf("%d tokens are likely once it is prefilled, of 2,000", got)
	}

	// Whose first token never comes is forgotten.
	other := text(5, 8000)
	x.Send(start, target, chainOf(other, text(6, 800)), 2200)
	if got := likely(x, start.Add(2*computingFor), chainOf(other, text(7, 800)), 2200); got < 1900 {
		t.Errorf("%d tokens are likely after two minutes, want 2,000", got)
	}
	u := x.Send(start, target, chainOf(text(8, 8000), text(9, 800)), 2200)
	u.Settle(Outcome{}) // it was refused, or its client went
	if got := likely(x, start, chainOf(text(8, 8000), text(10, 800)), 2200); got != 0 {
		t.Errorf("%d tokens are likely of a prompt that failed before its first token, want 0", got)
	}
	again := x.Send(start, target, chainOf(text(8, 8000), text(9, 800)), 2200)
	again.Settle(Outcome{TTFT: time.Second})
	if got := likely(x, start, chainOf(text(8, 8000), text(11, 800)), 2200); got < 1900 {
		t.Errorf("%d tokens are likely once it was sent again, want 2,000", got)
	}
}

// Of a cache that is believed in, all of what was used within two seconds counts, for nothing
// forgets it by then. Of what is older nine tenths do.
func TestWhatWasUsedJustNowIsBelievedWhole(t *testing.T) {
	x := New()
	x.Configure(0, []router.Target{target})
	x.Believe(func(router.Target) bool { return true })
	system := text(1, 8000)
	v := x.Send(start, target, chainOf(system, text(2, 800)), 2200)
	v.First(220*time.Millisecond, 0)
	for _, c := range []struct {
		after       time.Duration
		least, most int // of 2,000 tokens
	}{
		{300 * time.Millisecond, 1990, 2000},
		{1900 * time.Millisecond, 1990, 2000},
		{2100 * time.Millisecond, 1790, 1800},
	} {
		if w := of(x, start.Add(c.after), chainOf(system, text(3, 800)), 2200); w.Sure < c.least || w.Sure > c.most {
			t.Errorf("after %v %d tokens are sure, want %d to %d", c.after, w.Sure, c.least, c.most)
		}
	}
}

// Of another kind it is believed once four more first tokens came soon than late.
func TestAnyKindIsBelievedOnceItWasSeen(t *testing.T) {
	for _, c := range []struct {
		name        string
		late, soon  int
		least, most int // of 2,000 tokens, for sure, then
	}{
		{"three came soon", 0, 3, 0, 0},
		{"four came soon", 0, 4, 1700, 2000},
		{"four came soon after two that were late", 2, 4, 0, 0},
		{"four more came soon than late", 2, 8, 1, 2000},
	} {
		x := New()
		x.Configure(0, []router.Target{target})
		system, question := text(1, 8000), 1
		ask := func(ttft time.Duration) {
			question++
			v := x.Send(start, target, chainOf(system, text(question, 800)), 2200)
			v.First(ttft, 0)
		}
		ask(220 * time.Millisecond)
		for range c.late {
			ask(220 * time.Millisecond)
		}
		for range c.soon {
			ask(40 * time.Millisecond)
		}
		if w := of(x, start, chainOf(system, text(99, 800)), 2200); w.Sure < c.least || w.Sure > c.most {
			t.Errorf("%s: %d tokens are there for sure, want %d to %d", c.name, w.Sure, c.least, c.most)
		}
	}
}

// Of a kind that keeps prefixes that is believed, until a first token comes as late as
// if nothing were there.
func TestAKindIsBelievedUntilAFirstTokenIsLate(t *testing.T) {
	for _, c := range []struct {
		name        string
		keeps       bool
		ttft        time.Duration // of a prompt of 2,200 tokens, of which 2,000 were sent before
		least, most int           // for sure, then
	}{
		{"a cache", true, 40 * time.Millisecond, 1700, 2000},
		{"no cache", true, 220 * time.Millisecond, 0, 0},
		{"another kind", false, 40 * time.Millisecond, 0, 0},
	} {
		x := New()
		x.Configure(0, []router.Target{target})
		x.Believe(func(router.Target) bool { return c.keeps })
		system := text(1, 8000)
		sure := func(question int) int {
			for _, w := range x.Look(start, chainOf(system, text(question, 800)), 2200, []router.Target{target}, nil) {
				return w.Sure
			}
			return 0
		}
		v := x.Send(start, target, chainOf(system, text(2, 800)), 2200)
		v.First(220*time.Millisecond, 0)
		if got := sure(3); c.keeps && (got < 1700 || got > 2000) || !c.keeps && got != 0 {
			t.Errorf("%s: %d tokens are there for sure before anything was seen", c.name, got)
		}
		w := x.Send(start, target, chainOf(system, text(4, 800)), 2200)
		w.First(c.ttft, 0)
		if got := sure(5); got < c.least || got > c.most {
			t.Errorf("%s: %d tokens are there for sure after a first token, want %d to %d", c.name, got, c.least, c.most)
		}
	}
}
