package history

import (
	"fmt"
	"math"
	"strings"
	"time"
)

const (
	// speedSeconds is over how long speeds are compared. Where fewer than plentyTokens are
	// expected in that time it is longer, up to mostSeconds: engines that draft several
	// tokens a step, and answers of half a second, bring 30 tokens at half or twice the
	// speed. Fewer than speedTokens are chance even then.
	speedSeconds = 4
	mostSeconds  = 12
	speedTokens  = 30.0
	plentyTokens = 4 * speedTokens

	// speedStreamed and plentyStreamed are the seconds of one sequence that are wanted as
	// well. A fast engine brings 120 tokens in a moment, and a prompt beside them decides.
	speedStreamed  = 1.0
	plentyStreamed = 4.0

	// slowerBelow is from where on an engine is called slower than learned, and
	// soundAbove from where it no longer is.
	slowerBelow = 0.75
	soundAbove  = 0.88

	// soundSeconds with plentyTokens show that an engine is not slower any more: the
	// seconds before say how it was.
	soundSeconds = 2

	// speedChance is by how much speeds that are measured at the same time differ by
	// chance.
	speedChance = 0.05
)

// backendWatch is what is known of one backend beside its state. The zero value
// has seen nothing.
type backendWatch struct {
	state
	last    Cause // that stood, and when it was last there
	lastAt  time.Time
	sums    [mostSeconds + 1]compared             // the latest first
	heard   int                                   // how many of them there are
	ratio   float64                               // delivered over the curve; NaN = too little runs
	speed   float64                               // of what was learned before the engine changed; NaN = unknown
	looked  bool                                  // failed was told
	failed  [pulseSeconds + clearAfter + 1]uint64 // requests that failed there, since the start; the latest first
	soundAt float64                               // the scale at which its streams were last seen to be sound; 0 = never
}

// cause returns what is wrong with b now, the worst first.
func (w *backendWatch) cause(now time.Time, b *Backend) Cause {
	w.compare(b)
	c := Cause{Backend: b.Name}
	switch {
	case b.Hung && b.Health != IsLoading && b.Health != IsDrained:
		c.Kind, c.Words = BackendDown, "backend down: it takes requests and answers nothing"
		return c
	case b.Health == IsDown, b.Health == IsProbed:
		c.Kind, c.Words = BackendDown, "backend down: "+b.why()
		if b.Health == IsProbed && w.has.Kind == BackendDown {
			c.Words = w.has.Words
		}
		return c
	case b.Health == IsLoading:
		c.Kind, c.Words = Loading, "loading its model"
		return c
	case b.Health == IsDrained:
		c.Kind, c.Words = Drained, "drained by an operator"
		return c
	}
	for _, f := range b.Faults {
		if x := f.cause(now); x.Kind != None && (c.Kind == None || x.Kind < c.Kind) {
			c.Kind, c.Words, c.Model = x.Kind, x.Words, x.Model
		}
	}
	if c.Kind != None {
		return c
	}
	limit := slowerBelow
	if w.has.Kind == Slower {
		limit = soundAbove
		if w.mended() {
			limit = 0
		}
	}
	if w.speed < limit {
		c.Kind, c.speed, c.Words = Slower, w.speed, fmt.Sprintf("slower than learned ×%.2g", w.speed)
	}
	return c
}

// fails takes how many requests have failed at the backend since the start.
func (w *backendWatch) fails(total uint64) {
	if total < w.failed[0] || !w.looked {
		w.looked = true
		for i := range w.failed {
			w.failed[i] = total // another series, or the first look
		}
	}
	copy(w.failed[1:], w.failed[:])
	w.failed[0] = total
}

// failures are the requests that failed there of late.
func (w *backendWatch) failures() uint64 { return w.failed[0] - w.failed[len(w.failed)-1] }

// why is what is known of why b is down.
func (b *Backend) why() string {
	var last Fault
	for _, f := range b.Faults {
		if f.Last.After(last.Last) {
			last = f
		}
	}
	switch {
	case last.Status > 0:
		return fmt.Sprintf("upstream %d", last.Status)
	case last.Message != "":
		return inShort(strings.TrimPrefix(last.Message, "the backend "))
	case b.Why != "":
		return inShort(b.Why)
	}
	return "its breaker is open"
}

