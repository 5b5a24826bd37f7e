package profiles

import "time"

// Usage is what a backend said about the tokens of one finished answer. It
// comes from outside: a Stream believes it only within limits.
type Usage struct {
	PromptTokens     int
	CachedTokens     int // of the prompt, served from a prefix cache
	CompletionTokens int
	ReasoningTokens  int // part of CompletionTokens
}

// Tokens says where a count of tokens came from.
type Source uint8

// The sources of a token count, best first. Only the first three feed a curve.
const (
	SourceNone       Source = iota
	SourceUsage             // usage in the final chunk
	SourceContinuous        // usage in every chunk
	SourceChunks            // content chunks × the target's learned tokens per chunk
	SourceEstimate          // a guess from bytes
)

// String returns the label used in metrics: usage, continuous, chunks,
// estimate, none.
func (s Source) String() string { panic("unwritten") }

// Summary is what one finished stream was, for the SLO result and the log.
type Summary struct {
	Tokens      float64       // output tokens, best source
	FirstTokens float64       // of these, the tokens of the first chunk
	Source      Source        // of Tokens
	Decode      time.Duration // first token to last token, as they arrived from the backend
	TPS         float64       // (Tokens − FirstTokens)/Decode; NaN when unmeasured
	MeanN       float64       // exposure-weighted mean n; 0 when no exposure
	Measured    bool          // TPS may be judged against a floor; false for answers that came whole, had fewer than 5 distinct arrivals, n > 1 …
	Arrivals    int           // distinct arrivals of content
}

// Open says what a stream starts with.
type Open struct {
	Sent         time.Time  // when the request went to the backend
	Occupancy    *Occupancy // of the backend incarnation that serves it
	PromptTokens int        // estimate from the body until usage is known; 0 = unknown
	Sequences    int        // the n of the request; above 1 the stream is no evidence
}

// Stream measures one relayed stream. It belongs to the goroutine of the
// relay and is not safe for concurrent use. Read allocates nothing, takes no
// lock while n does not change, and at most once a second hands over what it
// gathered.
type Stream struct{}

// Read books an arrival of content from the backend at now, in chunks
// (content events). The first one opens the exposure and its tokens do not
// count; now is when the bytes arrived, never when the client took them.
func (s *Stream) Read(now time.Time, chunks int) { panic("unwritten") }

// Blocked says that the client's side blocked: until the next Read neither
// seconds nor tokens are evidence, and that Read reopens the exposure as a
// first chunk does.
func (s *Stream) Blocked() { panic("unwritten") }

// Usage hands in the token counts that the backend reported. Called again, the
// last one counts.
func (s *Stream) Usage(u Usage) { panic("unwritten") }

// Reasoning says that reasoning text was seen in the stream, so that the
// reasoning tokens of the usage are tokens that were shown.
func (s *Stream) Reasoning() { panic("unwritten") }

// Close ends the stream at now. complete is false for an abort or a cut: then
// the time since the last token was spent without one and counts. Calls after
// the first return the same summary.
func (s *Stream) Close(now time.Time, complete bool) Summary { panic("unwritten") }

// Decoding reports the stream so far: tokens after the first chunk, and when
// the first and the last token arrived. For the floor guard and the log.
func (s *Stream) Decoding() (tokens float64, first, last time.Time) { panic("unwritten") }
