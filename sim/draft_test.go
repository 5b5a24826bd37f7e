package sim

import (
	"math"
	"testing"
)

// TestSpeculativeDecodingGivesSeveralTokensAStep drives two sequences and
// counts: 1 + 0.7 + 0.7² + 0.7³ = 2.533 tokens for a sequence and step, never
// more than the answer has, and the truth counts them all.
func TestSpeculativeDecodingGivesSeveralTokensAStep(t *testing.T) {
	const answer = 20_001
	e := newEngine(t, EngineOptions{Model: Model{A: 0.010}, Draft: 3, Seed: 5})
	submit(t, e, 1, answer, "a")
	submit(t, e, 1, answer, "b")
	got := map[any]int{}
	steps := 0
	drive(e, at(0), at(1e4), func(s Step) {
		steps += min(s.Work.Decoding, 1)
		for _, o := range s.Outputs {
			if o.Tokens < 1 || o.Tokens > 4 || o.First && o.Tokens != 1 {
				t.Fatalf("a step gave %d tokens (first: %t), want 1 to 4, and 1 for the first", o.Tokens, o.First)
			}
			got[o.Sequence.Tag] += o.Tokens
		}
	})
	if got["a"] != answer || got["b"] != answer {
		t.Errorf("answers have %v tokens, want %d each", got, answer)
	}
	points := e.Truth().Points
	var tokens float64
	for _, p := range points {
		tokens += p.Tokens
	}
	if tokens != 2*(answer-1) {
		t.Errorf("the truth holds %v tokens, want %d: all but the first ones", tokens, 2*(answer-1))
	}
	// The standard error of the mean of 8,000 steps is 1.2/√8000 = 0.013.
	if mean := points[len(points)-1].TPS * 0.010; math.Abs(mean-2.533) > 0.05 {
		t.Errorf("%.3f tokens for a sequence and step, want 2.533", mean)
	}
	if steps < 7500 || steps > 8300 {
		t.Errorf("%d steps decoded, want about 7,900", steps)
	}
}

// TestStepsCostWhatTheyCarry checks the work of a step and its time: context
// and a prefill that is no straight line.
func TestStepsCostWhatTheyCarry(t *testing.T) {
	e := newEngine(t, EngineOptions{
		Model:   Model{A: 0.010, E: 1e-5},
		Prefill: func(n, p int) float64 { return 1e-3 * float64(n+1) * math.Sqrt(float64(p)) },
	})
	submit(t, e, 100, 3, nil)
	var got []Work
	drive(e, at(0), at(10), func(s Step) {
		if !s.At.IsZero() {
			got = append(got, s.Work)
		}
	})
	want := []Work{
		{0, 100, 0.010 + 1e-3*10},
		{1, 0, 0.010 + 101e-5}, // prompt and first token
		{1, 0, 0.010 + 102e-5},
	}
	if len(got) != len(want) {
		t.Fatalf("steps did %+v, want %+v", got, want)
	}
	for i, w := range want {
		if got[i].Decoding != w.Decoding || got[i].Prefill != w.Prefill || !near(got[i].Seconds, w.Seconds, 1e-9) {
			t.Errorf("step %d did %+v, want %+v", i, got[i], w)
		}
	}
}

func TestDraftOptionsAreChecked(t *testing.T) {
	for _, o := range []EngineOptions{{Draft: -1}, {Draft: 16}, {Draft: 1, Acceptance: 1.1}, {Draft: 1, Acceptance: math.NaN()}} {
		o.Model = steady
		if _, err := NewEngine(o); err == nil {
			t.Errorf("NewEngine took a draft of %d at %v", o.Draft, o.Acceptance)
		}
	}
}
