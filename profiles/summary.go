package profiles

import (
	"math"
	"time"
)

// Summary is what one finished stream was, for the SLO result and the log.
type Summary struct {
	Tokens      float64       // output tokens that were shown, best source
	FirstTokens float64       // of these, the tokens of the first chunk
	Source      Source        // of Tokens
	Decode      time.Duration // first token to last token, as they arrived from the backend
	TPS         float64       // tokens that arrived after those of the first chunk, over Decode; NaN when unmeasured
	MeanN       float64       // exposure-weighted mean n; 0 when no exposure
	Measured    bool          // TPS may be judged against a floor; false for answers that came whole, had fewer than 5 distinct arrivals, n > 1, or waited for their client for more than a tenth of the time
	Arrivals    int           // distinct arrivals of content
}

// blockedShare is the part of a stream's life that may have been spent waiting
// for the client before its speed says nothing about the backend.
const blockedShare = 0.1

// summarize tells what the stream was, whose tokens are t.
func (s *Stream) summarize(t tally) Summary {
	sum := Summary{TPS: math.NaN(), Source: t.source, Arrivals: s.arrivals}
	if s.arrivals == 0 {
		sum.Source = SourceNone
		return sum
	}
	sum.Tokens, sum.FirstTokens = t.tokens, t.first
	sum.Decode = s.last - s.first
	seconds, weighted := s.lifeSeconds()
	if seconds > 0 {
		sum.MeanN = weighted / seconds
	}
	waited := s.blockedTime.Seconds() > blockedShare*sum.Decode.Seconds()
	if s.sequences > 1 || !s.distinct() || waited {
		return sum
	}
	sum.TPS = t.decoded / sum.Decode.Seconds()
	sum.Measured = true
	return sum
}
