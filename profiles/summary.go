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
	Predicted   float64       // what TPS should be by the curve, as it is at the end, for the levels of n that the stream lived at; 0 when unknown
	MeanN       float64       // exposure-weighted mean n; 0 when no exposure
	Measured    bool          // TPS may be judged against a floor; false for answers that came whole, had fewer than 5 distinct arrivals, n > 1, tokens that nobody counted, or waited for their client for more than a tenth of the time
	Arrivals    int           // distinct arrivals of content
}

// blockedShare is the part of a stream's life that may have been spent waiting
// for the client before its speed says nothing about the backend.
const blockedShare = 0.1

// measured reports whether the stream's speed says something of its backend.
func (s *Stream) measured() bool {
	waited := s.off.time.Seconds() > blockedShare*(s.last-s.first).Seconds()
	return s.sequences == 1 && s.distinct() && !waited
}

// summarize tells what the stream was, whose tokens are t, ratio times what
// was predicted; NaN when nothing was.
func (s *Stream) summarize(t tally, ratio float64) Summary {
	sum := Summary{TPS: math.NaN(), Source: t.source, Arrivals: s.shown.arrivals}
	if s.shown.arrivals == 0 {
		sum.Source = SourceNone
		return sum
	}
	sum.Tokens, sum.FirstTokens = t.tokens, t.first
	sum.Decode = s.last - s.first
	seconds, weighted := s.held.lives.seconds()
	if seconds > 0 {
		sum.MeanN = weighted / seconds
	}
	if !s.measured() || t.source == SourceEstimate {
		return sum
	}
	sum.TPS = t.decoded / sum.Decode.Seconds()
	if ratio > 0 {
		sum.Predicted = sum.TPS / ratio
	}
	sum.Measured = true
	return sum
}
