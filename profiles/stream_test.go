package profiles

import (
	"math"
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

var target = Target{Backend: "b", Model: "m"}

// bench is a book and a backend for tests that tell every arrival by hand.
type bench struct {
	*testing.T
	book *Book
	occ  *Occupancy
}

func newBench(t *testing.T) *bench {
	return &bench{T: t, book: NewBook(Options{HalfLife: 1e6 * time.Hour}), occ: NewOccupancy(start)}
}

// calibrated makes tokens per chunk known, as three finished streams do, and
// leaves no other trace.
func (b *bench) calibrated(tokens, chunks float64) *bench {
	p := b.book.profile(target)
	p.fold.totals = totals{Calibrations: 3, Counted: tokens, Chunks: chunks}
	b.book.Fold(start)
	return b
}

func (b *bench) open(o Open) *Stream {
	o.Occupancy = b.occ
	if o.Sent.IsZero() {
		o.Sent = start
	}
	return b.book.Open(target, o)
}

// alone opens a stream on a backend that has no other.
func (b *bench) alone() *Stream {
	b.occ.Set(start, 1)
	return b.open(Open{})
}

// steady reads one chunk every gap, from the first at from, count times.
func steady(s *Stream, from, gap time.Duration, count int) (last time.Duration) {
	for i := range count {
		last = from + time.Duration(i)*gap
		s.Read(start.Add(last), 1)
	}
	return last
}

// bins returns what the target learned, by bin.
func (b *bench) bins() *[NumBins]binSums {
	b.book.Fold(start.Add(time.Hour))
	return &b.book.profile(target).known.bins
}

// learnedNothing fails when the target has any exposure.
func (b *bench) learnedNothing() {
	b.Helper()
	for i, bin := range b.bins() {
		if bin.S != 0 || bin.Y != 0 {
			b.Errorf("bin %d learned %.3f s and %.1f tokens, want nothing", i, bin.S, bin.Y)
		}
	}
}

func (b *bench) learned(n int, seconds, tokens float64) {
	b.Helper()
	bin := b.bins()[BinOf(n)]
	if math.Abs(bin.S-seconds) > 1e-6 || math.Abs(bin.Y-tokens) > 1e-6 {
		b.Errorf("n = %d learned %.4f s and %.4f tokens, want %.4f and %.4f", n, bin.S, bin.Y, seconds, tokens)
	}
}

func TestStreamBooksByConcurrency(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	b.occ.Set(start.Add(100*ms), 2)
	s := b.open(Open{})
	steady(s, 100*ms, 50*ms, 11) // 10 tokens in 500 ms at n = 2
	b.occ.Set(start.Add(600*ms), 4)
	steady(s, 700*ms, 100*ms, 5) // 5 tokens in 500 ms at n = 4
	sum := s.Close(start.Add(2*time.Second), true)

	b.learned(2, 0.5, 10)
	b.learned(4, 0.5, 5)
	got := b.bins()[BinOf(4)]
	want := binSums{S: 0.5, T: 0.125, Y: 5, K: 1.25, R: 10, N: 20, W: 1, SS: 0.25, YY: 25, SY: 2.5}
	if !near(got.S, want.S) || !near(got.T, want.T) || !near(got.K, want.K) || !near(got.R, want.R) || !near(got.N, want.N) ||
		!near(got.W, want.W) || !near(got.SS, want.SS) || !near(got.YY, want.YY) || !near(got.SY, want.SY) {
		t.Errorf("bin of 4 is %+v, want %+v", got, want)
	}
	if !near(sum.TPS, 15) || sum.Decode != time.Second || !near(sum.Tokens, 16) || sum.FirstTokens != 1 || !sum.Measured ||
		sum.Source != SourceChunks || sum.Arrivals != 16 || !near(sum.MeanN, 3) {
		t.Errorf("summary %+v, want 16 chunks, 1 of them first, 15 tokens/s over 1 s at mean n 3", sum)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(b)) }

// TestTokensAreCreditedOverTheGap is an engine whose streams end within the
// burst of a step: booked at the instant of arrival, the rest of the step's
// tokens land at a level with no exposure.
func TestTokensAreCreditedOverTheGap(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	const streams = 6
	step := func(n int) time.Duration { return time.Duration(n) * 10 * ms } // TPOT(n) = n·10 ms
	var running []*Stream
	left := map[*Stream]int{}
	var now time.Duration
	var seconds, instant [streams + 1]float64 // what booking at the instant would say
	for range 200 {
		for len(running) < streams {
			s := b.open(Open{Sent: start.Add(now)})
			running = append(running, s)
			b.occ.Set(start.Add(now), len(running))
			s.Read(start.Add(now), 1)
			left[s] = 20 + 7*len(running)
		}
		for len(running) > 1 { // to the last but one, then refill
			n := len(running)
			now += step(n)
			seconds[n] += float64(n) * step(n).Seconds()
			for i, s := range slices.Clone(running) {
				at := now + time.Duration(i)*50*time.Microsecond
				instant[len(running)]++
				s.Read(start.Add(at), 1)
				if left[s]--; left[s] == 0 {
					running = slices.DeleteFunc(running, func(o *Stream) bool { return o == s })
					b.occ.Set(start.Add(at), len(running))
					s.Usage(Usage{CompletionTokens: int(s.shown.chunks)})
					s.Close(start.Add(at), true)
				}
			}
		}
	}
	var worst float64
	for n := 2; n <= streams; n++ {
		want := 1 / step(n).Seconds()
		bin := b.bins()[BinOf(n)]
		if got := bin.Y / bin.S; math.Abs(got/want-1) > 0.01 {
			t.Errorf("%d streams run at %.3f tokens/s, want %.3f", n, got, want)
		}
		worst = max(worst, math.Abs(instant[n]/seconds[n]/want-1))
	}
	if worst < 0.01 {
		t.Errorf("booked at the instant the worst level is only %.2f %% wrong: the test shows nothing", 100*worst)
	}
}

func TestStreamHandsOverEachSecond(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	s := b.alone()
	steady(s, 0, 50*ms, 26) // to 1.25 s
	deltas := b.book.Fold(start.Add(1300 * ms))
	if len(deltas) != 1 || !near(deltas[0].Sums.bins[0].Y, 19) {
		t.Fatalf("a stream that runs for 1.25 s handed over %+v, want the 19 tokens of its first second", deltas)
	}
}

func TestUncalibratedStreamWaitsForItsUsage(t *testing.T) {
	b := newBench(t)
	b.occ.Set(start, 1)
	withUsage := func(from time.Duration) {
		s := b.open(Open{Sent: start.Add(from)})
		last := steady(s, from, 100*ms, 21)
		s.Usage(Usage{CompletionTokens: 1 + 20*2})
		s.Close(start.Add(last), true)
	}
	without := b.open(Open{})
	steady(without, 0, 100*ms, 21)
	without.Close(start.Add(2*time.Second), true)
	b.learnedNothing()

	withUsage(2 * time.Second)
	withUsage(4 * time.Second)
	held := b.open(Open{Sent: start})
	steady(held, 0, 100*ms, 21)
	b.learned(1, 4, 80) // two streams of 20 chunks with 2 tokens each
	withUsage(6 * time.Second)
	held.Read(start.Add(2100*ms), 1) // the ratio rests on three: all it kept goes out
	held.Read(start.Add(3200*ms), 1)
	b.learned(1, 6+2.1, 120+42)
}

func TestUsageIsSpreadOverTheLife(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	s := b.alone()
	steady(s, 0, 100*ms, 21) // 20 chunks in 2 s at n = 1
	b.occ.Set(start.Add(2*time.Second), 2)
	last := steady(s, 2200*ms, 200*ms, 10) // 10 chunks in 2 s at n = 2
	s.Usage(Usage{CompletionTokens: 61})   // 31 chunks, the first of one token
	sum := s.Close(start.Add(last), true)
	b.learned(1, 2, 40)
	b.learned(2, 2, 20)
	if sum.Source != SourceUsage || !near(sum.Tokens, 61) || !near(sum.FirstTokens, 1) || !near(sum.TPS, 15) {
		t.Errorf("summary %+v, want 61 tokens by usage, one of them first, 15 tokens/s", sum)
	}
}

func TestAbortedStreamSpentItsLastGap(t *testing.T) {
	for _, complete := range []bool{true, false} {
		b := newBench(t).calibrated(1, 1)
		s := b.alone()
		steady(s, 0, 50*ms, 11)
		s.Close(start.Add(700*ms), complete)
		want := 0.5
		if !complete {
			want = 0.7
		}
		b.learned(1, want, 10)
	}
}

func TestChunksOfOneInstantShareTheirGap(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	s := b.alone()
	s.Read(start, 1)
	s.Read(start, 1) // first tokens, both
	steady(s, 10*ms, 10*ms, 5)
	b.occ.Set(start.Add(60*ms), 2) // half of the gap to 70 ms
	s.Read(start.Add(70*ms), 1)
	s.Read(start.Add(70*ms), 1)
	s.Read(start.Add(65*ms), 1) // backwards: the same instant
	sum := s.Close(start.Add(70*ms), true)
	b.learned(1, 0.06, 5+1.5)
	b.learned(2, 0.01, 1.5)
	if sum.Arrivals != 7 || sum.FirstTokens != 2 {
		t.Errorf("%d arrivals and %v first tokens, want 7 and 2", sum.Arrivals, sum.FirstTokens)
	}
}

func TestNotEvidence(t *testing.T) {
	read := func(s *Stream, count int) time.Duration { return steady(s, 100*ms, 50*ms, count) }
	for _, test := range []struct {
		name     string
		open     Open
		play     func(s *Stream) (end time.Duration)
		measured bool
		source   Source
		tokens   float64
	}{
		{
			name: "a whole answer at once", source: SourceUsage, tokens: 80,
			play: func(s *Stream) time.Duration {
				for range 50 {
					s.Read(start.Add(2*time.Second), 1)
				}
				s.Usage(Usage{CompletionTokens: 80})
				return 2 * time.Second
			},
		},
		{
			name: "a whole answer in several reads", source: SourceUsage, tokens: 80,
			play: func(s *Stream) time.Duration {
				end := steady(s, 2*time.Second, ms, 15)
				s.Usage(Usage{CompletionTokens: 80})
				return end
			},
		},
		{
			name: "fewer than five arrivals", source: SourceUsage, tokens: 4,
			play: func(s *Stream) time.Duration {
				end := read(s, 4)
				s.Usage(Usage{CompletionTokens: 4})
				return end
			},
		},
		{
			name: "several sequences", open: Open{Sequences: 2}, source: SourceUsage, tokens: 40,
			play: func(s *Stream) time.Duration {
				end := read(s, 40)
				s.Usage(Usage{CompletionTokens: 40})
				return end
			},
		},
		{
			name: "nothing at all", source: SourceNone,
			play: func(s *Stream) time.Duration {
				s.Usage(Usage{CompletionTokens: 40})
				s.Read(start.Add(time.Second), 0)
				return time.Second
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t).calibrated(1, 1)
			b.occ.Set(start, 1)
			s := b.open(test.open)
			sum := s.Close(start.Add(test.play(s)), true)
			b.learnedNothing()
			if sum.Measured || !math.IsNaN(sum.TPS) {
				t.Errorf("measured at %v tokens/s, want unmeasured", sum.TPS)
			}
			if sum.Source != test.source || !near(sum.Tokens, test.tokens) {
				t.Errorf("%v tokens by %v, want %v by %v", sum.Tokens, sum.Source, test.tokens, test.source)
			}
			if c := b.book.profile(target).known.totals.Calibrations; math.Abs(c-3) > 1e-9 {
				t.Errorf("tokens per chunk rests on %v streams, want the 3 from before", c)
			}
		})
	}
}