// inShort says what went wrong as people say it.
func inShort(text string) string {
	for _, x := range []struct{ has, says string }{
		{"refused", "connection refused"},
		{"reset", "connection reset"},
		{"closed the connection before", "connection closed"},
		{"EOF", "connection closed"},
		{"no such host", "its name does not resolve"},
		{"does not resolve", "its name does not resolve"},
		{"deadline exceeded", "no answer in time"},
		{"timeout", "no answer in time"},
		{"in time", "no answer in time"},
	} {
		if strings.Contains(text, x.has) {
			return x.says
		}
	}
	return text
}

// compare takes the sums of b, and works out how fast it is.
func (w *backendWatch) compare(b *Backend) {
	now := compared{seen: b.Seen, expected: b.Expected, streamed: b.Compared}
	if w.heard > 0 && (now.seen < w.sums[0].seen || now.expected < w.sums[0].expected) {
		w.heard, w.soundAt = 0, 0 // another incarnation
	}
	copy(w.sums[1:], w.sums[:])
	w.sums[0] = now
	w.heard = min(w.heard+1, len(w.sums))
	lately := w.within(speedSeconds)
	for s := speedSeconds + 1; s <= mostSeconds && !lately.plenty(); s++ {
		lately = w.within(s)
	}
	w.ratio, w.speed = math.NaN(), math.NaN()
	switch {
	case lately.expected >= speedTokens && lately.streamed >= speedStreamed:
		w.speed = lately.seen / lately.expected
		w.ratio = w.speed / b.Scale
		switch {
		case w.speed >= soundAbove:
			w.soundAt = b.Scale
		case w.speed < slowerBelow:
			w.soundAt = 0
		}
	// Nothing runs that could say otherwise, nor did since the scale is what it is: of one
	// user who shows that an engine is mended the curves learn little.
	case b.Scale < slowerBelow && (w.soundAt == 0 || b.Scale < w.soundAt-speedChance):
		w.speed = b.Scale
	}
}

// compared is what the streams of a backend brought, beside what they should have brought.
type compared struct {
	seen, expected float64 // tokens
	streamed       float64 // seconds of one sequence in which they came
}

// plenty reports whether it is more than chance.
func (c compared) plenty() bool { return c.expected >= plentyTokens && c.streamed >= plentyStreamed }

// within is what came in so many seconds, or in as many as there are.
func (w *backendWatch) within(seconds int) compared {
	now, then := w.sums[0], w.sums[min(seconds, w.heard-1)]
	return compared{seen: now.seen - then.seen, expected: now.expected - then.expected, streamed: now.streamed - then.streamed}
}

// mended reports whether the last seconds alone show that the engine is as fast as ever.
func (w *backendWatch) mended() bool {
	if w.heard <= soundSeconds {
		return false
	}
	lately := w.within(soundSeconds)
	return lately.expected >= plentyTokens && lately.seen >= soundAbove*lately.expected
}

// note remembers the cause that stands, as long as it is there.
func (w *backendWatch) note(now time.Time) {
	if w.has.Kind != None && w.absent == 0 {
		w.last, w.lastAt = w.has, now
	}
}

// worst returns the worst cause of those kinds that one of the backends has, or
// had within so much time, and how many of them. mu is held.
func (w *Watch) worst(now time.Time, names []string, within time.Duration, of func(Kind) bool) (c Cause, have int) {
	for _, name := range names {
		b := w.backends[name]
		if b == nil || b.last.Kind == None || now.Sub(b.lastAt) > within || !of(b.last.Kind) {
			continue
		}
		have++
		if c.Kind == None || b.last.worse(c) {
			c = b.last
		}
	}
	return c, have
}

// worse tells whether c is worse than o: of a worse kind, or of two that are slower
// clearly the slower one. Those that are as slow do not take turns.
func (c Cause) worse(o Cause) bool {
	return c.Kind < o.Kind || c.Kind == Slower && o.Kind == Slower && c.speed < o.speed-speedChance
}

func isOut(k Kind) bool { return k >= BackendDown && k <= Drained }
