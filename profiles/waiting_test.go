package profiles

import (
	"testing"
	"time"
)

// However a request ends, it waits no longer, and as many are marked as are bounded.
func TestWhoWaits(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	waiting := func() int { return b.book.Waits(target) }
	for name, end := range map[string]func(w *Waiting){
		"refused":       func(w *Waiting) { w.Over() },
		"refused twice": func(w *Waiting) { w.Over(); w.Over() },
		"no token": func(w *Waiting) {
			b.open(Open{PromptTokens: 10, Waiting: w}).Close(start.Add(time.Second), false)
		},
		"a token": func(w *Waiting) {
			s := b.open(Open{PromptTokens: 10, Waiting: w})
			if s.Read(start.Add(time.Second), 1); waiting() != 0 {
				t.Errorf("%d wait after a first token", waiting())
			}
			s.Close(start.Add(2*time.Second), true)
			w.Over()
		},
	} {
		w := b.book.Send(target, start, 10)
		if waiting() != 1 {
			t.Errorf("%s: %d wait after one was sent", name, waiting())
		}
		if end(w); waiting() != 0 {
			t.Errorf("%s: %d wait after the end", name, waiting())
		}
	}
	(*Waiting)(nil).Over()
	for range 2 * maxWaiting {
		b.book.Send(target, start, 10)
	}
	if waiting() != maxWaiting {
		t.Errorf("%d wait, want at most %d", waiting(), maxWaiting)
	}
}

// A row holds a long prefill as a whole: the windows in which it goes on are of one
// row, and not of more than a few.
func TestARowHoldsALongPrefill(t *testing.T) {
	for name, test := range map[string]struct {
		prompt int
		waits  time.Duration
		want   int // rows of 100 s
	}{
		"usual prompts":        {1000, 8 * time.Second, 19},
		"a long one":           {40_000, 8 * time.Second, 17},
		"one that never comes": {40_000, 200 * time.Second, 4}, // of six windows each, but the first
	} {
		b := newBench(t).calibrated(1, 1)
		b.occ.Set(start, 1)
		s := b.open(Open{PromptTokens: 10})
		var long *Stream
		rows := 0
		g := b.book.profile(target).group
		for at := time.Duration(0); at < 100*time.Second; at += 20 * ms {
			s.Read(start.Add(at), 1)
			if long == nil && at >= 8*time.Second {
				long = b.open(Open{Sent: start.Add(at), PromptTokens: test.prompt})
			}
			if long != nil && long.shown.arrivals == 0 && at >= 8*time.Second+test.waits {
				long.Read(start.Add(at), 1)
				long.Close(start.Add(at), true)
			}
			g.mu.Lock()
			before := b.book.profile(target).fold.rows.A00
			g.closeUntil(at)
			b.book.profile(target).learnRows(at)
			if b.book.profile(target).fold.rows.A00 != before {
				rows++
			}
			g.mu.Unlock()
		}
		if rows != test.want {
			t.Errorf("%s: %d rows, want %d", name, rows, test.want)
		}
	}
}
