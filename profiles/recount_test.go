package profiles

import (
	"math"
	"testing"
	"time"
)

// living lets a stream decode at n from begin on, a chunk of so many tokens every gap,
// with four bytes of text for each if text is set, and folds every second.
func (b *bench) living(s *Stream, begin, lasts, gap time.Duration, each int, text bool) (tokens int, end time.Duration) {
	tokens = each
	for at := time.Duration(0); at <= lasts; at += gap {
		end = begin + at
		if text {
			s.Text(4 * each)
		}
		s.Read(start.Add(end), 1)
		if at > 0 {
			tokens += each
		}
		if at%time.Second == 0 {
			b.book.Fold(start.Add(end))
		}
	}
	return tokens, end
}

// What a usage corrects goes to the rows of the windows in which the tokens were made:
// at an even pace all rows say the same, however wrong the chunks were counted.
func TestAUsageCorrectsTheRowsThatItsTokensWereMadeIn(t *testing.T) {
	for name, test := range map[string]struct{ taught, each int }{
		"too few were counted":  {2, 6},
		"too many were counted": {12, 3},
	} {
		b := newBench(t).calibrated(float64(100*test.taught), 100)
		b.occ.Set(start, 1)
		s := b.open(Open{})
		tokens, end := b.living(s, 0, 48*time.Second, 50*ms, test.each, false)
		p := b.book.profile(target)
		if k := p.known.rows.K; k != 0 {
			t.Fatalf("%s: %v steps are learned before the stream told its usage", name, k)
		}
		if known := p.knows(); known.rows.K < 100 {
			t.Errorf("%s: the curve rests on %v steps while the stream runs, want those that it counted", name, known.rows.K)
		}
		s.Usage(Usage{CompletionTokens: tokens})
		s.Close(start.Add(end), true)
		b.book.Fold(start.Add(10 * time.Minute))
		r := p.known.rows
		step := 0.05 / float64(test.each)
		if mean := r.B0 / r.A00; math.Abs(mean/step-1) > 0.03 {
			t.Errorf("%s: rows say %.4f s for a step, want %.4f", name, mean, step)
		}
		if spread := math.Sqrt(max(r.YY/r.A00-math.Pow(r.B0/r.A00, 2), 0)) / step; spread > 0.05 {
			t.Errorf("%s: rows differ by %.0f %% of a step, want the same of each", name, 100*spread)
		}
	}
}

// Quiet time is corrected as well, what was judged and what was not.
func TestAUsageCorrectsQuietTime(t *testing.T) {
	b := newBench(t).calibrated(200, 100)
	b.occ.Set(start, 1)
	s := b.open(Open{PromptTokens: 10})
	tokens, end := b.living(s, 0, 30*time.Second, 50*ms, 6, false)
	s.Usage(Usage{CompletionTokens: tokens})
	s.Close(start.Add(end), true)
	b.book.Fold(start.Add(10 * time.Minute))
	bin := &b.book.profile(target).known.bins[BinOf(1)]
	if !(bin.Tq > 20) {
		t.Fatalf("%.1f s are quiet, want most of 30", bin.Tq)
	}
	if got := bin.Tq / bin.Kq; math.Abs(got/(0.05/6)-1) > 0.02 {
		t.Errorf("a quiet step takes %.5f s, want %.5f", got, 0.05/6)
	}
}

// What was forgotten meanwhile is not taken off: the sums stay those of streams.
func TestACorrectionLeavesSumsOfStreams(t *testing.T) {
	for _, taught := range []int{60, 4000} {
		b := &bench{T: t, book: NewBook(Options{}), occ: NewOccupancy(start)}
		b.book.profile(target).fold.totals = totals{Calibrations: 3, Counted: float64(100 * taught), Chunks: 100}
		b.occ.Set(start, 1)
		b.book.Fold(start)
		s := b.open(Open{PromptTokens: 10})
		tokens, end := b.living(s, 0, 3000*time.Second+950*ms, 50*ms, 1, false)
		s.Usage(Usage{CompletionTokens: tokens})
		s.Close(start.Add(end), true)
		b.book.Fold(start.Add(time.Hour))
		known := &b.book.profile(target).known
		if err := known.Check(); err != nil {
			t.Errorf("counted %d times too much: %v", taught, err)
		}
		bin := &known.bins[BinOf(1)]
		if got := bin.Y / bin.S; taught == 60 && math.Abs(got/20-1) > 0.1 {
			t.Errorf("the bin says %.1f tokens/s, want 20: it holds nothing but that stream", got)
		}
	}
}

