package profiles

import (
	"cmp"
	"time"
)

// turn hands over what was gathered up to the last arrival, and begins what
// belongs to the window of at.
func (s *Stream) turn(at time.Duration) {
	s.release(s.due(at))
	s.flush()
	s.turned(at)
}

// turned hands over what was booked, and begins what belongs to the window of at.
func (s *Stream) turned(at time.Duration) {
	s.deliver()
	s.held.window = windowOf(at)
	s.held.turnAt = min(at+segment, windowEnd(s.held.window))
}

// distinct reports whether the tokens came one after the other, rather than
// all at once.
func (s *Stream) distinct() bool {
	return s.shown.arrivals >= minArrivals && s.last-s.first >= minDecode
}

// evidence reports whether what the stream gathered may teach the profile.
func (s *Stream) evidence() bool {
	return s.sequences == 1 && s.distinct() && (!s.unit.counted || s.countable())
}

// countable reports whether the backend's count fits the chunks that the
// stream showed. What came before the first of them is not asked about: tokens
// of hidden reasoning were counted there, and do not count here.
func (s *Stream) countable() bool {
	tokens, chunks := s.shown.count-s.shown.firstCount, s.shown.chunks-s.shown.firstChunks
	return shows(tokens, chunks, s.shown.text-s.shown.firstText) && chunks <= maxPerChunk*tokens
}

// deliver moves pending to life and, where the stream is evidence and tokens
// are counted or the target's tokens per chunk known, to the profile. A stream
// that begins to flow hands over all of its life so far.
func (s *Stream) deliver() {
	if !s.held.touched && s.held.idle == 0 {
		return
	}
	g := s.profile.group
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.windowAt(s.held.window)
	s.decoded(w)
	evidence := s.evidence()
	if !s.flowing && evidence && (s.unit.counted || s.profile.calibrated()) {
		s.flowing, s.unit.sure = true, true
		if !s.unit.counted {
			s.unit.each = s.each(s.profile.totals())
		}
		s.profile.take(w, s.held.lives.list, life, s.unit.each)
		s.held.count(w.index, life, s.profile.halfLife)
	}
	if s.flowing && evidence {
		s.profile.take(w, s.held.lives.list, pending, s.unit.each)
		s.held.count(w.index, pending, s.profile.halfLife)
	}
	s.held.age()
	if s.flowing || len(s.held.slots) >= fullSlots {
		s.tell(g, s.flowing && evidence, s.unit.each)
	}
}

// each returns how many tokens one of what the stream counted stands for: what it has
// shown holds as many as finished streams have taught to measure until now, whatever
// they had taught when it began.
func (s *Stream) each(t *totals) float64 {
	chunks, text := s.shown.chunks-s.shown.firstChunks, s.shown.text-s.shown.firstText
	each := t.perChunk() * t.measure().of(chunks, text) / s.unit.measure.of(chunks, text)
	if !(each > 0) || !finite(each) {
		return t.perChunk()
	}
	return min(max(each, 1.0/maxPerChunk), mostPerChunk)
}

// decoded tells the window how much of the backend's time was decoding seen
// through this replica, whether it is evidence or not.
func (s *Stream) decoded(w *window) {
	occupied := s.held.idle
	for i := range s.held.lives.list {
		occupied += s.held.lives.list[i].pending.T
	}
	occupied *= float64(s.sequences)
	w.seen += occupied
	w.of(s.profile).seen += occupied
	w.occ, w.shift = s.occ, s.shift
	s.held.idle = 0
}

// age moves pending to life.
func (h *held) age() {
	h.lives.age()
	h.touched = false
}

// deadAfter is how long the silence may be in which a stream is broken off, to count as
// the speed of the engine. In a longer one nothing was decoded that anybody will get: the
// engine has died, and one that comes back is as fast as it was.
const deadAfter = 5 * time.Second

// Close ends the stream at now. complete is false for an abort or a cut: then
// the time since the last token was spent without one and counts, up to deadAfter.
// Calls after the first return the same summary.
func (s *Stream) Close(now time.Time, complete bool) Summary {
	if s.closed {
		return s.summary
	}
	s.closed = true
	s.release(s.dueAtEnd(now.Sub(s.epoch)))
	s.flush()
	got := s.delivery(s.profile.curve.Load()) // until the last token: what follows is no decoding
	if at := now.Sub(s.epoch); s.shown.arrivals > 0 && !complete && at > s.last {
		if at >= s.held.turnAt {
			s.turn(at)
		}
		switch silent := at - s.last; {
		case s.off.now || silent >= pauseGap && s.heart.pausedIn(s.last, at):
			s.off.time += silent
			s.idleUntil(at)
		case silent > deadAfter || s.occ.guessed():
			s.idleUntil(at)
		default:
			s.spend(at, 0, 0)
		}
	}
	s.release(s.dueAtEnd(now.Sub(s.epoch)))
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
	g.trail.over(s.start.waiting) // of a stream without a token
	w := g.windowAt(s.held.window)
	s.decoded(w)
	g.settlePrompt(s)
	p.learnFirst(s)

	t := s.tally()
	spreads := g.abreast.usual(s.start.joined, got.expected) // before what an abort adds: that is no decoding
	switch {
	case !s.evidence():
	case s.flowing:
		p.take(w, s.held.lives.list, pending, t.each)
		p.correct(s.held.lives.list, s.unit.each, t.each)
		if t.source.counted() && !s.unit.counted {
			g.seeMiscount(s.unit.each, t.each)
		}
		p.recount(s.held.counted, t.each-s.unit.each)
		s.held.noted.recount(t.each)
	case t.source != SourceEstimate:
		p.take(w, s.held.lives.list, life, t.each)
		p.take(w, s.held.lives.list, pending, t.each)
	}
	if t.source != SourceEstimate {
		p.corrected += s.unbooked(t)
	}
	g.keep(s, t)
	if t.source.counted() && s.evidence() {
		p.calibrate(s.calibration(t))
		p.seeFill(s, t)
		s.seeText(t)
	}
	if spreads && got.counts(s, t) {
		p.fold.deliveries.see(got.kept(t.each, g.grace), got.occupied)
	}
	if complete && s.shown.arrivals > 0 && s.sequences == 1 {
		p.fold.totals.Answers++
		p.fold.totals.Output += t.tokens
	}
	s.held.age()
	if s.shown.arrivals > 0 {
		s.tell(g, s.evidence() && (s.flowing || t.source != SourceEstimate), t.each)
		g.leaves(s)
		s.occ.leaves(s.sequences)
	}
	return t
}

