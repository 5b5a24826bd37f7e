package router

import (
	"math"
	"time"
)

// speed is what this replica's streams of a group got, beside what they would have got
// before the engine changed. It says whether an engine is slower than learned, and
// decides nothing. Streams stand still while prompts are prefilled, so what the prompts
// of now take is left out of both, see group.compare. The zero value has seen nothing.
type speed struct {
	seen, expected float64 // tokens since the start
	compared       float64 // seconds of one sequence in which they came

	at      time.Time // of the sums below; they follow all that changes them
	waiting float64   // prompt tokens that waited for their prefill, over all replicas
	backlog float64   // of these, those that by what they cost are not prefilled yet
	stalled float64   // seconds since the start that streams stood still for prompts, by what those cost

	// Seconds of one sequence that prompts took, and that the curve says prompts usually
	// take of the same seconds: both fade with stallMemory.
	took, usual float64
}

const (
	// stallMemory is for how long it counts how much of what prompts usually take is
	// explained by the prompts that are seen to wait.
	stallMemory = 5 * time.Minute

	// stallWeight is how many stream-seconds of prefill the guess counts for that a
	// replica sees the prompts of its own streams wait, and no others.
	stallWeight = 5.0

	// mostStill is the largest part of the time of streams that is taken for prompts. What
	// an engine would be without prompts that take nine tenths of it, no curve can say.
	mostStill = 0.5
)

// prefillUntil works off until now what waits, at fit seconds a token, and takes in what has come
// to wait since. What no longer waits was prefilled sooner than that, or never will be.
func (g *group) prefillUntil(now time.Time) {
	s, waiting := &g.speed, float64(g.promptWaiting())
	d := 0.0
	if !s.at.IsZero() {
		d = max(now.Sub(s.at).Seconds(), 0)
	}
	if cost := g.price.fit; cost > 0 {
		stall := min(d, s.backlog*cost)
		s.stalled += stall
		s.backlog -= stall / cost
	}
	s.backlog = min(s.backlog+max(waiting-s.waiting, 0), waiting)
	s.at, s.waiting = now, waiting
}

// fade ages what is known of how much of what prompts usually take is seen to wait.
func (s *speed) fade(d time.Duration) {
	keep := math.Exp(-d.Seconds() / stallMemory.Seconds())
	s.took *= keep
	s.usual *= keep
}

// follow takes in what l got since it was last looked at, beside n. What prompts took of
// its time is known of every stream. Not compared is one whose tokens are rough, that
// stood still, or that streams beside a prompt far longer than usual.
func (g *group) follow(l *Lease, p progress, n float64) {
	if p.tokens <= l.seen.tokens || p.last <= l.seen.last {
		return
	}
	span := p.last - l.seen.last
	seconds, weight := span.Seconds(), float64(l.weight)
	stall := g.speed.stall(l, seconds) * weight
	seconds *= weight
	usual, ok := l.model.comparable(n)
	if !ok {
		return
	}
	g.speed.took += stall
	g.speed.usual += seconds * usual.still
	if p.rough || l.seen.rough || span > stuckAfter || !l.placed.Add(l.seen.last).After(g.price.long) {
		return
	}
	g.compare(p.tokens-l.seen.tokens, seconds, stall, usual)
}

// stall is for how many of so many seconds l stood still for prompts. What does not fit
// in there is of the seconds that follow.
func (s *speed) stall(l *Lease, seconds float64) float64 {
	stall := min(s.stalled-l.stalled, seconds)
	l.stalled += stall
	return stall
}

// known is which part of what prompts usually take is of prompts that are seen to wait. The
// others are taken to be as usual. share is this replica's part of the streams.
func (s *speed) known(share float64) float64 {
	return min((s.took+stallWeight*share)/(s.usual+stallWeight), 1)
}

// soundScale is from where on an engine counts as one that has not become slower.
const soundScale = 0.9

// remember keeps the curve that is there when next says that the engine has become slower,
// until it no longer does. What is learned later is of the slower engine, and of a user
// who stays while it is mended: that teaches one level and moves no other, so next by
// its scale would say of that level what the engine never gave.
func (m *model) remember(next curve) {
	switch slower := next != nil && next.Known() && next.Scale() < soundScale; {
	case !slower:
		m.before = nil
	case m.before == nil && m.known && !m.guessed && m.curve.Scale() >= soundScale:
		m.before = m.curve
	}
}

// knows reports whether c was learned at n, or not far below it.
func knows(c curve, n float64) bool {
	_, hi := c.Support()
	return n <= 1.25*float64(hi)
}

// asLearned is what a stream got before the engine changed.
type asLearned struct {
	tps   float64 // tokens/s of one sequence, prompts and all
	still float64 // the part of its time that it stood still for prompts
}

// comparable is what a stream gets beside n by the curve from before the engine changed,
// where that knows n, else by the one of now. It is false where neither does, or n is a guess.
func (m *model) comparable(n float64) (asLearned, bool) {
	if !m.known || m.guessed || m.group.noted.guessed {
		return asLearned{}, false
	}
	c := m.before
	if c == nil || !knows(c, n) {
		c = m.curve
	}
	if !knows(c, n) {
		return asLearned{}, false
	}
	k := int(n + 0.5)
	tps := finite(c.TPS(k))
	still := max(1-tps/finite(c.AtRho(k, 0).TPS), 0)
	return asLearned{tps: tps / c.Scale(), still: still}, tps > 0
}

// compare adds tokens that so many seconds of one sequence brought, and what these would
// have brought as learned. For stall of them the sequence stood still for prompts that are
// known. In the others it gets more than usual, which has its prompts in it.
func (g *group) compare(tokens, seconds, stall float64, usual asLearned) {
	s := &g.speed
	known := s.known(float64(g.own.decoding) / float64(max(g.n(), 1)))
	if usual.still > mostStill {
		stall *= mostStill / usual.still
		usual.still = mostStill
	}
	s.seen += tokens
	s.compared += seconds
	s.expected += (seconds - stall) * usual.tps / (1 - known*usual.still)
}