// TestUnbelievableUsage: the stream itself is evidence, by its chunks; the
// usage is none.
func TestUnbelievableUsage(t *testing.T) {
	const chunks = 41
	for _, test := range []struct {
		name    string
		usages  []Usage
		shown   bool // reasoning text was seen
		source  Source
		tokens  float64
		learned float64
	}{
		{"believable", []Usage{{CompletionTokens: 81}}, false, SourceUsage, 81, 80},
		{"more than sixteen times what was seen", []Usage{{CompletionTokens: 16*chunks + 1}}, false, SourceChunks, 41, 40},
		{"next to nothing of what was seen", []Usage{{CompletionTokens: 2}}, false, SourceChunks, 41, 40},
		{"negative", []Usage{{CompletionTokens: -7}}, false, SourceChunks, 41, 40},
		{"zero", []Usage{{}}, false, SourceChunks, 41, 40},
		{"hidden reasoning", []Usage{{CompletionTokens: 541, ReasoningTokens: 500}}, false, SourceUsage, 41, 40},
		{"reasoning that was shown", []Usage{{CompletionTokens: 81, ReasoningTokens: 41}}, true, SourceUsage, 81, 80},
		{"more reasoning than answer", []Usage{{CompletionTokens: 81, ReasoningTokens: 90}}, false, SourceChunks, 41, 40},
		{"negative reasoning", []Usage{{CompletionTokens: 81, ReasoningTokens: -90}}, false, SourceUsage, 81, 80},
		{"repeated", []Usage{{CompletionTokens: 81}, {CompletionTokens: 81}, {CompletionTokens: 81}}, false, SourceUsage, 81, 80},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t).calibrated(1, 1)
			s := b.alone()
			end := steady(s, 0, 50*ms, chunks)
			if test.shown {
				s.Reasoning()
			}
			for _, u := range test.usages {
				s.Usage(u)
			}
			sum := s.Close(start.Add(end), true)
			b.learned(1, 2, test.learned)
			if sum.Source != test.source || !near(sum.Tokens, test.tokens) || !sum.Measured {
				t.Errorf("%v tokens by %v, measured %v, want %v by %v, measured", sum.Tokens, sum.Source, sum.Measured, test.tokens, test.source)
			}
		})
	}
}

