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
