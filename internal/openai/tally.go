package openai

// tally is the counts of a usage object, under whichever names the endpoint
// has for them. The zero value has none. Of counts that come more than once the
// last that is not 0 stands: a Messages stream may begin with an estimate of its
// prompt and end with the count, or count it at the beginning alone.
type tally struct {
	found bool // a prompt's, a completion's or a total count was there

	prompt, completion      int
	cached, reasoning       int
	audioIn, audioOut       int
	cacheRead, cacheWritten int  // Messages: beside input_tokens, not within
	beside                  bool // prompt came as input_tokens: cacheRead and cacheWritten are not in it
	total                   int
}

// usage returns what the counts mean.
func (t *tally) usage() Usage {
	u := Usage{
		PromptTokens: t.prompt, CachedTokens: max(t.cached, t.cacheRead),
		CompletionTokens: t.completion, ReasoningTokens: t.reasoning,
		AudioPromptTokens: t.audioIn, AudioCompletionTokens: t.audioOut,
	}
	if t.beside {
		u.PromptTokens += t.cacheRead + t.cacheWritten
	}
	if u.PromptTokens == 0 { // rerank tells nothing but the total
		u.PromptTokens = max(t.total-t.completion, 0)
	}
	return u.clamped()
}

// tally adds the counts of the usage object at v to t.
func (w *walker) tally(v, depth int, t *tally) int {
	if w.kind(v) != '{' {
		return w.value(v, depth)
	}
	return w.fields(v, func(key []byte, v int) int {
		switch string(key) {
		case "input_tokens", "prompt_tokens":
			t.found = t.found || isNumber(w.kind(v))
			t.beside = t.beside || key[0] == 'i'
			return w.count(v, depth+1, &t.prompt)
		case "output_tokens", "completion_tokens":
			t.found = t.found || isNumber(w.kind(v))
			return w.count(v, depth+1, &t.completion)
		case "total_tokens":
			t.found = t.found || isNumber(w.kind(v))
			return w.count(v, depth+1, &t.total)
		case "prompt_cache_hit_tokens": // DeepSeek
			return w.count(v, depth+1, &t.cached)
		case "reasoning_tokens": // SGLang
			return w.count(v, depth+1, &t.reasoning)
		case "cache_read_input_tokens":
			return w.count(v, depth+1, &t.cacheRead)
		case "cache_creation_input_tokens":
			return w.count(v, depth+1, &t.cacheWritten)
		case "input_tokens_details", "input_token_details", "prompt_tokens_details":
			return w.tallyDetails(v, depth+1, t, &t.audioIn)
		case "output_tokens_details", "completion_tokens_details":
			return w.tallyDetails(v, depth+1, t, &t.audioOut)
		}
		return w.value(v, depth+1)
	})
}

// tallyDetails adds what the counts are made of to t, and those of sound to audio.
func (w *walker) tallyDetails(v, depth int, t *tally, audio *int) int {
	if w.kind(v) != '{' {
		return w.value(v, depth)
	}
	return w.fields(v, func(key []byte, v int) int {
		switch string(key) {
		case "cached_tokens":
			return w.count(v, depth+1, &t.cached)
		case "reasoning_tokens", "thinking_tokens":
			return w.count(v, depth+1, &t.reasoning)
		case "audio_tokens":
			return w.count(v, depth+1, audio)
		}
		return w.value(v, depth+1)
	})
}

// count reads the count at v into n, unless it is 0.
func (w *walker) count(v, depth int, n *int) int {
	count := 0
	end := w.tokens(v, depth, &count)
	if count > 0 {
		*n = count
	}
	return end
}
