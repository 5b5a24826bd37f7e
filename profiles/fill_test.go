package profiles

import (
	"math"
	"testing"
	"time"
)

// drafting lets streams of 200 steps of 20 ms live at 2 and then at 16 of n, in
// chunks of so many tokens at either, each with about four bytes a token. Those who
// watch see usage at the end.
func (b *bench) drafting(streams int, at2, at16 float64) {
	now := time.Duration(0)
	for i := range streams {
		b.occ.Set(start.Add(now), 2)
		s := b.open(Open{Sent: start.Add(now)})
		tokens, told := 0.0, 0
		for step := range 200 {
			now += 20 * ms
			each := at2
			if step >= 60+i%80 {
				b.occ.Set(start.Add(now-20*ms), 16)
				each = at16
			}
			if step == 0 {
				each = 1
			}
			made := int(tokens+each) - int(tokens)
			tokens += each
			told += made
			s.Text(4*made + (step*7+i)%3 - 1)
			s.Read(start.Add(now), 1)
		}
		s.Usage(Usage{CompletionTokens: told})
		s.Close(start.Add(now), true)
		b.book.Fold(start.Add(now))
	}
	b.book.Fold(start.Add(now + time.Minute))
}

// What chunks hold at each n is told by their text, where usage alone gives the mean
// of all.
func TestChunksHoldFewerUnderLoad(t *testing.T) {
	b := newBench(t)
	b.drafting(200, 3, 1.2)
	known := &b.book.profile(target).known
	for _, level := range []struct {
		n    int
		want float64 // tokens a chunk
	}{{2, 3}, {16, 1.2}} {
		bin := &known.bins[BinOf(level.n)]
		if got, want := bin.Y/bin.S, level.want/0.020; math.Abs(got/want-1) > 0.03 {
			t.Errorf("at n = %d streams are said to get %.1f tokens/s, want %.1f", level.n, got, want)
		}
	}
	// A stream that runs, or ends without usage, is counted by that as well.
	b.occ.Set(start.Add(2*time.Hour), 16)
	s := b.open(Open{Sent: start.Add(2 * time.Hour)})
	for i := range 101 {
		s.Text(4 + 4*(i%5/4)) // 24 bytes in five chunks
		s.Read(start.Add(2*time.Hour+time.Duration(i)*20*ms), 1)
	}
	if c, _, _ := s.Decoding(); c.Rough || math.Abs(c.Tokens/120-1) > 0.05 {
		t.Errorf("100 chunks at n = 16 are %.1f tokens (%v), want 120", c.Tokens, c.Rough)
	}
	if sum := s.Close(start.Add(2*time.Hour+2*time.Second), false); math.Abs(sum.Tokens/121-1) > 0.05 {
		t.Errorf("the stream had %.1f tokens, want 121", sum.Tokens)
	}
}

// Where chunks hold as many at every n, whatever that is, the noise of the text
// changes nothing.
func TestChunksThatAreAlike(t *testing.T) {
	for _, each := range []float64{1, 4} {
		b := newBench(t)
		b.drafting(100, each, each)
		if f := b.book.Curve(target).fill; f != nil {
			t.Errorf("chunks of %v tokens are said to hold %.3f times the mean at n = 2, %.3f at 16", each, f.at(2), f.at(16))
		}
	}
}

// What the text has told already is not told again by n: of chunks that hold four tokens
// at one level and one at another, text of all the weight leaves nothing, and of half of
// it a part.
func TestTextLeavesLessToFill(t *testing.T) {
	for _, c := range []struct{ differ, want float64 }{{0, 4}, {1, 4 * (0.5 + 0.5*0.4) / (0.5 + 0.5*1.6)}, {1e9, 1}} {
		var s Sums
		s.totals = totals{Calibrations: 100, Counted: 2600, Chunks: 1000}
		s.bins[1] = binSums{S: 100, T: 50, Y: 40e6, K: 20e6, R: 1, N: 1, Chunks: 10e6, Told: 40e6}
		s.bins[7] = binSums{S: 100, T: 12.5, Y: 10e6, K: 1.25e6, R: 1, N: 1, Chunks: 10e6, Told: 10e6}
		// Of V(x) = differ/10 and V(y) = 1 the text has the weight differ/(differ + 1).
		s.totals.text = textSums{Chunks: 1, Bytes: 10, XX: c.differ * textTrust, YY: 1}
		f := s.fill()
		if got := f[1] / f[7]; math.Abs(got/c.want-1) > 0.01 {
			t.Errorf("V(x) = %v: a chunk counts %.2f times as much at n = 2 as at 8, want %.2f", c.differ/10, got, c.want)
		}
	}
}
