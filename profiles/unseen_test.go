package profiles

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// collecting is a bench whose target makes 100 tokens/s for each of any number of
// streams, and collects 50 of them, of four bytes each, for every chunk. Its curve is
// too young for windows to be judged by it.
func collecting(t *testing.T) *bench {
	b := newBench(t)
	sums := sumsOf(Fit{A: 0.01}, even(400, 1, 2, 4, 8), flat)
	sums.totals = totals{Calibrations: 3, Counted: 5003, Chunks: 103, text: textSums{Chunks: 100, Bytes: 20_000}}
	b.book.Ensure(target)
	b.book.Apply(start, map[Target]Sums{target: sums}, nil)
	return b
}

// chunk reads 50 tokens at at.
func chunk(s *Stream, at time.Duration) {
	s.Text(200)
	s.Read(start.Add(at), 1)
}

// While one stream runs another one begins, whose first fifty tokens come together. It
// decoded for 0.49 s before, so the first was not alone in that time.
func TestAFirstChunkOfFiftyTokensDecodedBefore(t *testing.T) {
	for _, test := range []struct {
		name string
		grid time.Duration // the first stream's chunks come so often
	}{
		{"chunks as long", 500 * ms},
		{"chunks half as long", 250 * ms},
		{"a token a chunk", 10 * ms},
	} {
		b := collecting(t)
		before := *b.bins()
		one := b.open(Open{Sent: start, PromptTokens: 100})
		b.occ.Set(start.Add(time.Second), 1)
		chunk(one, time.Second)
		var two *Stream
		end := 6 * time.Second
		for at := time.Second + test.grid; at <= end; at += test.grid {
			if at == 3*time.Second {
				two = b.open(Open{Sent: start.Add(2 * time.Second), PromptTokens: 100})
				b.occ.Set(start.Add(at), 2)
				chunk(two, at)
			}
			one.Text(int(test.grid / (10 * ms) * 4))
			one.Read(start.Add(at), 1)
		}
		one.Close(start.Add(end), true)
		after := b.bins()
		within(t, test.name+", seconds alone", after[0].S-before[0].S, 3-0.49-1, 0.002)
		within(t, test.name+", seconds beside the other", after[1].S-before[1].S, 3+0.49, 0.002)
	}
}

// The prompt was prefilled before the tokens of the first chunk, not beside them.
func TestAPromptIsPrefilledBeforeAFirstChunkOfMany(t *testing.T) {
	b := collecting(t)
	b.occ.Set(start, 1)
	b.occ.Set(start.Add(2400*ms), 4) // 0.11 s before the first token was made
	b.occ.Set(start.Add(2600*ms), 9)
	s := b.open(Open{Sent: start, PromptTokens: 2500}) // 0.1 s
	b.occ.Set(start.Add(3*time.Second), 10)
	chunk(s, 3*time.Second)
	p := &s.start.prefill
	if p.len != 1 || p.cells[0].bin != BinOf(4) || !near(p.cells[0].share, 1) {
		t.Errorf("the prompt lies at %+v, want all of it at n = 4", p.cells[:p.len])
	}
	g := s.profile.group
	within(t, "end of its prefill", g.trail.spans[g.trail.prefills-1].to.Seconds(), 2.51, 0.001)
}

// What is believed of a first arrival, and for how long the stream had decoded then.
func TestForHowLongAStreamDecodedUnseen(t *testing.T) {
	for _, test := range []struct {
		name   string
		open   Open
		wait   time.Duration // until the first arrival
		bytes  int
		total  int
		before func(b *bench, s *Stream)
		want   time.Duration
	}{
		{"fifty tokens", Open{PromptTokens: 100}, 2 * time.Second, 200, 0, nil, 490 * ms},
		{"of two sequences", Open{PromptTokens: 100, Sequences: 2}, 2 * time.Second, 200, 0, nil, 240 * ms},
		{"counted by the backend", Open{PromptTokens: 100}, 2 * time.Second, 4, 101, nil, time.Second},
		{"one long token", Open{PromptTokens: 100}, 2 * time.Second, 16, 0, nil, 0},
		{"longer than it waited beside its prefill", Open{PromptTokens: 2500}, 400 * ms, 200, 0, nil, 300 * ms},
		{"no time but for its prefill", Open{PromptTokens: 25_000}, time.Second, 200, 0, nil, 0},
		{"a whole answer of a cache", Open{PromptTokens: 100}, 50 * ms, 2000, 0, nil, 0},
		{"a megabyte", Open{PromptTokens: 100}, time.Minute, 1 << 20, 0, nil, 0},
		{"a megabyte after an hour", Open{PromptTokens: 100}, time.Hour, 1 << 20, 0, nil, longestUnseen},
		{"a count out of the air", Open{PromptTokens: 100}, time.Minute, 4, 1 << 40, nil, 0},
		{"the client blocked", Open{PromptTokens: 100}, 2 * time.Second, 200, 0, func(_ *bench, s *Stream) { s.Blocked() }, 0},
		{"a clock set back", Open{PromptTokens: 100}, -time.Second, 200, 0, nil, 0},
	} {
		b := collecting(t)
		from := 2 * time.Second
		test.open.Sent = start.Add(from)
		s := b.open(test.open)
		if test.before != nil {
			test.before(b, s)
		}
		s.Text(test.bytes)
		s.ReadCounted(start.Add(from+test.wait), 1, test.total)
		if got := s.unseen.time.Round(ms); got != test.want {
			t.Errorf("%s: had decoded for %v, want %v", test.name, got, test.want)
		}
	}
	t.Run("an unknown curve", func(t *testing.T) {
		b := newBench(t)
		b.book.profile(target).fold.totals = totals{Calibrations: 3, Counted: 5003, Chunks: 103, text: textSums{Chunks: 100, Bytes: 20_000}}
		b.book.Fold(start)
		s := b.open(Open{Sent: start})
		if chunk(s, 2*time.Second); s.unit.perByte != 0.25 || s.unseen.time != 0 {
			t.Errorf("%v tokens a byte, decoded for %v; want 0.25, and nothing while nobody knows how long a token takes", s.unit.perByte, s.unseen.time)
		}
	})
}

