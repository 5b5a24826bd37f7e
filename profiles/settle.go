package profiles

import (
	"math/bits"
	"time"
)

// turn hands over what was gathered up to the last arrival, and begins what
// belongs to the window of at.
func (s *Stream) turn(at time.Duration) {
	s.flush()
	s.deliver()
	s.window = windowOf(at)
	s.turnAt = min(at+segment, windowEnd(s.window))
}

// distinct reports whether the tokens came one after the other, rather than
// all at once.
func (s *Stream) distinct() bool {
	return s.arrivals >= minArrivals && s.last-s.first >= minDecode
}

// evidence reports whether what the stream gathered may teach the profile.
func (s *Stream) evidence() bool {
	return s.sequences == 1 && s.distinct() && (!s.counted || s.countable())
}

// countable reports whether the backend's count fits the chunks that the
// stream showed. What came before the first of them is not asked about: tokens
// of hidden reasoning were counted there, and do not count here.
func (s *Stream) countable() bool {
	tokens, chunks := s.count-s.firstCount, s.chunks-s.firstChunks
	return shows(tokens, chunks, s.text-s.firstText) && chunks <= maxPerChunk*tokens
}

// deliver moves pending to life and, where the stream is evidence and tokens
// are counted or the target's tokens per chunk known, to the profile. A stream
// that begins to flow hands over all of its life so far.
func (s *Stream) deliver() {
	if s.touched == 0 && s.idle == 0 {
		return
	}
	g := s.profile.group
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.windowAt(s.window)
	s.decoded(w)
	evidence := s.evidence()
	if !s.flowing && evidence && (s.counted || s.profile.calibrated()) {
		s.flowing, s.sure = true, true
		if !s.counted {
			s.each = s.profile.totals().perChunk()
		}
		s.profile.take(w, &s.life, s.each)
	}
	if s.flowing && evidence {
		s.profile.take(w, &s.pending, s.each)
	}
	s.age()
	if s.flowing || len(s.slots) >= fullSlots {
		s.tell(g, s.flowing && evidence, s.each)
	}
}

// decoded tells the window how much of the backend's time was decoding seen
// through this replica, whether it is evidence or not.
func (s *Stream) decoded(w *window) {
	occupied := s.idle
	for left := s.touched; left != 0; left &= left - 1 {
		occupied += s.pending[bits.TrailingZeros64(left)].T
	}
	w.seen += occupied * float64(s.sequences)
	s.idle = 0
}

// age moves pending to life.
func (s *Stream) age() {
	for left := s.touched; left != 0; left &= left - 1 {
		bin := bits.TrailingZeros64(left)
		s.life[bin].add(&s.pending[bin], 1)
		s.pending[bin] = exposure{}
	}
	s.touched = 0
}

// lifeSeconds returns the stream-seconds of the whole exposure, and the same
// weighted with n. It is right after age.
func (s *Stream) lifeSeconds() (seconds, weighted float64) {
	for i := range s.life {
		e := &s.life[i]
		if e.T > 0 {
			seconds += e.S
			weighted += e.S * (e.S / e.T) // S/T is the mean n of a bin
		}
	}
	return seconds, weighted
}

// Close ends the stream at now. complete is false for an abort or a cut: then
// the time since the last token was spent without one and counts. Calls after
// the first return the same summary.
func (s *Stream) Close(now time.Time, complete bool) Summary {
	if s.closed {
		return s.summary
	}
	s.closed = true
	s.flush()
	got := s.delivery(s.profile.curve.Load()) // until the last token: what follows is no decoding
	if at := now.Sub(s.epoch); s.arrivals > 0 && !complete && at > s.last {
		if at >= s.turnAt {
			s.turn(at)
		}
		if s.blocked || at-s.last >= pauseGap && s.heart.pausedIn(s.last, at) {
			s.idleUntil(at)
		} else {
			s.spend(at, 0, 0)
		}
	}
	s.flush()
	t := s.settle(complete, got)
	s.summary = s.summarize(t, got.ratio(t.each))
	return s.summary
}

