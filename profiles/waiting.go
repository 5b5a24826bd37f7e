package profiles

import (
	"slices"
	"time"
)

// maxWaiting is how many requests of a group are marked as waiting. What is
// prefilled of others is known when their first token comes.
const maxWaiting = 1024

// Waiting marks a request that was sent and has no token yet: what streams live
// through meanwhile may be beside its prefill, and is judged when that is known.
// A nil one marks nothing. It is safe for concurrent use.
type Waiting struct {
	profile *profile
	sent    time.Duration // since the epoch of the book
	prompt  float64       // tokens, as estimated; 0 = unknown
}

// Send marks that a request with so many prompt tokens (0 = unknown) went to t at
// sent. Open takes the mark over; where nothing is opened, Over ends it.
func (b *Book) Send(t Target, sent time.Time, promptTokens int) *Waiting {
	p := b.profile(t)
	w := &Waiting{profile: p, sent: sent.Sub(b.since(sent)), prompt: float64(min(max(promptTokens, 0), maxPrompt))}
	p.group.mu.Lock()
	defer p.group.mu.Unlock()
	if t := &p.group.trail; len(t.waiting) < maxWaiting {
		t.waiting = append(t.waiting, w)
	}
	return w
}

// Over says that the request waits no longer. Calls after the first do nothing.
func (w *Waiting) Over() {
	if w == nil {
		return
	}
	g := w.profile.group
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trail.over(w)
}

// Waits is how many requests are marked as waiting for their first token, on t and
// all that decodes with it; at most 1024.
func (b *Book) Waits(t Target) int {
	g := b.profile(t).group
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.trail.waiting)
}

func (t *trail) over(w *Waiting) {
	if i := slices.Index(t.waiting, w); i >= 0 {
		last := len(t.waiting) - 1
		t.waiting[i], t.waiting[last] = t.waiting[last], nil
		t.waiting = t.waiting[:last]
	}
}

// span is how far back the prefill of w may have begun, if its first token came
// now.
func (w *Waiting) span() time.Duration {
	if w.prompt <= 0 {
		return longestSpan
	}
	scale := w.profile.totals().promptScale()
	return min(spanLength*w.profile.expectedPrefill(w.prompt*scale), longestSpan)
}

const (
	// longPrefill is how long a prefill takes that a window's row has to hold as a
	// whole: what a shorter one brings to the wrong row is little.
	longPrefill = time.Second

	// longestRow is how many windows a row is carried on for the sake of one.
	longestRow = 6
)

// crosses reports whether a long prefill may have begun before at and ended, or
// will end, after it.
func (t *trail) crosses(at time.Duration, p *profile) bool {
	for _, w := range t.waiting {
		if w.sent < at && w.profile.expectedPrefill(w.prompt) >= longPrefill {
			return true
		}
	}
	for i := t.prefills - 1; i >= max(t.prefills-maxSpans, 0); i-- {
		q := &t.spans[i%maxSpans]
		if q.to <= at {
			break
		}
		expected := p.expectedPrefill(q.tokens)
		if expected >= longPrefill && max(q.from, q.to-expected) < at {
			return true
		}
	}
	return false
}
