package sim

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pacer-dev/pacer/internal/must"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(math.Round(seconds * 1e9)))
}

// steady is 10 + 2·√n + 0.5·n ms, and 0.1 ms for a prompt token.
var steady = Model{A: 0.010, B: 0.002, C: 0.0005, D: 0.0001}

func newEngine(t testing.TB, o EngineOptions) *Engine {
	t.Helper()
	if o.Noise == 0 {
		o.Noise = -1
	}
	e := must.Get(NewEngine(o))(t)
	return e
}

func submit(t testing.TB, e *Engine, prompt, answer int, tag any) *Sequence {
	t.Helper()
	s := must.Get(e.Submit(prompt, answer, tag))(t)
	return s
}

// drive steps e from now until it is idle or end has come, and returns when it
// stopped. The steps go to see.
func drive(e *Engine, now, end time.Time, see func(Step)) time.Time {
	for {
		see(e.Step(now))
		next, busy := e.Next()
		if !busy || next.After(end) {
			return now
		}
		now = next
	}
}

func TestOneSequenceStepByStep(t *testing.T) {
	e := newEngine(t, EngineOptions{Model: steady})
	s := submit(t, e, 100, 3, "a")
	type event struct {
		At          time.Time
		First, Last bool
	}
	var got []event
	drive(e, at(0), at(10), func(step Step) {
		for _, o := range step.Outputs {
			if o.Sequence != s || o.Tokens != 1 {
				t.Errorf("output %+v, want one token of the only sequence", o)
			}
			got = append(got, event{step.At, o.First, o.Last})
		}
	})
	// The prefill takes 12.5 + 10 ms, each token after it 12.5 ms.
	want := []event{{at(0.0225), true, false}, {at(0.035), false, false}, {at(0.0475), false, true}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("tokens differ (-want +got):\n%s", d)
	}
	if _, busy := e.Next(); busy || e.Running() != 0 || e.Waiting() != 0 {
		t.Errorf("after its last token the engine has %d running, %d waiting, busy %t", e.Running(), e.Waiting(), busy)
	}
}

func TestTruthIsTheClosedForm(t *testing.T) {
	e := newEngine(t, EngineOptions{Model: steady})
	// Sixteen of 101 tokens and four of 51, without prompts to speak of: 50
	// steps at 20, then 50 at 16.
	for i := range 20 {
		submit(t, e, 1, map[bool]int{true: 101, false: 51}[i < 16], nil)
	}
	drive(e, at(0), at(100), func(Step) {})
	step20 := 0.010 + 0.002*math.Sqrt(20) + 0.0005*20
	want := []TruthPoint{
		{N: 16, StreamSeconds: 16 * 50 * 0.026, Tokens: 16 * 50, TPS: 1 / 0.026},
		{N: 20, StreamSeconds: 20 * 50 * step20, Tokens: 20 * 50, TPS: 1 / step20},
	}
	got := e.Truth().Points
	if len(got) != len(want) {
		t.Fatalf("truth has %+v, want %+v", got, want)
	}
	for i, w := range want {
		g := got[i]
		if g.N != w.N || g.Tokens != w.Tokens || !near(g.StreamSeconds, w.StreamSeconds, 1e-6) || !near(g.TPS, w.TPS, 1e-6) {
			t.Errorf("truth at level %d is %+v, want %+v", i, g, w)
		}
	}
}

// TestTruthIsTheTableUnderNoise checks that noise moves steps, not the curve.
func TestTruthIsTheTableUnderNoise(t *testing.T) {
	e := newEngine(t, EngineOptions{Model: Model{Table: h200}, Noise: 0.10, Seed: 3})
	for range 32 {
		submit(t, e, 1, 10_000, nil)
	}
	drive(e, at(0), at(1e4), func(Step) {})
	p := e.Truth().Points
	// The standard error is 10 % · √3 / √10,000 = 0.17 %.
	if len(p) != 1 || p[0].N != 32 || !near(p[0].TPS, 90.625, 0.006) {
		t.Errorf("truth is %+v, want 90.6 tokens/s at 32", p)
	}
}

