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
func (s *Stream) evidence() bool { return s.sequences == 1 && s.distinct() }

// deliver moves pending to life and, where the stream is evidence and the
// target's tokens per chunk are known, to the profile. A stream that begins to
// flow hands over all of its life so far.
func (s *Stream) deliver() {
	if s.touched == 0 && s.idle == 0 {
		return
	}
	g := s.profile.group
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.windowAt(s.window)
	s.decoded(w)
	if !s.flowing && s.evidence() && s.profile.calibrated() {
		s.flowing, s.sure = true, true
		s.perChunk = s.profile.totals().perChunk()
		s.profile.take(w, &s.life, s.perChunk)
	}
	if s.flowing {
		s.profile.take(w, &s.pending, s.perChunk)
	}
	s.age()
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
	if at := now.Sub(s.epoch); s.arrivals > 0 && !complete && at > s.last {
		if at >= s.turnAt {
			s.turn(at)
		}
		if s.blocked {
			s.idleUntil(at)
		} else {
			s.spend(at, 0)
		}
	}
	s.flush()
	source, perChunk := s.settle(complete)
	s.summary = s.summarize(source, perChunk)
	return s.summary
}

// settle hands over the rest, corrected to the usage where it can be believed:
// the tokens that the chunks did not tell of are spread over the bins that the
// stream lived through. It returns the best tokens per chunk and their source.
func (s *Stream) settle(complete bool) (Source, float64) {
	p, g := s.profile, s.profile.group
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.windowAt(s.window)
	s.decoded(w)
	g.settlePrompt(s)

	source, perChunk := SourceChunks, p.totals().perChunk()
	if s.flowing {
		perChunk = s.perChunk
	}
	tokens, believed := s.usage.visible(s.chunks, s.reasoning)
	if believed {
		source, perChunk = SourceUsage, tokens/float64(s.chunks)
		if s.usages > 1 {
			source = SourceContinuous
		}
	}
	switch {
	case !s.evidence():
	case s.flowing:
		p.take(w, &s.pending, perChunk)
		if believed {
			p.correct(w, &s.life, perChunk-s.perChunk)
		}
	case believed || p.calibrated():
		p.take(w, &s.life, perChunk)
		p.take(w, &s.pending, perChunk)
	}
	if believed && s.evidence() {
		p.calibrate(tokens, float64(s.chunks))
	}
	if complete && s.arrivals > 0 && s.sequences == 1 {
		p.fold.totals.Answers++
		p.fold.totals.Output += float64(s.chunks) * perChunk
	}
	s.age()
	return source, perChunk
}