// settle hands over the rest. Chunks are corrected to the usage where it can
// be believed: the tokens that they did not tell of are spread over the bins
// that the stream lived through. Tokens that were counted at every arrival
// need no correction; what the last usage has beyond them, such as the token
// that ends the answer, was not seen to arrive. got is what the stream
// delivered, which the margin learns from.
func (s *Stream) settle(complete bool, got delivery) tally {
	p, g := s.profile, s.profile.group
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trail.over(s.waiting) // of a stream without a token
	w := g.windowAt(s.window)
	s.decoded(w)
	g.settlePrompt(s)
	p.learnFirst(s)

	t := s.tally()
	spreads := g.abreast.usual(s.joined, got.expected) // before what an abort adds: that is no decoding
	switch {
	case !s.evidence():
	case s.flowing:
		p.take(w, &s.pending, t.each)
		p.correct(w, &s.life, t.each-s.each)
	case t.source != SourceEstimate:
		p.take(w, &s.life, t.each)
		p.take(w, &s.pending, t.each)
	}
	if t.source.counted() && s.evidence() {
		p.calibrate(s.calibration(t))
		p.seeFill(s, t)
	}
	if spreads && got.counts(s, t) {
		p.fold.deliveries.see(got.kept(t.each, g.grace), got.occupied)
	}
	if complete && s.arrivals > 0 && s.sequences == 1 {
		p.fold.totals.Answers++
		p.fold.totals.Output += t.tokens
	}
	s.age()
	if s.arrivals > 0 {
		s.tell(g, s.evidence() && (s.flowing || t.source != SourceEstimate), t.each)
		g.leaves(s)
		s.occ.leaves(s.sequences)
	}
	return t
}

// tally is how many tokens a stream showed.
type tally struct {
	source  Source
	tokens  float64 // all of them
	first   float64 // of these, the ones of the first arrival
	decoded float64 // and those that came after it, up to the last arrival
	each    float64 // tokens in one of what is booked
}

// calibration returns the tokens and chunks that tell how many tokens a chunk
// holds after the first, as perChunkAfter reads them.
func (s *Stream) calibration(t tally) (tokens, chunks float64) {
	if s.firstByText(t.tokens) {
		return t.decoded + 1, s.made + 1
	}
	return t.tokens, s.filled()
}

// firstByText reports whether the text tells how many of so many tokens came with
// the first arrival: where chunks hold several. Else it was one, and its text, long
// or short, says less.
func (s *Stream) firstByText(tokens float64) bool {
	return s.firstText > 0 && s.text > s.firstText && s.chunks > s.firstChunks && tokens > (1+oneToken)*float64(s.chunks)
}

// filled is how many chunks there were, as fill counts them.
func (s *Stream) filled() float64 { return float64(s.firstChunks) + s.made }

// tally counts the tokens by the best source there is. group.mu is held.
func (s *Stream) tally() tally {
	shown, believed := s.usage.visible(s.chunks, s.text, s.reasoning)
	if s.counted && s.countable() {
		t := tally{source: SourceContinuous, first: float64(s.firstCount), decoded: float64(s.count - s.firstCount), each: 1}
		if s.firstCount > maxPerChunk*s.firstChunks { // with what the stream did not show
			t.first = float64(s.firstChunks)
		}
		t.tokens = t.first + t.decoded
		if believed {
			t.tokens = max(shown, t.decoded)
			t.first = min(t.first, t.tokens-t.decoded)
		}
		return t
	}
	t := tally{source: SourceChunks, each: s.each}
	if !s.flowing || s.counted {
		t.each = s.profile.totals().perChunk()
		if !s.profile.calibrated() {
			t.source = SourceEstimate
		}
	}
	if believed {
		t.source, t.each = SourceUsage, perChunkAfter(1, shown, s.filled())
		if s.usages > 1 {
			t.source = SourceContinuous
		}
	}
	if believed && s.firstByText(shown) {
		t.tokens, t.decoded = shown, shown*(1-float64(s.firstText)/float64(s.text))
		t.first = t.tokens - t.decoded
		t.each = min(max(t.decoded/s.made, 1.0/maxPerChunk), mostPerChunk)
		return t
	}
	t.tokens, t.first = tokensIn(s.filled(), t.each), tokensIn(float64(s.firstChunks), t.each)
	if believed {
		t.tokens = shown
	}
	t.decoded = t.tokens - t.first
	return t
}
