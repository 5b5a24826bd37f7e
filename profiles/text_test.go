package profiles

import (
	"math"
	"testing"
	"time"
)

func TestMeasure(t *testing.T) {
	even, byLoad, byLanguage := totals{}, totals{}, totals{}
	for i := range 100 {
		each := []float64{2, 6}[i%2]
		ofBytes := 4.0 + 0.1*[]float64{-1, 0, 1}[i%3] // of a token: as languages differ, a little
		for _, c := range []struct {
			to            *totals
			tokens, bytes float64
		}{{&even, 400, 400 * ofBytes}, {&byLoad, 100 * each, 400 * each}, {&byLanguage, 400, 400 * each}} {
			c.to.Calibrations++
			c.to.Counted += c.tokens
			c.to.Chunks += 100
			c.to.text.see(c.tokens, 100, c.bytes)
		}
	}
	single := byLoad
	single.Counted = single.Chunks // a chunk is a token
	for _, c := range []struct {
		name   string
		totals totals
		want   measure
	}{
		{"nothing known", totals{}, measure{}},
		{"as many tokens in each chunk, and bytes in each token", even, measure{}},
		{"chunks differ, tokens do not", byLoad, measure{1, 1.0 / 16}},
		{"tokens differ, chunks do not", byLanguage, measure{}},
		{"a chunk is a token", single, measure{}},
	} {
		got := c.totals.measure()
		if math.Abs(got.text-c.want.text) > 1e-9 || math.Abs(got.byte-c.want.byte) > 1e-9 {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	half := measure{0.5, 0.05}
	for _, c := range []struct {
		m             measure
		chunks, bytes int64
		want          float64
	}{{measure{}, 3, 100, 3}, {half, 2, 40, 3}, {half, 2, 0, 2}, {measure{1, 0.1}, 2, 70, 7}} {
		if got := c.m.of(c.chunks, c.bytes); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v: %d chunks with %d bytes count %v, want %v", c.m, c.chunks, c.bytes, got, c.want)
		}
		if got := c.m.chunks(c.want, float64(c.bytes)); c.m.text < 1 && c.bytes > 0 && math.Abs(got-float64(c.chunks)) > 1e-12 {
			t.Errorf("%+v: what counts %v with %d bytes are %v chunks, want %d", c.m, c.want, c.bytes, got, c.chunks)
		}
	}
}

// Who collects tokens for 100 ms sends as many chunks a second however fast the engine
// is. Each stream lives at one n, so its usage tells the rest.
func TestTokensCollectedForATime(t *testing.T) {
	b := newBench(t)
	now := time.Duration(0)
	stream := func(n, each int, usage bool) Summary {
		b.occ.Set(start.Add(now), n)
		s := b.open(Open{Sent: start.Add(now)})
		told := 1
		s.Text(4)
		s.Read(start.Add(now), 1)
		for range 40 {
			now += 100 * ms
			told += each
			s.Text(4 * each)
			s.Read(start.Add(now), 1)
		}
		if usage {
			s.Usage(Usage{CompletionTokens: told})
		}
		sum := s.Close(start.Add(now), usage)
		b.book.Fold(start.Add(now))
		return sum
	}
	for range 20 {
		stream(2, 10, true)
		stream(12, 4, true)
	}
	// What nobody counts is told by its text, at a level that was never seen as well.
	for _, c := range []struct{ n, each int }{{2, 10}, {12, 4}, {40, 2}} {
		if got, want := stream(c.n, c.each, false).Tokens, float64(1+40*c.each); math.Abs(got/want-1) > 0.15 {
			t.Errorf("at n = %d %.0f tokens are told of %.0f", c.n, got, want)
		}
	}
	for _, c := range []struct {
		n    int
		want float64
	}{{2, 100}, {12, 40}} {
		within(t, "TPS", b.book.Curve(target).TPS(c.n), c.want, 0.05)
	}
}