func TestCumulativeUsageCountsOnce(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	s := b.alone()
	var end time.Duration
	for i := range 41 {
		end = time.Duration(i) * 50 * ms
		s.Read(start.Add(end), 1)
		s.Usage(Usage{CompletionTokens: 1 + 3*i})
	}
	sum := s.Close(start.Add(end), false)
	b.learned(1, 2, 120)
	if sum.Source != SourceContinuous || !near(sum.Tokens, 121) {
		t.Errorf("%v tokens by %v, want 121 by continuous", sum.Tokens, sum.Source)
	}
}

func TestBlockedClientIsNoEvidence(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	s := b.alone()
	steady(s, 0, 50*ms, 41) // 2 s, 40 tokens
	s.Blocked()
	s.Read(start.Add(5*time.Second), 60) // what piled up meanwhile
	s.Read(start.Add(5*time.Second), 3)
	end := steady(s, 5050*ms, 50*ms, 20) // 1 s, 20 tokens
	sum := s.Close(start.Add(end), true)
	b.learned(1, 3, 60)
	if sum.Measured || !near(sum.Tokens, 124) {
		t.Errorf("measured %v with %v tokens, want unmeasured with 124: the client set the pace", sum.Measured, sum.Tokens)
	}
}

func TestBlockedAtTheEndIsNoEvidence(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	s := b.alone()
	steady(s, 0, 50*ms, 41)
	s.Blocked()
	s.Close(start.Add(9*time.Second), false)
	b.learned(1, 2, 40)
}

