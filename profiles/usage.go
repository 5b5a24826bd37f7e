package profiles

// Usage is what a backend said about the tokens of one finished answer, or, where it never
// says anything, what its caller takes them for. It comes from outside: a Stream believes
// it only within limits.
type Usage struct {
	PromptTokens     int
	CachedTokens     int // of the prompt, served from a prefix cache
	CompletionTokens int
	ReasoningTokens  int // part of CompletionTokens

	AudioPromptTokens, AudioCompletionTokens int // those of sound
}

// maxPerChunk is how many tokens one chunk can stand for, whatever it holds.
// Speculative decoding sends a few; a count beyond this is of something the
// stream did not show, unless its text is long enough: leastBytes for each token.
// Hosted APIs collect fifty tokens for a chunk. mostPerChunk bounds it all.
const (
	maxPerChunk  = 16
	leastBytes   = 2
	mostPerChunk = 4096
)

// shows reports whether so many chunks, with so many bytes of text, can have
// shown tokens.
func shows(tokens, chunks, text int64) bool {
	return tokens <= maxPerChunk*chunks || tokens <= mostPerChunk*chunks && leastBytes*tokens <= text
}

// maxPrompt bounds a prompt that nothing else speaks for.
const maxPrompt = 4 << 20

// visible returns the tokens that the stream showed in its chunks, which held so
// many bytes of text, and whether
// the usage can be believed. Reasoning that was counted but never shown took
// its time before the first visible chunk and is taken off.
func (u Usage) visible(chunks, text int64, reasoningShown bool) (tokens float64, ok bool) {
	shown := int64(u.CompletionTokens)
	if shown <= 0 || chunks <= 0 {
		return 0, false
	}
	if u.ReasoningTokens > 0 && !reasoningShown {
		shown -= int64(u.ReasoningTokens)
	}
	if shown <= 0 {
		return 0, false
	}
	if !shows(shown, chunks, text) || chunks > maxPerChunk*shown {
		return 0, false
	}
	return float64(shown), true
}

// perChunkAfter returns the tokens per chunk after the first chunk, of answers
// that had so many tokens in so many chunks. The first token is the prefill's
// and engines send it at once, by itself: those that draft several tokens a
// step or collect them for a chunk do so afterwards. Where a chunk is less than
// a token the first is like the others.
func perChunkAfter(answers, tokens, chunks float64) float64 {
	if tokens > chunks && chunks > answers {
		tokens, chunks = tokens-answers, chunks-answers
	}
	return min(max(tokens/chunks, 1.0/maxPerChunk), mostPerChunk)
}

// tokensIn returns the tokens of the first chunks of an answer.
func tokensIn(chunks, perChunkAfter float64) float64 {
	if perChunkAfter > 1 && chunks >= 1 {
		return 1 + (chunks-1)*perChunkAfter
	}
	return chunks * perChunkAfter
}

// prefilled returns the prompt tokens that had to be computed, and whether the
// usage can be believed beside the estimate (0 = there was none).
func (u Usage) prefilled(estimate float64) (tokens float64, ok bool) {
	prompt, cached := float64(u.PromptTokens), float64(max(u.CachedTokens, 0))
	limit := 16 * estimate
	if estimate <= 0 {
		limit = maxPrompt
	}
	if prompt <= 0 || prompt > limit {
		return 0, false
	}
	return max(prompt-cached, 0), true
}
