package learn_test

import (
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/learn"
	"github.com/pacer-dev/pacer/profiles/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Subject {
		now := time.Unix(1_700_000_000, 0)
		m := &learn.Memory{HalfLife: storetest.HalfLife, Now: func() time.Time { return now }}
		return storetest.Subject{
			Store: m, Reopen: func() profiles.Store { return m },
			Pass: func(d time.Duration) { now = now.Add(d) },
		}
	})
}

// A target that nobody asks for is forgotten after a day, or a fleet whose
// members come and go would fill the memory; the others are not.
func TestMemoryForgetsWhatNobodyAsksFor(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	m := &learn.Memory{Now: func() time.Time { return now }}
	ctx := t.Context()
	stay, gone := profiles.Target{Backend: "a", Model: "m"}, profiles.Target{Backend: "b", Model: "m"}
	must.Do(t, m.Push(ctx, "r", 1, []profiles.Delta{{Target: stay}, {Target: gone}}))
	load := func(targets ...profiles.Target) int {
		found := must.Get(m.Load(ctx, targets))(t)
		return len(found)
	}
	for range 23 {
		load(stay)
		now = now.Add(time.Hour)
	}
	if n := load(stay, gone); n != 2 {
		t.Fatalf("%d of 2 targets after 23 hours", n)
	}
	for range 26 {
		now = now.Add(time.Hour)
		load(stay)
	}
	if n := load(stay, gone); n != 1 {
		t.Errorf("%d targets are left after a day, want the one that is asked for", n)
	}
}