func TestPrefillIsChunkedInOrderOfArrival(t *testing.T) {
	e := newEngine(t, EngineOptions{Model: steady, PrefillBatch: 100})
	submit(t, e, 250, 2, "long")
	submit(t, e, 30, 2, "short")
	submit(t, e, 30, 2, "later")
	firsts := map[any]time.Time{}
	drive(e, at(0), at(10), func(s Step) {
		for _, o := range s.Outputs {
			if o.First {
				firsts[o.Sequence.Tag] = s.At
			}
		}
	})
	// 100, 100, then 50 of the first with 30 and 20 of the next two; the last
	// 10 while the first two decode: 10 + 2·√2 + 1 + 1 ms.
	full := 0.0125 + 0.010
	want := map[any]time.Time{
		"long": at(3 * full), "short": at(3 * full),
		"later": at(3*full + 0.012 + 0.002*math.Sqrt2),
	}
	if d := cmp.Diff(want, firsts); d != "" {
		t.Errorf("first tokens differ (-want +got):\n%s", d)
	}
}

func TestSlotsAndLine(t *testing.T) {
	e := newEngine(t, EngineOptions{Model: steady, MaxNumSeqs: 2})
	var all []*Sequence
	for i := range 4 {
		all = append(all, submit(t, e, 1, 2, i))
	}
	var order []any
	drive(e, at(0), at(10), func(s Step) {
		if e.Running() > 2 {
			t.Errorf("%d sequences run, want at most 2", e.Running())
		}
		for _, a := range s.Admitted {
			order = append(order, a.Tag)
		}
		if len(order) == 2 && (e.Waiting() != 2 || all[2].Admitted() || !all[1].Admitted()) {
			t.Errorf("with two slots taken %d wait, want 2", e.Waiting())
		}
	})
	if d := cmp.Diff([]any{0, 1, 2, 3}, order); d != "" {
		t.Errorf("slots were not given in order of arrival (-want +got):\n%s", d)
	}
}

func TestKVCacheHoldsBackAndRefuses(t *testing.T) {
	e := newEngine(t, EngineOptions{Model: steady, KVTokens: 100})
	if _, err := e.Submit(60, 41, nil); !errors.Is(err, ErrTooLong) {
		t.Errorf("a sequence of 101 tokens in a cache of 100: %v, want ErrTooLong", err)
	}
	submit(t, e, 50, 10, nil)
	submit(t, e, 40, 10, nil) // 60 + 50 > 100
	e.Step(at(0))
	if e.Running() != 1 || e.Waiting() != 1 {
		t.Errorf("%d run and %d wait, want 1 and 1", e.Running(), e.Waiting())
	}
	end, _ := e.Next()
	drive(e, end, at(10), func(Step) {})
	if e.Running() != 0 || e.Waiting() != 0 || e.kvInUse != 0 {
		t.Errorf("at the end %d run, %d wait, %d tokens of cache are held", e.Running(), e.Waiting(), e.kvInUse)
	}
}

func TestCancelInEachPhase(t *testing.T) {
	e := newEngine(t, EngineOptions{Model: steady, MaxNumSeqs: 3, PrefillBatch: 100})
	decoding := submit(t, e, 10, 50, nil)
	stays := submit(t, e, 10, 5, nil)
	drive(e, at(0), at(0.1), func(Step) {})
	prefilling := submit(t, e, 1000, 50, nil)
	queued := submit(t, e, 10, 50, nil)
	behind := submit(t, e, 10, 1, nil)
	now, _ := e.Next()
	e.Step(now)
	if e.Running() != 3 && e.Running() != 2 {
		t.Fatalf("%d run", e.Running())
	}
	for name, s := range map[string]*Sequence{"decoding": decoding, "prefilling": prefilling, "queued": queued} {
		if !e.Cancel(s) {
			t.Errorf("a %s sequence could not be cancelled", name)
		}
		if e.Cancel(s) {
			t.Errorf("a %s sequence was cancelled twice", name)
		}
	}
	var finished []*Sequence
	now, _ = e.Next()
	drive(e, now, at(100), func(s Step) {
		for _, o := range s.Outputs {
			if o.Sequence == decoding || o.Sequence == prefilling || o.Sequence == queued {
				t.Error("a cancelled sequence got a token")
			}
			if o.Last {
				finished = append(finished, o.Sequence)
			}
		}
	})
	if !behind.Admitted() || e.Cancel(behind) || e.Cancel(stays) {
		t.Error("the others did not run to their end")
	}
	if got := e.Truth().Cancelled; got != 3 {
		t.Errorf("%d were cancelled, want 3", got)
	}
	if e.Running() != 0 || e.Waiting() != 0 || len(finished) == 0 {
		t.Errorf("at the end %d run, %d wait, %d finished", e.Running(), e.Waiting(), len(finished))
	}
}

