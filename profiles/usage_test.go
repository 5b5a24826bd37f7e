package profiles

import (
	"testing"
	"time"
)

// TestFirstChunk: the first chunk of an answer that has more tokens than chunks
// holds one token; where chunks are parts of tokens it is one of them.
func TestFirstChunk(t *testing.T) {
	for _, test := range []struct {
		name                        string
		tokens, first, after, known float64 // of 21 chunks; known after three such answers
	}{
		{"as many tokens as chunks", 21, 1, 20, 1},
		{"several tokens a chunk", 101, 1, 100, 5},
		{"a few more", 26, 1, 25, 1.25},
		{"parts of tokens", 7, 7.0 / 21, 20 * 7.0 / 21, 7.0 / 21},
	} {
		b := newBench(t)
		b.occ.Set(start, 1)
		var learned float64
		for i := range 4 {
			from := time.Duration(i) * 3 * time.Second
			s := b.open(Open{Sent: start.Add(from)})
			last := steady(s, from, 100*ms, 21)
			s.Usage(Usage{CompletionTokens: int(test.tokens)})
			sum := s.Close(start.Add(last), true)
			if !near(sum.Tokens, test.tokens) || !near(sum.FirstTokens, test.first) || !near(sum.TPS, test.after/2) {
				t.Errorf("%s: summary %+v, want %v tokens, %v first, %v tokens/s", test.name, sum, test.tokens, test.first, test.after/2)
			}
			learned += test.after
		}
		b.learned(1, 8, learned)
		if got := b.book.profile(target).totals().perChunk(); !near(got, test.known) {
			t.Errorf("%s: %v tokens per chunk learned, want %v", test.name, got, test.known)
		}
	}
}

func TestWhatChunksCanShow(t *testing.T) {
	for _, c := range []struct {
		tokens, chunks, text int64
		want                 bool
	}{
		{160, 10, 0, true},          // 16 each, whatever they hold
		{161, 10, 0, false},         // the 161st was not shown
		{500, 10, 1000, true},       // 50 each, of two bytes
		{501, 10, 1000, false},      // too little text for so many
		{40960, 10, 1 << 20, true},  // the most that a chunk can hold
		{40961, 10, 1 << 20, false}, // whatever it holds
	} {
		if got := shows(c.tokens, c.chunks, c.text); got != c.want {
			t.Errorf("%d tokens in %d chunks of %d bytes: %t, want %t", c.tokens, c.chunks, c.text, got, c.want)
		}
	}
}

// An API collects 50 tokens for a chunk, the first one too: 20 chunks of a second
// are 950 tokens in 19 seconds, and the next stream is counted by what they taught.
func TestFiftyTokensAChunk(t *testing.T) {
	b := newBench(t)
	b.occ.Set(start, 1)
	play := func(usage int) Summary {
		s := b.open(Open{Sent: start})
		for i := range 20 {
			s.Text(200)
			s.Read(start.Add(time.Duration(i)*time.Second), 1)
		}
		if usage > 0 {
			s.Usage(Usage{CompletionTokens: usage})
		}
		return s.Close(start.Add(19*time.Second), true)
	}
	for range 3 {
		sum := play(1000)
		if sum.Tokens != 1000 || sum.FirstTokens != 50 {
			t.Fatalf("%v tokens, %v of them in the first chunk, want 1000 and 50", sum.Tokens, sum.FirstTokens)
		}
		within(t, "tokens/s", sum.TPS, 50, 1e-9)
	}
	if sum := play(5000); sum.Tokens == 5000 { // 20 bytes shown for each 25 claimed
		t.Errorf("%v tokens are believed of 4000 bytes", sum.Tokens)
	}
	sum := play(0)
	within(t, "tokens/s by what others taught", sum.TPS, 50, 1e-9)
}
