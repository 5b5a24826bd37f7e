package profiles

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// teach lets one stream run at n for so many chunks, 50 ms apart.
func (b *bench) teach(n int, from time.Duration, chunks int) (end time.Duration) {
	b.occ.Set(start.Add(from), n)
	s := b.open(Open{Sent: start.Add(from)})
	end = steady(s, from, 50*ms, chunks+1)
	s.Usage(Usage{CompletionTokens: chunks + 1})
	s.Close(start.Add(end), true)
	return end
}

func TestFoldCountsUntilApplied(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	b.teach(1, 0, 100)
	one := b.book.Fold(start.Add(20 * time.Second))
	b.teach(1, 20*time.Second, 50)
	two := b.book.Fold(start.Add(40 * time.Second))
	tokens := func() float64 { return b.book.Curve(target).Tokens() }
	within(t, "tokens of two folds", tokens(), 150, 1e-6)

	// The store holds the first fold and 1000 tokens of another replica.
	sums := sumsOf(Fit{A: 0.05}, even(1000, 1), flat)
	sums.Add(one[0], 0)
	b.book.Apply(start.Add(41*time.Second), map[Target]Sums{target: sums}, one)
	within(t, "tokens with the first fold acknowledged", tokens(), 1150, 1e-6)

	sums.Add(two[0], 0)
	b.book.Apply(start.Add(42*time.Second), map[Target]Sums{target: sums}, two)
	within(t, "tokens with both folds acknowledged", tokens(), 1150, 1e-6)
	if left := len(b.book.profile(target).unacked); left != 0 {
		t.Errorf("%d deltas still wait, want none", left)
	}
}

// TestAckOfAddedUpDeltas: while the store is away its caller adds deltas up,
// and acknowledges the sum.
func TestAckOfAddedUpDeltas(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	var sum Delta
	var end time.Duration
	const folds = 3 * maxUnacked
	for range folds {
		end = b.teach(1, end, 20)
		for _, d := range b.book.Fold(start.Add(end + 10*time.Second)) {
			sum.Target = d.Target
			sum.Sums.Add(d, 0)
		}
	}
	if waiting := len(b.book.profile(target).unacked); waiting > maxUnacked {
		t.Errorf("%d deltas wait, want at most %d", waiting, maxUnacked)
	}
	within(t, "tokens before", b.book.Curve(target).Tokens(), 20*folds, 1e-6)
	b.book.Apply(start.Add(end), map[Target]Sums{target: sum.Sums}, []Delta{sum})
	within(t, "tokens after", b.book.Curve(target).Tokens(), 20*folds, 1e-6)
}

// TestAckOfTheFirstAfterAnOutage: what was on its way when the store went away
// is acknowledged first, however much was folded meanwhile.
func TestAckOfTheFirstAfterAnOutage(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	p := b.book.profile(target)
	b.book.Apply(start, map[Target]Sums{target: p.known}, []Delta{*p.unacked[0]})
	stored := p.known
	var sent []Delta
	var end time.Duration
	const folds = 30
	for range folds {
		end = b.teach(1, end, 20)
		d := b.book.Fold(start.Add(end + 10*time.Second))
		if sent == nil {
			sent = d
			stored.Add(d[0], 0)
		}
	}
	b.book.Apply(start.Add(end), map[Target]Sums{target: stored}, sent)
	within(t, "tokens", b.book.Curve(target).Tokens(), 20*folds, 1e-6)
}

func TestApplyKeepsWhatTheStoreLost(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	b.teach(1, 0, 100)
	d := b.book.Fold(start.Add(20 * time.Second))
	b.book.Apply(start.Add(21*time.Second), nil, d)
	within(t, "tokens", b.book.Curve(target).Tokens(), 100, 1e-6)
}

func TestFoldOfNothingIsEmpty(t *testing.T) {
	b := newBench(t)
	b.book.Ensure(target, Target{Backend: "a", Model: "z"}, Target{Backend: "a", Model: "b"})
	if d := b.book.Fold(start.Add(time.Second)); len(d) != 0 {
		t.Errorf("folded %+v, want nothing", d)
	}
	want := []Target{{Backend: "a", Model: "b"}, {Backend: "a", Model: "z"}, target}
	if diff := cmp.Diff(want, b.book.Targets()); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	if c := b.book.Curve(Target{Backend: "no", Model: "such"}); c == nil || c.Known() {
		t.Error("an unknown target has no unknown curve")
	}
}