func TestSpeedAndDrift(t *testing.T) {
	e := newEngine(t, EngineOptions{Model: Model{A: 0.02}, Speed: 4})
	submit(t, e, 1, 101, nil)
	now := drive(e, at(0), at(0.25), func(Step) {}) // 50 steps of 5 ms
	e.SetDrift(3)
	drive(e, now, at(10), func(Step) {})
	p := e.Truth().Points
	// The first token ends a prefill. Of the next hundred 50 were planned
	// before the drift: 49 that are done, and one under way.
	want := 50*0.005 + 50*0.015
	if len(p) != 1 || p[0].Tokens != 100 || !near(p[0].StreamSeconds, want, 1e-9) {
		t.Errorf("truth is %+v, want 100 tokens in %v s, as a client sees them", p, want)
	}
}

func TestLateTimersDoNotSlowTheEngineAndHoldUpsAreNotMadeGood(t *testing.T) {
	e := newEngine(t, EngineOptions{Model: Model{A: 0.02}})
	submit(t, e, 1, 1000, nil)
	e.Step(at(0))
	for i := 1; i <= 100; i++ {
		e.Step(at(0.02*float64(i) + 0.004)) // each noticed 4 ms late
	}
	if next, _ := e.Next(); !next.Equal(at(2.02)) {
		t.Errorf("after 100 steps noticed late the next one is due at %v, want 2.02 s", next.Sub(epoch))
	}
	if s := e.Step(at(2.019)); !s.At.IsZero() || s.Outputs != nil {
		t.Errorf("before it was due the step gave %+v", s)
	}
	// Held up for a second: the clients waited for it, and the truth says so.
	before := e.Truth().Points[0].StreamSeconds
	if s := e.Step(at(3.02)); !s.At.Equal(at(3.02)) {
		t.Errorf("a step a second late ended at %v, want 3.02 s", s.At.Sub(epoch))
	}
	if got := e.Truth().Points[0].StreamSeconds - before; !near(got, 1.02, 1e-9) {
		t.Errorf("the step that was held up took %v stream-seconds, want 1.02", got)
	}
	if next, _ := e.Next(); !next.Equal(at(3.04)) {
		t.Errorf("then the next one is due at %v, want 3.04 s", next.Sub(epoch))
	}
}

func TestResetLeavesOutTheStepUnderWay(t *testing.T) {
	e := newEngine(t, EngineOptions{Model: Model{A: 0.02}})
	s := submit(t, e, 1, 6, nil)
	e.Step(at(0))
	e.Step(at(0.02))
	e.Step(at(0.04))
	e.Reset()
	if got := e.Truth().Points; len(got) != 0 {
		t.Errorf("truth after a reset is %+v, want none", got)
	}
	e.Step(at(0.06)) // began before the reset
	e.Step(at(0.08))
	want := []TruthPoint{{N: 1, StreamSeconds: 0.02, Tokens: 1, TPS: 50}}
	if got := e.Truth().Points; len(got) != 1 || got[0].Tokens != 1 || !near(got[0].StreamSeconds, 0.02, 1e-9) {
		t.Errorf("truth is %+v, want %+v", got, want)
	}
	e.Cancel(s)
	e.Reset()
	if got := e.Truth().Cancelled; got != 0 {
		t.Errorf("%d cancelled after a reset, want 0", got)
	}
}

