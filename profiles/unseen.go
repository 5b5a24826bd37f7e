package profiles

import (
	"math"
	"time"
)

const (
	// manyTokens is how many tokens a first arrival holds at least for the stream to
	// have decoded before it: the text of one may be as long as that of four.
	manyTokens = 5

	// leastPerByte are the tokens in a byte of text while nobody knows them: few, so that
	// no single token is taken for many.
	leastPerByte = 1.0 / 8

	// longestUnseen bounds for how long a stream can have decoded unseen.
	longestUnseen = 10 * time.Second

	// unseenTimes is how many times as long as it waited a stream may seem to have
	// decoded before its first arrival, which nobody knows exactly. What seems longer
	// was not decoded: a cache had it, or its length says nothing.
	unseenTimes = 2

	// maxDelayed is how many delayed pieces a stream keeps. Two that follow each other
	// are a quarter of unseen.time at least, so eight cover it.
	maxDelayed = 8

	// everything is after all that a stream keeps.
	everything time.Duration = math.MaxInt64
)

// unseen is of a stream whose first arrival held many tokens: it had decoded before
// anybody saw it, when n was too low. As soon as it is seen the record of n is set right
// (Occupancy.began). Its neighbours are like it, and may begin while it runs, so what it
// gathers waits as long as that takes before it is booked. The zero value is of a
// stream whose first arrival held a few tokens.
type unseen struct {
	time    time.Duration // decoded before the first arrival
	delayed []delayed     // oldest first
}

// delayed is a gap between arrivals, or some that follow each other, not booked yet:
// the stream decoded unseen, or others are heard late.
type delayed struct {
	from, to time.Duration // since epoch
	k, text  float64       // as in run
}

// decodedBefore is how long the stream had decoded when its first arrival came at at, of
// which n then decode: as long as all of its tokens but one take. The prompt had to be
// prefilled before.
func (s *Stream) decodedBefore(at time.Duration, n int) time.Duration {
	tokens := s.unit.perByte * float64(s.shown.firstText)
	if s.unit.counted {
		tokens = float64(s.shown.firstCount)
	}
	tokens /= float64(s.sequences)
	if s.occ == nil || s.start.blocked || !(tokens >= manyTokens) {
		return 0
	}
	took := (tokens - 1) / s.profile.curve.Load().TPS(n) // +Inf while it is unknown
	waited := (at - s.start.sent - s.spread()).Seconds()
	if !(took <= unseenTimes*waited) {
		return 0
	}
	return min(time.Duration(min(took, waited)*float64(time.Second)), longestUnseen)
}

// release books what was delayed and ended by until.
func (s *Stream) release(until time.Duration) {
	if len(s.unseen.delayed) == 0 || s.unseen.delayed[0].to > until {
		return
	}
	kept := s.unseen.delayed[:0]
	for _, q := range s.unseen.delayed {
		if q.to > until {
			kept = append(kept, q)
			continue
		}
		late := s.unseen.time == 0
		if late && q.to >= s.held.turnAt {
			s.turned(q.to)
		}
		s.occ.walk(q.from+s.shift, q.to+s.shift, func(n, own int, d time.Duration) {
			share := float64(d) / float64(q.to-q.from)
			s.book(n, d.Seconds(), q.k*share, q.text*share)
			if late && n > own {
				s.held.foreign = q.to // a slot would be neither
				return
			}
			s.note(q.from, q.to, n, own, d, q.k*share)
		})
	}
	s.unseen.delayed = kept
}
