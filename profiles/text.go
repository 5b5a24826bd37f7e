package profiles

import "math"

// measure says what an arrival counts, in chunks: as many as came, or as many as so
// much text fills, or something between. The zero value counts chunks.
type measure struct{ text, byte float64 } // weight of the text, 0 to 1; chunks for each byte, times that

// of returns what an arrival counts that holds so many chunks and bytes of text.
func (m measure) of(chunks, bytes int64) float64 {
	if m.text == 0 || bytes <= 0 {
		return float64(chunks)
	}
	return (1-m.text)*float64(chunks) + m.byte*float64(bytes)
}

// chunks returns how many chunks came, of what they counted and their bytes of text. Where
// the text alone counts nobody can tell: then they are what they counted.
func (m measure) chunks(counted, bytes float64) float64 {
	if m.text >= 1 {
		return counted
	}
	return max(counted-m.byte*bytes, 0) / (1 - m.text)
}

// textSums say whether the chunks of a target or their text tell how many tokens
// they hold, of finished streams after their first arrival: with C chunks, B bytes
// and Y tokens of a stream, x = ln(Y/C) and y = ln(Y/B), each weighs C.
type textSums struct {
	Chunks, Bytes float64
	X, XX         float64 // Σ C·x, Σ C·x²
	Y, YY         float64 // Σ C·y, Σ C·y²
}

const (

	// textTrust is the share of the variance of a token's bytes from stream to stream
	// that lies within a stream, and is not put right by its usage.
	textTrust = 0.1
)

// see takes a finished stream.
func (t *textSums) see(tokens, chunks, bytes float64) {
	if !(tokens > 0) || !(chunks > 0) || !(bytes > 0) {
		return
	}
	x, y := math.Log(tokens/chunks), math.Log(tokens/bytes)
	t.Chunks += chunks
	t.Bytes += bytes
	t.X += chunks * x
	t.XX += chunks * x * x
	t.Y += chunks * y
	t.YY += chunks * y * y
}

// measure returns what tells the tokens of an arrival. Drafts that are dropped under
// load, and who collects tokens for a time, make chunks of as many tokens as the
// engine is fast; a usage is one sum for a stream, and does not tell where they came.
// Their text does, if less well where chunks hold as many everywhere. The weight of
// the text is
//
//	w = V(x)/(V(x) + textTrust·V(y))
//
// with V the variance of x and y over the streams: how much the tokens of a chunk,
// and of a byte, differ. It is 0 where a chunk is a token.
func (t *totals) measure() measure {
	s := &t.text
	if !(s.Chunks > 0) || !(s.Bytes > 0) || math.Abs(t.perChunk()-1) <= oneToken {
		return measure{}
	}
	variance := func(sum, squares float64) float64 { return max(squares/s.Chunks-sum/s.Chunks*sum/s.Chunks, 0) }
	x, y := variance(s.X, s.XX), variance(s.Y, s.YY)
	w := x / (x + textTrust*y)
	if m := (measure{w, w * s.Chunks / s.Bytes}); w > 0 && finite(w) && finite(m.byte) {
		return m
	}
	return measure{}
}

// perByte is the learned tokens in a byte of text, 0 before anything was learned.
func (t *totals) perByte() float64 {
	if each := t.perChunk() * t.text.Chunks / t.text.Bytes; each > 0 && finite(each) {
		return each
	}
	return 0
}