func TestShortBlockStillMeasures(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	s := b.alone()
	steady(s, 0, 50*ms, 41)
	s.Blocked()
	end := steady(s, 2050*ms, 50*ms, 40)
	sum := s.Close(start.Add(end), true)
	b.learned(1, 3.95, 79)
	if !sum.Measured || !near(sum.TPS, 20) {
		t.Errorf("measured %v at %v tokens/s, want 20", sum.Measured, sum.TPS)
	}
}

func TestPromptIsBookedBesideTheOthers(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	b.occ.Set(start.Add(900*ms), 2) // alone until then
	first := b.open(Open{})
	first.Close(start.Add(steady(first, 900*ms, 50*ms, 3)), true)
	// 5000 tokens take 200 ms: from 800 ms; half of it beside two streams.
	s := b.open(Open{PromptTokens: 5000})
	b.occ.Set(start.Add(time.Second), 3)
	end := steady(s, time.Second, 50*ms, 21)
	s.Usage(Usage{CompletionTokens: 21, PromptTokens: 5000, CachedTokens: 1000})
	s.Close(start.Add(end), true)

	var prompts, load float64
	for _, bin := range b.bins() {
		prompts, load = prompts+bin.P, load+bin.PN
	}
	// The stream's share of the time: it decoded for 1 s at n = 3, the other
	// one for 0.1 s at n = 2.
	share := (1.0 / 3) / (1.0/3 + 0.1/2)
	if want := share * 2000; math.Abs(prompts-want) > 1e-6 || math.Abs(load-2*want) > 1e-6 {
		t.Errorf("%.2f prompt tokens, %.2f × n, want %.2f and %.2f: half of the 4000 that were not cached", prompts, load, want, 2*want)
	}
}