// A stream of hours, and a group whose windows nobody folds, keep no more than a minute.
func TestWhatWaitsIsBounded(t *testing.T) {
	b := newBench(t).calibrated(300, 100)
	b.occ.Set(start, 1)
	s := b.open(Open{})
	for at := time.Duration(0); at < time.Hour; at += 200 * ms {
		s.Read(start.Add(at), 1)
	}
	if n := len(s.held.counted); n != recountWindows {
		t.Errorf("the stream remembers %d windows, want %d", n, recountWindows)
	}
	sum := 0.0
	for _, c := range s.held.counted {
		sum += c.Y
	}
	if want := float64(s.shown.chunks); sum < 0.99*want {
		t.Errorf("they hold %.0f chunks of %.0f: what there is no room for is not the oldest window's", sum, want)
	}
	if n := len(b.book.profile(target).waiting); n != recountWindows {
		t.Errorf("%d rows wait, want %d", n, recountWindows)
	}
}

// What rows have forgotten of a long stream is not corrected in them: an hour of tokens
// that were not counted would make five seconds as fast as nothing is.
func TestALongStreamCorrectsWhatRowsRemember(t *testing.T) {
	for _, lasts := range []time.Duration{3 * time.Minute, time.Hour} {
		b := &bench{T: t, book: NewBook(Options{}), occ: NewOccupancy(start)}
		b.book.profile(target).fold.totals = totals{Calibrations: 3, Counted: 200, Chunks: 100}
		b.occ.Set(start, 1)
		b.book.Fold(start)
		s := b.open(Open{})
		tokens, end := b.living(s, 0, lasts, 50*ms, 6, false)
		s.Usage(Usage{CompletionTokens: tokens})
		s.Close(start.Add(end), true)
		b.book.Fold(start.Add(end + 2*time.Minute))
		r := b.book.profile(target).known.rows
		if step, want := r.T/r.K, 0.05/6; math.Abs(step/want-1) > 0.08 {
			t.Errorf("after %v rows say %.4f s for a step, want %.4f", lasts, step, want)
		}
	}
}

// Replicas correct what they counted at the same moment, and none knows of the others: the
// tokens beside prompts stay a sum of streams, and become about what was made.
func TestReplicasCorrectAtOnce(t *testing.T) {
	var store Sums
	books, streams := [3]*Book{}, [3]*Stream{}
	for i := range books {
		books[i] = NewBook(Options{})
		books[i].profile(target).fold.totals = totals{Calibrations: 3, Counted: 2000, Chunks: 100}
	}
	exchange := func(at time.Duration) {
		var acked [len(books)][]Delta
		for i, b := range books {
			acked[i] = b.Fold(start.Add(at))
			for _, d := range acked[i] {
				store.Add(d, defaultHalfLife)
				if err := store.Check(); err != nil {
					t.Fatalf("after %v: %v", at, err)
				}
			}
		}
		for i, b := range books {
			b.Apply(start.Add(at), map[Target]Sums{target: store}, acked[i])
		}
	}
	exchange(0)
	at, tokens := time.Duration(0), 0
	for range 20 {
		for i, b := range books {
			streams[i] = b.Open(target, Open{Sent: start.Add(at)})
		}
		n := 0
		for until := at + 12*time.Second; at < until; at += 50 * ms {
			for _, s := range streams {
				s.Read(start.Add(at), 1)
			}
			n++
			if at%time.Second == 0 {
				exchange(at)
			}
		}
		for _, s := range streams {
			s.Usage(Usage{CompletionTokens: n})
			s.Close(start.Add(at), true)
		}
		exchange(at)
		tokens += 3 * n
	}
	exchange(at + time.Minute)
	if m := store.mix; !(m.Y/m.T > 0.7*20 && m.Y/m.T < 1.3*20) {
		t.Errorf("%.0f tokens in %.0f s beside prompts, want 20 a second", m.Y, m.T)
	}
}

