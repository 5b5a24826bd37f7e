package profiles

import (
	"testing"
	"time"
)

// While n is a guess nothing is learned, and a stream goes on being measured: what was
// seen before and after teaches.
func TestAGuessTeachesNothing(t *testing.T) {
	b := newBench(t)
	b.calibrated(3, 3)
	b.occ.Set(start, 1)
	s := b.open(Open{Sent: start})
	end := steady(s, 0, 50*ms, 61) // 3 s
	b.occ.Guess(true)
	b.occ.Set(start.Add(end), 7)
	for range 80 { // 4 s
		end += 50 * ms
		s.Read(start.Add(end), 1)
	}
	b.occ.Set(start.Add(end), 1)
	b.occ.Guess(false)
	for range 40 { // 2 s
		end += 50 * ms
		s.Read(start.Add(end), 1)
	}
	got := s.Close(start.Add(end), true)
	var seconds, tokens, guessed float64
	for _, d := range b.book.Fold(start.Add(time.Minute)) {
		seconds, tokens = seconds+d.Sums.bins[0].S, tokens+d.Sums.bins[0].Y
		for _, bin := range d.Sums.bins[1:] {
			guessed += bin.S + bin.Y
		}
	}
	within(t, "seconds at n = 1", seconds, 5, 0.001)
	within(t, "tokens at n = 1", tokens, 100, 0.001)
	within(t, "what was learned of other n", guessed, 0, 0)
	if !got.Measured {
		t.Error("the stream was not measured")
	}
	within(t, "tokens per second of the stream", got.TPS, 20, 0.001)
}

// A silence in which n was a guess ends a stream as it began it: nothing is learned.
func TestAGuessThatIsBrokenOffTeachesNothing(t *testing.T) {
	b := newBench(t)
	b.calibrated(3, 3)
	b.occ.Set(start, 1)
	s := b.open(Open{Sent: start})
	end := steady(s, 0, 50*ms, 61)
	b.occ.Guess(true)
	s.Close(start.Add(end+2*time.Second), false)
	var seconds float64
	for _, d := range b.book.Fold(start.Add(time.Minute)) {
		seconds += d.Sums.bins[0].S
	}
	within(t, "seconds", seconds, 3, 0.001)
}