// unbooked returns how many tokens the stream has put out after the first one of each
// sequence, beyond those that it handed over: of its first arrival, while its client
// blocked, or all of one that is no evidence. Its prompt is for them as well.
func (s *Stream) unbooked(t tally) float64 {
	tokens := max(t.tokens-float64(s.sequences), 0)
	if s.evidence() {
		for i := range s.held.lives.list {
			l := &s.held.lives.list[i]
			tokens -= (l.life.Y + l.pending.Y) * t.each
		}
		for _, q := range s.unseen.delayed { // its group will book them
			tokens -= q.k * s.unit.fill.at(s.run.n) * t.each
		}
	}
	return tokens
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
// holds after the first, as perChunkAfter reads them. They are chunks as they came: what
// measure and fill make of them is in units that differ from stream to stream.
func (s *Stream) calibration(t tally) (tokens, chunks float64) {
	if s.firstByText(t.tokens) {
		return t.decoded + 1, float64(s.shown.chunks-s.shown.firstChunks) + 1
	}
	return t.tokens, float64(s.shown.chunks)
}

// seeText teaches how well chunks and text tell tokens. group.mu is held.
func (s *Stream) seeText(t tally) {
	if !s.unit.counted {
		s.profile.fold.totals.text.see(t.decoded, float64(s.shown.chunks-s.shown.firstChunks), float64(s.shown.text-s.shown.firstText))
	}
}

// firstByText reports whether the text tells how many of so many tokens came with
// the first arrival: where chunks hold several. Else it was one, and its text, long
// or short, says less.
func (s *Stream) firstByText(tokens float64) bool {
	return s.shown.firstText > 0 && s.shown.text > s.shown.firstText && s.shown.chunks > s.shown.firstChunks && tokens > (1+oneToken)*float64(s.shown.chunks)
}

// filled is how many chunks there were, as fill counts them.
func (s *Stream) filled() float64 { return float64(s.shown.firstChunks) + s.shown.made }

// tally counts the tokens by the best source there is. group.mu is held.
func (s *Stream) tally() tally {
	shown, believed := s.told.usage.visible(s.shown.chunks, s.shown.text, s.told.reasoning)
	if s.unit.counted && s.countable() {
		t := tally{source: SourceContinuous, first: float64(s.shown.firstCount), decoded: float64(s.shown.count - s.shown.firstCount), each: 1}
		if s.shown.firstCount > maxPerChunk*s.shown.firstChunks { // with what the stream did not show
			t.first = float64(s.shown.firstChunks)
		}
		t.tokens = t.first + t.decoded
		if believed {
			t.tokens = max(shown, t.decoded)
			t.first = min(t.first, t.tokens-t.decoded)
		}
		return t
	}
	t := tally{source: SourceChunks, each: s.unit.each}
	if !s.flowing || s.unit.counted {
		t.each = s.each(s.profile.totals())
		if !s.profile.calibrated() {
			t.source = SourceEstimate
		}
	}
	if believed {
		t.source, t.each = SourceUsage, perChunkAfter(1, shown, s.filled())
		if s.told.times > 1 {
			t.source = SourceContinuous
		}
	}
	if believed && s.firstByText(shown) {
		t.tokens, t.decoded = shown, shown*(1-float64(s.shown.firstText)/float64(s.shown.text))
		t.first = t.tokens - t.decoded
		t.each = min(max(t.decoded/s.shown.made, 1.0/maxPerChunk), mostPerChunk)
		return t
	}
	t.tokens, t.first = tokensIn(s.filled(), t.each), tokensIn(float64(s.shown.firstChunks), t.each)
	if believed {
		t.tokens = shown
	} else if by := s.byText(); by > HoldsMore*t.tokens {
		// An answer that came whole in one chunk is no token. How many it is, nobody counted.
		t.source, t.tokens = SourceEstimate, by
		t.first = by * float64(s.shown.firstText) / float64(s.shown.text)
	}
	t.decoded = t.tokens - t.first
	return t
}

// HoldsMore is how many times as many tokens the text of an answer has to have as its
// chunks tell, for the text to be believed. Languages differ in their bytes for a token by
// less, and chunks that hold as much as those before them tell better.
const HoldsMore = 4

// byText is how many tokens the text of a stream has.
func (s *Stream) byText() float64 {
	return cmp.Or(s.unit.perByte, leastPerByte) * float64(s.shown.text)
}
