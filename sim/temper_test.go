package sim

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// alone is how many seconds one sequence takes for so many tokens after its first.
func alone(t *testing.T, o EngineOptions, tokens int) float64 {
	t.Helper()
	e := newEngine(t, o)
	submit(t, e, 1, tokens+1, "a")
	var first, last time.Time
	drive(e, at(0), at(1e6), func(s Step) {
		for _, out := range s.Outputs {
			if last = s.At; out.First {
				first = s.At
			}
		}
	})
	return last.Sub(first).Seconds()
}

// Each temper takes, in the long run, what Usual says.
func TestTempersTakeWhatIsUsual(t *testing.T) {
	const tokens = 60_000 // ten minutes of 10 ms
	for _, temper := range []Temper{
		{Wander: 0.2, WanderFor: time.Second},
		{Hitch: 0.005, HitchFactor: 20},
		{Pause: time.Second, PauseEvery: 20 * time.Second},
		{Throttle: 0.25, HotAt: 2}, // one sequence never makes it hot
	} {
		got := alone(t, EngineOptions{Model: Model{A: 0.010}, Temper: temper, Seed: 3}, tokens) / (0.010 * tokens)
		if want := temper.Usual(1, 0); math.Abs(got/want-1) > 0.03 {
			t.Errorf("%+v: %.3f times as long, want %.3f", temper, got, want)
		}
	}
	// 1 % a minute for ten minutes is 5 % in the mean, and as much more by that.
	if got := alone(t, EngineOptions{Model: Model{A: 0.010}, Temper: Temper{Ageing: 0.01}}, tokens) / (0.010 * tokens); math.Abs(got-1.053) > 0.004 {
		t.Errorf("an engine that ages by 1 %% a minute takes %.3f times as long in ten minutes, want 1.053", got)
	}
	// It is hot after a minute: 59,000 of the 60,000 steps or so are 25 % longer, less half a minute.
	hot := Temper{Throttle: 0.25, HotAt: 1}
	if got := alone(t, EngineOptions{Model: Model{A: 0.010}, Temper: hot}, tokens) / (0.010 * tokens); math.Abs(got-1.24) > 0.01 {
		t.Errorf("a hot engine takes %.3f times as long, want 1.24", got)
	}
}

// Whose text suits the drafts gets more tokens of each step, for all of his answer.
func TestAcceptanceIsOfASequence(t *testing.T) {
	e := newEngine(t, EngineOptions{Model: Model{A: 0.010}, Draft: 3, AcceptanceOf: func(tag any) float64 { return tag.(float64) }})
	submit(t, e, 1, 20_001, 0.0)
	submit(t, e, 1, 20_001, 1.0)
	ends := map[any]float64{}
	drive(e, at(0), at(1e6), func(s Step) {
		for _, o := range s.Outputs {
			if o.Last {
				ends[o.Sequence.Tag] = s.At.Sub(at(0)).Seconds()
			}
		}
	})
	if math.Abs(ends[0.0]-200) > 1 || math.Abs(ends[1.0]-50) > 1 {
		t.Errorf("answers ended after %v s, want 200 without drafts and 50 with all of three", ends)
	}
}

// Who decodes waits while anybody prefills, prompts are read one at a time, and the newest
// goes first, where that is so.
func TestOrders(t *testing.T) {
	for _, c := range []struct {
		order Order
		want  string // who got a token when
	}{
		{Order{}, "a1 a2 a3 b3 a4 b4 c4 a5 b5 c5"},
		{Order{PrefillFirst: true}, "a1 b3 c4 a5 b5 c5"},
		{Order{NewestFirst: true}, "a1 a2 c2 a3 c3 a4 c4 b4 a5 c5 b5"},
	} {
		e := newEngine(t, EngineOptions{Model: Model{A: 1}, PrefillBatch: 2, Order: c.order})
		submit(t, e, 2, 9, "a")
		got, now := "", at(0)
		for step := 0; step < 6; step++ {
			if step == 1 {
				submit(t, e, 4, 9, "b")
				submit(t, e, 2, 9, "c")
			}
			for _, o := range e.Step(now).Outputs {
				got += fmt.Sprintf(" %v%d", o.Sequence.Tag, step)
			}
			now, _ = e.Next()
		}
		if got != " "+c.want {
			t.Errorf("%+v: tokens at%s, want %s", c.order, got, c.want)
		}
	}
	e := newEngine(t, EngineOptions{Model: Model{A: 1}, Order: Order{Prefills: 1}})
	for range 3 {
		submit(t, e, 10, 100, nil)
	}
	drive(e, at(0), at(20), func(s Step) {
		if s.Work.Prefill > 10 {
			t.Errorf("a step prefilled %d tokens, want one prompt of 10 at a time", s.Work.Prefill)
		}
	})
	if e.Waiting() > 0 {
		t.Errorf("%d wait, want none", e.Waiting())
	}
}

func TestTempersAreChecked(t *testing.T) {
	for _, temper := range []Temper{
		{Wander: 0.1},
		{Wander: -1, WanderFor: 1},
		{Hitch: 2},
		{HitchFactor: math.Inf(1), Hitch: 0.1},
		{Pause: 2, PauseEvery: 1},
		{Throttle: -1},
		{Ageing: math.NaN()},
	} {
		if _, err := NewEngine(EngineOptions{Model: steady, Temper: temper}); err == nil {
			t.Errorf("%+v is accepted", temper)
		}
	}
	if _, err := NewEngine(EngineOptions{Model: steady, Order: Order{Prefills: -1}}); err == nil {
		t.Error("a number of prefills below 0 is accepted")
	}
}
