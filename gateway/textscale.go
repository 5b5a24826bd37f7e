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
)

// textScale learns how many bytes of text a token of a target has. Tokenizers
// differ by up to 40 %, so tokens/s of two targets compare only beside it. The
// zero value is ready; it is safe for concurrent use.
type textScale struct {
	mu            sync.Mutex // guards bytes and tokens
	bytes, tokens float64    // of the finished answers, fading

	untold atomic.Int64 // answers in a row that ended well without a usage
}

// learn adds a finished answer whose text was seen and whose tokens the backend
// counted, and returns its own ratio, NaN if that cannot be one.
func (s *textScale) learn(bytes, tokens int) float64 {
	ratio := float64(bytes) / float64(tokens)
	if tokens <= 0 || !(leastText <= ratio && ratio <= mostText) {
		return math.NaN()
	}
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		keep := max(0, 1-float64(tokens)/textMemory)
		s.bytes = s.bytes*keep + float64(bytes)
		s.tokens = s.tokens*keep + float64(tokens)
	}
	return ratio
}

// bytesPerToken returns the ratio, NaN while nothing is known.
func (s *textScale) bytesPerToken() float64 {
	if s == nil {
		return math.NaN()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes / s.tokens
}

// told notes that an answer of text ended well, and whether the backend said how many
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

// TextFacts is what the answers of a target have told of its tokens.
type TextFacts struct {
	BytesPerToken float64 // of text, as learned; NaN while nothing is known
	Untold        int     // how many answers in a row ended well without a usage
}

// TextFacts returns what is known of t: nothing of a target without a model of its own, which
// has as many tokenizers as clients name models.
func (g *Gateway) TextFacts(t router.Target) TextFacts {
	s := g.setup.Load().texts[t]
	facts := TextFacts{BytesPerToken: s.bytesPerToken()}
	if s != nil {
		facts.Untold = int(s.untold.Load())
	}
	return facts
}