// TestWindowsAreCutOnce: whenever Fold is called, each second of a stream is
// in one row.
func TestWindowsAreCutOnce(t *testing.T) {
	for _, every := range []time.Duration{300 * ms, time.Second, 7 * time.Second, time.Hour} {
		b := newBench(t).calibrated(1, 1)
		b.occ.Set(start, 2)
		s := b.open(Open{})
		last := start
		for i := range 1201 { // 60 s
			now := start.Add(time.Duration(i) * 50 * ms)
			s.Read(now, 1)
			if now.Sub(last) >= every {
				b.book.Fold(now)
				last = now
			}
		}
		s.Close(start.Add(time.Minute), true)
		b.book.Fold(start.Add(2 * time.Minute))
		p := b.book.profile(target)
		sums := &p.known
		// The last gap ends at the minute: the first of a window of its own.
		within(t, fmt.Sprintf("seconds in the rows, folded every %v", every), sums.rows.T+p.row.T, 30, 1e-6)
		within(t, "steps in the rows", sums.rows.K+p.row.K, 600, 1e-6)
		within(t, "windows", sums.bins[1].W, 12.5, 0.05)
	}
}

// TestThinWindowsAreCarriedOn: a stream of one token per second has five steps
// in a window; none is lost.
func TestThinWindowsAreCarriedOn(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	s := b.alone()
	end := steady(s, 0, time.Second, 41)
	s.Close(start.Add(end), true)
	b.book.Fold(start.Add(time.Minute))
	within(t, "steps in the rows", b.book.profile(target).known.rows.K, 40, 0.13)
	if got := b.book.profile(target).known.rows.K + b.book.profile(target).row.K; !near(got, 40) {
		t.Errorf("%v steps in the rows and in what is carried on, want 40", got)
	}
}

func TestMeanOutputAndRho(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	b.teach(1, 0, 99)
	b.teach(1, 10*time.Second, 199)
	b.book.Fold(start.Add(time.Minute))
	within(t, "mean output", b.book.Curve(target).MeanOutput(), 150, 1e-6)

	s := sumsOf(Fit{A: 0.01}, even(100, 2), func(int) float64 { return 50 })
	within(t, "rho", newCurve(&s, nil, 0.1).Rho(), 25, 1e-9) // 50 a step of two tokens
}

// TestTwoModelsShareThePrompts: on one backend each target takes the share of
// the prompts that it has of the time.
func TestTwoModelsShareThePrompts(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	other := Target{Backend: target.Backend, Model: "lora"}
	b.book.profile(other).fold.totals = totals{Calibrations: 3, Counted: 1, Chunks: 1}
	b.occ.Set(start, 2)
	x, y := b.open(Open{}), b.book.Open(other, Open{Sent: start, Occupancy: b.occ})
	for i := range 41 {
		x.Read(start.Add(time.Duration(i)*50*ms), 1)
		if i%2 == 0 {
			y.Read(start.Add(time.Duration(i)*50*ms), 1)
		}
	}
	b.occ.Set(start.Add(2*time.Second), 3)
	z := b.book.Open(other, Open{Sent: start.Add(1900 * ms), Occupancy: b.occ, PromptTokens: 2000})
	z.Read(start.Add(2*time.Second), 1)
	for _, s := range []*Stream{x, y, z} {
		s.Close(start.Add(2*time.Second), true)
	}
	b.book.Fold(start.Add(time.Minute))
	for _, of := range []Target{target, other} {
		within(t, "prompt tokens of "+of.Model, b.book.profile(of).known.bins[1].P, 1000, 1e-6)
	}
}

func TestBookIsSafeForConcurrentUse(t *testing.T) {
	b := NewBook(Options{})
	occ := NewOccupancy(start)
	var streams sync.WaitGroup
	for i := range 8 {
		streams.Go(func() {
			t := Target{Backend: "b", Model: fmt.Sprint("m", i%3)}
			for j := range 20 {
				from := time.Duration(j) * time.Second
				occ.Set(start.Add(from), i+1)
				s := b.Open(t, Open{Sent: start.Add(from), Occupancy: occ, PromptTokens: 100})
				end := steady(s, from, 40*ms, 60)
				s.Usage(Usage{CompletionTokens: 60, PromptTokens: 90})
				s.Close(start.Add(end), true)
				b.Curve(t).Low(3, 0)
			}
		})
	}
	var loop sync.WaitGroup
	loop.Go(func() {
		for i := range 50 {
			d := b.Fold(start.Add(time.Duration(i) * time.Second))
			sums := map[Target]Sums{}
			for _, d := range d {
				var s Sums
				s.Add(d, 0)
				sums[d.Target] = s
			}
			b.Apply(start.Add(time.Duration(i)*time.Second), sums, nil)
		}
	})
	streams.Wait()
	loop.Wait()
	b.Fold(start.Add(time.Hour))
	for _, target := range b.Targets() {
		if c := b.Curve(target); !c.Known() {
			t.Errorf("%v learned nothing from a hundred streams", target)
		}
	}
}