// Rows that wait are shifted with all that is known, but those since the change.
func TestRowsThatWaitAreShifted(t *testing.T) {
	p := newBench(t).calibrated(300, 100).book.profile(target)
	p.since = &Sums{}
	p.waiting = []waitingRow{{row: row{T: 4}}, {row: row{T: 4}, changed: true}}
	p.move(math.Log(2), true)
	if before, since := p.waiting[0].T, p.waiting[1].T; math.Abs(before-8) > 1e-9 || since != 4 {
		t.Errorf("a shift by two made 4 s %v, and 4 s since the change %v; want 8 and 4", before, since)
	}
	p.move(math.Log(2), false)
	if since := p.waiting[1].T; math.Abs(since-8) > 1e-9 {
		t.Errorf("a shift that spares nothing made 4 s %v, want 8", since)
	}
}

// Streams whose chunks hold from one token to fifty teach what a chunk and what a byte of
// text holds. Whoever comes next is counted by that before its usage, of whatever size.
func TestStreamsOfTheirOwnChunks(t *testing.T) {
	b := newBench(t)
	now := time.Duration(0)
	for i := range 24 {
		each := []int{50, 1, 30, 2, 50, 1}[i%6]
		n := []int{2, 2, 16, 16, 16, 2}[i%6]
		b.occ.Set(start.Add(now), n)
		s := b.open(Open{Sent: start.Add(now)})
		tokens, end := b.living(s, now, 20*time.Second, time.Duration(each)*20*ms, each, true)
		s.Usage(Usage{CompletionTokens: tokens})
		s.Close(start.Add(end), true)
		now = end + time.Second
		b.book.Fold(start.Add(now))
	}
	known := &b.book.profile(target).known
	for _, n := range []int{2, 16} {
		if bin := &known.bins[BinOf(n)]; math.Abs(bin.Y/bin.S/50-1) > 0.02 {
			t.Errorf("at n = %d streams are said to get %.1f tokens/s, want 50", n, bin.Y/bin.S)
		}
		if f := b.book.Curve(target).fill.at(n); math.Abs(f-1) > 0.02 {
			t.Errorf("at n = %d what is counted is said to hold %.2f times the mean, want 1: the text has told it", n, f)
		}
	}
	for _, each := range []int{1, 50} {
		b.occ.Set(start.Add(now), 2)
		s := b.open(Open{Sent: start.Add(now)})
		_, end := b.living(s, now, 20*time.Second, time.Duration(each)*20*ms, each, true)
		if c, _, _ := s.Decoding(); c.Rough || math.Abs(c.Tokens/1000-1) > 0.05 {
			t.Errorf("a stream of %d tokens a chunk is said to have made %.0f (%v), want 1000", each, c.Tokens, c.Rough)
		}
		s.Close(start.Add(end), false)
		now = end + time.Second
	}
}

// A stream that began before anything was known is counted by what finished streams have
// taught when it begins to hand over, however many tokens its own chunks hold.
func TestAStreamThatBeganFirstIsCountedByItsText(t *testing.T) {
	b := newBench(t)
	b.occ.Set(start, 4)
	first := b.open(Open{})
	for i := range 3 {
		s := b.open(Open{})
		tokens, end := b.living(s, 0, 3*time.Second, 400*ms, 20+i, true)
		s.Usage(Usage{CompletionTokens: tokens})
		s.Close(start.Add(end), true)
	}
	b.living(first, 4*time.Second, 10*time.Second, 40*ms, 2, true)
	if c, _, _ := first.Decoding(); c.Rough || math.Abs(c.Tokens/500-1) > 0.05 {
		t.Errorf("250 chunks of two tokens are said to be %.0f (%v), want 500", c.Tokens, c.Rough)
	}
}
