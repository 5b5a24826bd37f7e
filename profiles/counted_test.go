package profiles

import (
	"math"
	"testing"
	"time"
)

// counting reads one chunk every gap, from the first at from; each says the
// total that goes with it.
func counting(s *Stream, from, gap time.Duration, totals ...int) (last time.Duration) {
	for i, total := range totals {
		last = from + time.Duration(i)*gap
		s.ReadCounted(start.Add(last), 1, total)
	}
	return last
}

// growing returns count totals: the first, and each more than the last.
func growing(first, each, count int) []int {
	totals := make([]int, count)
	for i := range totals {
		totals[i] = first + i*each
	}
	return totals
}

// A backend that counts at every arrival needs no calibration: the first
// stream ever teaches, while it runs and although it is aborted.
func TestCountedStreamTeachesAtOnceAlsoWhenAborted(t *testing.T) {
	b := newBench(t)
	s := b.alone()
	last := counting(s, 100*ms, 50*ms, growing(2, 3, 31)...) // 90 tokens in 1.5 s
	c, _, _ := s.Decoding()
	if !near(c.Tokens, 90) || c.Rough {
		t.Errorf("while it runs: %+v, want 90 tokens and sure of it", c)
	}
	if bin := b.bins()[0]; !near(bin.Y, 57) || !near(bin.S, 0.95) {
		t.Errorf("while it runs the target learned %v tokens in %v s, want those of its first second: 57 in 0.95", bin.Y, bin.S)
	}
	sum := s.Close(start.Add(last+500*ms), false)
	b.learned(1, 2, 90)
	if sum.Source != SourceContinuous || !near(sum.Tokens, 92) || !near(sum.FirstTokens, 2) || !near(sum.TPS, 60) || !sum.Measured {
		t.Errorf("summary %+v, want 92 tokens by continuous usage, 2 of them first, 60 tokens/s", sum)
	}
	if p := b.book.profile(target).known.totals; !near(p.Counted/p.Chunks, 92.0/31) {
		t.Errorf("a chunk is taken for %v tokens, want 92/31: streams without a count learn from those with one", p.Counted/p.Chunks)
	}
}

// Tokens are booked where they were made, not spread evenly over the chunks.
func TestCountedTokensGoToTheirOwnGap(t *testing.T) {
	b := newBench(t).calibrated(7, 1) // a ratio that must not matter
	s := b.alone()
	counting(s, 0, 100*ms, growing(1, 4, 11)...) // 40 tokens in 1 s at n = 1
	b.occ.Set(start.Add(time.Second), 2)
	last := counting(s, 1100*ms, 100*ms, growing(42, 1, 10)...) // 10 tokens in 1 s at n = 2
	s.Usage(Usage{CompletionTokens: 52})                        // and one that ends the answer
	sum := s.Close(start.Add(last), true)
	b.learned(1, 1, 40)
	b.learned(2, 1, 10)
	if !near(sum.Tokens, 52) || !near(sum.FirstTokens, 1) || !near(sum.TPS, 25) || sum.Source != SourceContinuous {
		t.Errorf("summary %+v, want 52 tokens, 1 of them first, 25 tokens/s while they arrived", sum)
	}
}