func TestOneSeedOneRun(t *testing.T) {
	run := func(seed uint64) (ends []time.Time) {
		e := newEngine(t, EngineOptions{Model: steady, Noise: 0.1, Seed: seed})
		submit(t, e, 10, 20, nil)
		drive(e, at(0), at(10), func(s Step) { ends = append(ends, s.At) })
		return ends
	}
	if d := cmp.Diff(run(1), run(1)); d != "" {
		t.Errorf("the same seed gave another run:\n%s", d)
	}
	if cmp.Equal(run(1), run(2)) {
		t.Error("another seed gave the same run")
	}
}

func TestNewEngineSaysWhatIsWrong(t *testing.T) {
	for want, o := range map[string]EngineOptions{
		"Model":        {},
		"MaxNumSeqs":   {Model: steady, MaxNumSeqs: -1},
		"PrefillBatch": {Model: steady, PrefillBatch: -5},
		"KVTokens":     {Model: steady, KVTokens: -1},
		"Noise":        {Model: steady, Noise: math.NaN()},
		"Speed":        {Model: steady, Speed: -2},
	} {
		if _, err := NewEngine(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewEngine(%+v): %v, want an error about %s", o, err, want)
		}
	}
}

// TestEngineLaws drives an engine at random and checks what must always hold.
func TestEngineLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := EngineOptions{
			Model: steady, Noise: -1,
			MaxNumSeqs:   rapid.IntRange(1, 6).Draw(t, "slots"),
			PrefillBatch: rapid.IntRange(1, 40).Draw(t, "budget"),
			KVTokens:     rapid.IntRange(40, 200).Draw(t, "cache"),
		}
		e := must.Get(NewEngine(o))(t)
		owed := map[*Sequence]int{} // tokens still to come
		var live []*Sequence
		now := epoch
		step := func() {
			if next, busy := e.Next(); busy {
				now = next
			}
			for _, out := range e.Step(now).Outputs {
				owed[out.Sequence] -= out.Tokens
				if left, ok := owed[out.Sequence]; !ok || left < 0 || out.Last != (left == 0) {
					t.Fatalf("output %+v with %d tokens owed", out, left)
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "moves") {
			switch rapid.IntRange(0, 3).Draw(t, "move") {
			case 0, 1:
				n := rapid.IntRange(1, 10).Draw(t, "answer")
				s := must.Get(e.Submit(rapid.IntRange(1, 30).Draw(t, "prompt"), n, nil))(t)
				owed[s] = n
				live = append(live, s)
			case 2:
				if len(live) > 0 {
					s := rapid.SampledFrom(live).Draw(t, "victim")
					if e.Cancel(s) {
						delete(owed, s)
					}
				}
			case 3:
				step()
			}
			if e.Running() > o.MaxNumSeqs || e.kvInUse > o.KVTokens || e.kvInUse < 0 {
				t.Fatalf("%d run in %d slots, %d of %d tokens of cache are held", e.Running(), o.MaxNumSeqs, e.kvInUse, o.KVTokens)
			}
		}
		for range 10_000 {
			step()
			if _, busy := e.Next(); !busy {
				break
			}
		}
		for s, left := range owed {
			if left != 0 {
				t.Fatalf("sequence %+v never got %d of its tokens", s, left)
			}
		}
		if e.Running() != 0 || e.Waiting() != 0 || e.kvInUse != 0 {
			t.Fatalf("at the end %d run, %d wait, %d tokens of cache are held", e.Running(), e.Waiting(), e.kvInUse)
		}
	})
}

// Budget: 5 µs for a step of 256, no allocation. A step is then 0.1 % of the
// quickest one that a preset has.
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{64, 256} {
		b.Run(map[int]string{64: "64", 256: "256"}[n], func(b *testing.B) {
			e := newEngine(b, EngineOptions{Model: Model{Table: h200, D: 1e-4}, Noise: 0.05})
			for range n {
				submit(b, e, 1, math.MaxInt32, nil)
			}
			now := epoch
			b.ReportAllocs()
			for b.Loop() {
				if next, busy := e.Next(); busy {
					now = next
				}
				e.Step(now)
			}
		})
	}
}