// What a prefix cache is expected to have is taken off a prompt only where usages
// have told of one: else the window of its first token would be short of it, and the
// correction come too late for the price of prompts. The last usage counts of a prompt
// most of which was expected there.
func TestCachesThatNobodyToldOfTakeNothingOffAPrompt(t *testing.T) {
	for _, test := range []struct {
		told []int // by usages, of prompts with 300 of 400 tokens expected in the cache
		want float64
	}{{[]int{0}, 5000}, {[]int{100}, 1000}, {[]int{100, 0}, 5000}, {[]int{0, 100}, 1000}} {
		b := newBench(t).calibrated(1, 1)
		b.occ.Set(start, 1)
		end := time.Duration(0)
		for _, told := range test.told {
			before := b.open(Open{Sent: start.Add(end), PromptTokens: 400, CachedTokens: 300})
			end = steady(before, end+time.Second, 50*ms, 21)
			before.Usage(Usage{CompletionTokens: 21, PromptTokens: 400 + told, CachedTokens: told})
			before.Close(start.Add(end), true)
		}
		s := b.open(Open{Sent: start.Add(end), PromptTokens: 5000, CachedTokens: 4000})
		s.Read(start.Add(end+time.Second), 1)
		if s.start.prompt != test.want {
			t.Errorf("after usages with %d cached tokens %v of 5000 are booked where 4000 may be cached, want %v", test.told, s.start.prompt, test.want)
		}
	}
}

func TestDecodingTellsTheStreamSoFar(t *testing.T) {
	b := newBench(t).calibrated(2, 1)
	s := b.alone()
	if c, first, last := s.Decoding(); c != (Count{}) || !first.IsZero() || !last.IsZero() {
		t.Errorf("before the first token: %v, %v, %v, want nothing", c, first, last)
	}
	steady(s, 300*ms, 50*ms, 5)
	c, first, last := s.Decoding()
	if !near(c.Tokens, 8) || c.Rough || !first.Equal(start.Add(300*ms)) || !last.Equal(start.Add(500*ms)) {
		t.Errorf("%+v from %v to %v, want 8 tokens from 300 ms to 500 ms", c, first.Sub(start), last.Sub(start))
	}
}

// Until three streams have finished with usage nobody knows what a chunk is; a
// stream that was there before learns it when it next hands over.
func TestDecodingIsRoughUntilTokensPerChunkIsKnown(t *testing.T) {
	b := newBench(t)
	b.occ.Set(start, 1)
	running := b.open(Open{})
	end := steady(running, 0, 50*ms, 21)
	if c, _, _ := running.Decoding(); !near(c.Tokens, 20) || !c.Rough {
		t.Errorf("got %+v, want at least 20 tokens", c)
	}
	b.calibrated(4, 1)
	if c, _, _ := b.open(Open{}).Decoding(); c.Rough {
		t.Error("a stream that begins afterwards does not know what a chunk is")
	}
	steady(running, end+50*ms, 50*ms, 21)
	if c, _, _ := running.Decoding(); !near(c.Tokens, 4*41) || c.Rough {
		t.Errorf("got %+v, want 164 tokens, and sure of it", c)
	}
}