// TestCountsThatCannotBeTakenAtTheirWord: what the backend says of its tokens
// is bounded by the chunks that it showed.
func TestCountsThatCannotBeTakenAtTheirWord(t *testing.T) {
	for _, test := range []struct {
		name    string
		totals  []int
		usage   Usage
		source  Source
		tokens  float64
		learned float64 // in 2 s
		nothing bool    // learned at all
		rough   bool
	}{
		{name: "repeated usage: every count is said twice", totals: doubled(growing(2, 4, 20), 78), source: SourceContinuous, tokens: 78, learned: 76},
		{name: "a count that is missing now and then", totals: holes(growing(2, 2, 41)), source: SourceContinuous, tokens: 82, learned: 80},
		{name: "a count that goes back, as of another choice", totals: dips(growing(2, 2, 41)), source: SourceContinuous, tokens: 82, learned: 80},
		{name: "hidden reasoning before the first chunk", totals: growing(5000, 2, 41), source: SourceContinuous, tokens: 81, learned: 80},
		{
			name: "hidden reasoning that the last usage tells of", totals: growing(5000, 2, 41),
			usage:  Usage{CompletionTokens: 5081, ReasoningTokens: 4999},
			source: SourceContinuous, tokens: 82, learned: 80,
		},
		{name: "a count that stands still", totals: growing(80, 0, 41), source: SourceChunks, tokens: 41, nothing: true, rough: true},
		{name: "a count that stands still, but usage", totals: growing(80, 0, 41), usage: Usage{CompletionTokens: 80}, source: SourceUsage, tokens: 80, nothing: true, rough: true},
		{name: "more than sixteen times what was seen", totals: growing(1, 17, 41), source: SourceChunks, tokens: 41, nothing: true, rough: true},
		{name: "negative", totals: growing(-1, -1, 41), source: SourceChunks, tokens: 41, learned: 40},
		{name: "a count of nothing", totals: growing(0, 0, 41), source: SourceChunks, tokens: 41, learned: 40},
		{name: "a count that begins late", totals: append([]int{0}, growing(200, 5, 40)...), source: SourceChunks, tokens: 41, learned: 40},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t).calibrated(1, 1)
			s := b.alone()
			last := counting(s, 0, 50*ms, test.totals...)
			if c, _, _ := s.Decoding(); c.Rough != test.rough || test.rough && !near(c.Tokens, 40) {
				t.Errorf("while it runs: %+v, want rough %v", c, test.rough)
			}
			if test.usage != (Usage{}) {
				s.Usage(test.usage)
			}
			sum := s.Close(start.Add(last), true)
			if test.nothing {
				b.learnedNothing()
			} else {
				b.learned(1, 2, test.learned)
			}
			if sum.Source != test.source || !near(sum.Tokens, test.tokens) || math.IsNaN(sum.TPS) {
				t.Errorf("%v tokens by %v at %v tokens/s, want %v by %v", sum.Tokens, sum.Source, sum.TPS, test.tokens, test.source)
			}
		})
	}
}

// doubled says every total twice, and more at the end.
func doubled(totals []int, more ...int) (out []int) {
	for _, n := range totals {
		out = append(out, n, n)
	}
	return append(out, more...)
}

// holes leaves every third total out, but not the first and the last.
func holes(totals []int) []int {
	for i := 2; i < len(totals)-1; i += 3 {
		totals[i] = 0
	}
	return totals
}

// dips makes every third total, but not the first and the last, a small one.
func dips(totals []int) []int {
	for i := 2; i < len(totals)-1; i += 3 {
		totals[i] = 1
	}
	return totals
}

// A count that is only wrong from some point on teaches what it did before.
func TestACountThatRunsAwayStopsTeaching(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	s := b.alone()
	counting(s, 0, 100*ms, growing(1, 1, 11)...)
	last := counting(s, 1100*ms, 100*ms, growing(1000, 1000, 20)...)
	s.Close(start.Add(last), true)
	if bin := b.bins()[0]; bin.Y > 10 || bin.S > 1.0001 {
		t.Errorf("learned %v tokens in %v s, want no more than the 10 of the first second", bin.Y, bin.S)
	}
}

func TestCountedStreamOfABlockedClient(t *testing.T) {
	b := newBench(t)
	s := b.alone()
	counting(s, 0, 50*ms, growing(1, 2, 41)...) // 80 tokens in 2 s
	s.Blocked()
	s.ReadCounted(start.Add(5*time.Second), 60, 201) // what piled up meanwhile
	s.ReadCounted(start.Add(5*time.Second), 3, 207)
	last := counting(s, 5050*ms, 50*ms, growing(209, 2, 20)...) // 40 tokens in 1 s
	sum := s.Close(start.Add(last), true)
	b.learned(1, 3, 120)
	if sum.Measured || !near(sum.Tokens, 247) {
		t.Errorf("measured %v with %v tokens, want unmeasured with 247: the client set the pace", sum.Measured, sum.Tokens)
	}
}

// Several events in one read, and n that changes within the gap.
func TestCountedChunksOfOneInstantShareTheirGap(t *testing.T) {
	b := newBench(t)
	s := b.alone()
	s.ReadCounted(start, 1, 3)
	s.ReadCounted(start, 1, 5) // first tokens, all five
	counting(s, 10*ms, 10*ms, growing(7, 2, 5)...)
	b.occ.Set(start.Add(60*ms), 2) // half of the gap to 70 ms
	s.ReadCounted(start.Add(70*ms), 2, 19)
	s.ReadCounted(start.Add(70*ms), 1, 23)
	sum := s.Close(start.Add(70*ms), true)
	b.learned(1, 0.06, 10+4)
	b.learned(2, 0.01, 4)
	if !near(sum.FirstTokens, 5) || !near(sum.Tokens, 23) {
		t.Errorf("%v tokens, %v of them first, want 23 and 5", sum.Tokens, sum.FirstTokens)
	}
}
