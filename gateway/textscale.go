package gateway

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/pacer-dev/pacer/router"
)

const (
	// textMemory is how many tokens the ratio remembers: what lies further back
	// counts less and less.
	textMemory = 1 << 20

	// leastText and mostText are what a token may have in bytes: beyond, the
	// count was made by something else than the text that was seen.
	leastText, mostText = 0.25, 64

	// silentAfter is how many streams in a row have to end well without a usage, for
	// their tokens to be counted by their text from then on.
	silentAfter = 5

	// sampledOf is of how many streams that are counted by their text a tokenizer counts
	// one: what is written there may change.
	sampledOf = 16

	// mostOfChunks bounds what the text of a stream says by what chunks of its target
	// hold as a tokenizer counts them: a row of spaces has many bytes, and is one token.
	mostOfChunks = 1.5
)

// textScale learns how many bytes of text a token of a target has. Tokenizers
// differ by up to 40 %, so tokens/s of two targets compare only beside it. The
// zero value is ready; it is safe for concurrent use.
type textScale struct {
	mu      sync.Mutex  // guards own and standIn
	own     bytesTokens // of the finished answers whose tokens the backend counted
	standIn bytesTokens // of those that a tokenizer counted, which is another one than the target's

	untold  atomic.Int64 // streams in a row that ended well without a usage
	sampled atomic.Uint64
}

// bytesTokens is a ratio that fades. The zero value knows nothing.
type bytesTokens struct {
	bytes, tokens float64
	chunks        float64 // that they came in, where somebody counts those
}

// add adds what had so many bytes and tokens and came in so many chunks, and returns its
// own bytes for a token, NaN if that cannot be one.
func (r *bytesTokens) add(bytes, tokens, chunks float64) float64 {
	ratio := bytes / tokens
	if tokens <= 0 || !(leastText <= ratio && ratio <= mostText) {
		return math.NaN()
	}
	keep := max(0, 1-tokens/textMemory)
	r.bytes = r.bytes*keep + bytes
	r.tokens = r.tokens*keep + tokens
	r.chunks = r.chunks*keep + chunks
	return ratio
}

// each is how many bytes a token has, NaN while nothing is known.
func (r *bytesTokens) each() float64 { return r.bytes / r.tokens }

// learn adds a finished answer whose text was seen and whose tokens the backend
// counted, and returns its own ratio, NaN if that cannot be one.
func (s *textScale) learn(bytes, tokens int) float64 {
	if s == nil {
		return new(bytesTokens).add(float64(bytes), float64(tokens), 0)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own.add(float64(bytes), float64(tokens), 0)
}

// learnStandIn adds the text of a stream, as far as a tokenizer counted it, and the chunks
// that this came in.
func (s *textScale) learnStandIn(bytes int, tokens, chunks float64) {
	if s == nil || chunks <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.standIn.add(float64(bytes), tokens, chunks)
}

// bytesPerToken returns the ratio, NaN while nothing is known.
func (s *textScale) bytesPerToken() float64 {
	if s == nil {
		return math.NaN()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own.each()
}

// told notes that a stream ended well, and whether the backend said how many
// tokens it had.
func (s *textScale) told(usage bool) {
	switch {
	case s == nil:
	case !usage:
		s.untold.Add(1)
	case s.untold.Load() > 0:
		s.untold.Store(0)
	}
}

// silent reports whether streams of the target bring no usage, so that their text is
// what tells their tokens.
func (s *textScale) silent() bool { return s != nil && s.untold.Load() >= silentAfter }

// byText returns how many tokens a stream has, by its text and its chunks, whose target is
// silent; NaN where it is not, or nothing is known.
func (s *textScale) byText(bytes, chunks int) float64 {
	if !s.silent() {
		return math.NaN()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	each := s.own.each()
	if math.IsNaN(each) {
		each = s.standIn.each()
	}
	perChunk := s.standIn.tokens / s.standIn.chunks
	return max(1, min(float64(bytes)/each, mostOfChunks*float64(chunks)*perChunk))
}

// sample reports whether a tokenizer is to count this stream of a silent target.
func (s *textScale) sample() bool {
	return s.silent() && (s.sampled.Add(1)%sampledOf == 0 || math.IsNaN(s.byText(1, 1)))
}

// TextFacts is what the answers of a target have told of its tokens.
type TextFacts struct {
	BytesPerToken float64 // of text, as learned; NaN while nothing is known
	Silent        bool    // its streams bring no usage: their tokens are counted by their text
}

// TextFacts returns what is known of t: nothing of a target without a model of its own, which
// has as many tokenizers as clients name models.
func (g *Gateway) TextFacts(t router.Target) TextFacts {
	s := g.setup.Load().texts[t]
	return TextFacts{BytesPerToken: s.bytesPerToken(), Silent: s.silent()}
}