func TestCloseTwiceIsOnce(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	s := b.alone()
	end := steady(s, 0, 50*ms, 21)
	one := s.Close(start.Add(end), true)
	s.Read(start.Add(end+time.Second), 5)
	s.Blocked()
	if two := s.Close(start.Add(end+time.Minute), false); two != one {
		t.Errorf("the second Close says %+v, the first %+v", two, one)
	}
	b.learned(1, 1, 20)
}

// A first arrival says how many tokens it holds: by the backend's count, else by its
// text, of which too few are taken while no stream has told what a byte of it is.
func TestFirstTokens(t *testing.T) {
	for _, c := range []struct {
		name        string
		perByte     float64
		text, total int
		sequences   int
		want        float64
	}{
		{"counted", 0.25, 200, 60, 1, 60},
		{"by text", 0.25, 200, 0, 1, 50},
		{"of two sequences", 0.25, 200, 0, 2, 25},
		{"of text that nobody knows yet", 0, 200, 0, 1, 25},
		{"a word", 0.25, 7, 0, 1, 1.75},
		{"a long word that nobody knows yet", 0, 24, 0, 1, 3},
		{"nothing", 0.25, 0, 0, 1, 1},
	} {
		s := &Stream{sequences: c.sequences}
		s.unit.perByte = c.perByte
		s.Text(c.text)
		if got := s.FirstTokens(c.total); got != c.want {
			t.Errorf("%s: %v tokens, want %v", c.name, got, c.want)
		}
	}
}

// An answer that nobody counted and that came whole in one chunk has the tokens of its
// text, as an estimate. While chunks tell about as much as the text does, they count.
func TestTheTextOfAnAnswerCountsWhereItsChunksHoldMore(t *testing.T) {
	for _, c := range []struct {
		name  string
		texts []int // bytes of each chunk, which mostly hold four
		usage int
		want  float64
		by    Source
	}{
		{"whole in one chunk", []int{4000}, 0, 1000, SourceEstimate},
		{"a word, and the rest", []int{4, 4000}, 0, 1001, SourceEstimate},
		{"a token each", []int{4, 4, 4, 4, 4, 4}, 0, 6, SourceChunks},
		{"a language of longer tokens", []int{12, 12, 12, 12, 12, 12}, 0, 6, SourceChunks},
		{"no text, as of audio", []int{0, 0, 0}, 0, 3, SourceChunks},
		{"counted", []int{4000}, 990, 990, SourceUsage},
	} {
		b := newBench(t)
		sums := sumsOf(Fit{A: 0.01}, even(1000, 1, 2, 4, 8), flat)
		sums.totals = totals{Calibrations: 3, Counted: 1003, Chunks: 1003, text: textSums{Chunks: 1000, Bytes: 4000}}
		b.book.Ensure(target)
		b.book.Apply(start, map[Target]Sums{target: sums}, nil)
		s := b.open(Open{Sent: start, PromptTokens: 100})
		at := start
		for _, text := range c.texts {
			at = at.Add(50 * ms)
			s.Text(text)
			s.Read(at, 1)
		}
		if c.usage > 0 {
			s.Usage(Usage{PromptTokens: 100, CompletionTokens: c.usage})
		}
		got := s.Close(at, false)
		if math.Abs(got.Tokens-c.want) > 1e-6 || got.Source != c.by || got.Measured != (c.by == SourceChunks && len(c.texts) >= minArrivals) {
			t.Errorf("%s: %v tokens by %v, measured %v; want %v by %v", c.name, got.Tokens, got.Source, got.Measured, c.want, c.by)
		}
	}
}