// What is delayed is not lost: a stream has as many seconds and tokens, at levels that do
// not change, as if it were booked at once.
func TestDelayedIsNotLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type event struct {
			gap     time.Duration
			text    int
			blocked bool
		}
		gaps := rapid.SampledFrom([]time.Duration{0, ms, 20 * ms, 400 * ms, 3 * time.Second})
		events := make([]event, rapid.IntRange(6, 60).Draw(t, "arrivals"))
		for i := range events {
			events[i] = event{gaps.Draw(t, "gap"), rapid.IntRange(1, 300).Draw(t, "text"), rapid.IntRange(0, 9).Draw(t, "blocked") == 0}
		}
		complete := rapid.Bool().Draw(t, "complete")
		first := rapid.IntRange(40, 400).Draw(t, "first")
		learn := func(waited time.Duration) (*Stream, Summary, [NumBins]binSums) {
			b := collecting(nil)
			b.occ.Set(start, 8)
			at := 10 * time.Second
			s := b.open(Open{Sent: start.Add(at - waited), PromptTokens: 1})
			s.Text(first)
			s.Read(start.Add(at), 1)
			for _, e := range events {
				at += e.gap
				if e.blocked {
					s.Blocked()
				}
				s.Text(e.text)
				s.Read(start.Add(at), 1)
			}
			sum := s.Close(start.Add(at+300*ms), complete)
			return s, sum, *b.bins()
		}
		late, sum, got := learn(5 * time.Second)
		atOnce, same, want := learn(0)
		if late.unseen.time == 0 || atOnce.unseen.time != 0 {
			t.Fatalf("decoded for %v and %v before the first arrival, want a while and not at all", late.unseen.time, atOnce.unseen.time)
		}
		if sum.Tokens != same.Tokens || sum.FirstTokens != same.FirstTokens || sum.Decode != same.Decode || !near(sum.MeanN, same.MeanN) {
			t.Fatalf("summary %+v, want %+v", sum, same)
		}
		for i := range want {
			if !near(got[i].S, want[i].S) || !near(got[i].Y, want[i].Y) || !near(got[i].K, want[i].K) || !near(got[i].T, want[i].T) {
				t.Fatalf("bin %d: %v s, %v tokens; want %v, %v", i, got[i].S, got[i].Y, want[i].S, want[i].Y)
			}
		}
		if l := len(late.unseen.delayed); l != 0 {
			t.Fatalf("%d pieces are delayed for ever", l)
		}
	})
}

// However fine the chunks are, few pieces cover the time that they wait.
func TestDelayedIsBounded(t *testing.T) {
	for _, gap := range []time.Duration{ms, 7 * ms, 100 * ms, 123 * ms, 300 * ms} {
		b := collecting(t)
		b.occ.Set(start, 2)
		s := b.open(Open{Sent: start, PromptTokens: 100})
		chunk(s, 2*time.Second)
		for at := 2*time.Second + gap; at < 4*time.Second; at += gap {
			chunk(s, at)
			list := s.unseen.delayed
			if l := len(list); l > maxDelayed || cap(list) != maxDelayed {
				t.Fatalf("chunks every %v: %d pieces, want at most %d", gap, l, maxDelayed)
			}
			if from := max(at-s.unseen.time, 2*time.Second); list[0].from > from && at%time.Second > s.unseen.time {
				t.Fatalf("chunks every %v: at %v what came since %v waits, want since %v", gap, at, list[0].from, from)
			}
		}
	}
}

// BenchmarkStreamReadDelayed is one arrival of a stream whose first chunk held fifty
// tokens. Budget: 200 ns, no allocation.
func BenchmarkStreamReadDelayed(b *testing.B) {
	bench := collecting(nil)
	bench.occ.Set(start, 8)
	s := bench.open(Open{Sent: start, PromptTokens: 100})
	chunk(s, 2*time.Second)
	if s.unseen.time == 0 {
		b.Fatal("nothing is delayed")
	}
	at := 2 * time.Second
	b.ReportAllocs()
	for b.Loop() {
		at += 20 * ms
		chunk(s, at)
	}
}
