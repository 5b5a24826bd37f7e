package openai

import (
	"math"
	"strconv"
)

// usage reads an object with token counts; one that counts neither prompt nor
// completion is none.
func (p *chunkParser) usage(i, depth int) int {
	var t tally
	end := p.tally(i, depth, &t)
	t.total = 0                                    // it is that of the others, or counts no choices
	if u := t.usage(); end > 0 && u != (Usage{}) { // Ollama has zeros in every chunk
		p.c.Usage, p.c.HasUsage = u, true
	}
	return end
}

// usageWithin reads {"usage": {…}}.
func (p *chunkParser) usageWithin(i int) int {
	if p.kind(i) != '{' {
		return p.value(i, 1)
	}
	return p.fields(i, func(key []byte, v int) int {
		if string(key) == "usage" && !p.c.HasUsage {
			return p.usage(v, 2)
		}
		return p.value(v, 2)
	})
}

// timings reads llama.cpp's: predicted_n tokens were generated, prompt_n were
// prefilled and cache_n were there already.
func (p *chunkParser) timings(i int) int {
	if p.kind(i) != '{' {
		return p.value(i, 1)
	}
	var u Usage
	end := p.fields(i, func(key []byte, v int) int {
		switch string(key) {
		case "predicted_n":
			p.c.HasTimings = isNumber(p.kind(v))
			return p.tokens(v, 2, &u.CompletionTokens)
		case "prompt_n":
			return p.tokens(v, 2, &u.PromptTokens)
		case "cache_n":
			return p.tokens(v, 2, &u.CachedTokens)
		}
		return p.value(v, 2)
	})
	u.PromptTokens += u.CachedTokens
	p.c.Timings = u.clamped()
	return end
}

// tokens reads the count at v into n. What is no number leaves it alone.
func (w *walker) tokens(v, depth int, n *int) int {
	end := w.value(v, depth)
	if end < 0 || !isNumber(w.kind(v)) {
		return end
	}
	sum := 0
	for _, c := range w.b[v:end] {
		if c < '0' || '9' < c { // a sign, a fraction or an exponent
			f, _ := strconv.ParseFloat(string(w.b[v:end]), 64)
			*n = int(max(0, min(f, maxCount)))
			return end
		}
		if sum = sum*10 + int(c-'0'); sum > maxCount {
			sum = maxCount
		}
	}
	*n = sum
	return end
}

func isNumber(c byte) bool { return c == '-' || '0' <= c && c <= '9' }

// clamped returns u with each part at most the whole that it belongs to.
func (u Usage) clamped() Usage {
	u.PromptTokens = min(u.PromptTokens, math.MaxInt32)
	u.CachedTokens = min(u.CachedTokens, u.PromptTokens)
	u.ReasoningTokens = min(u.ReasoningTokens, u.CompletionTokens)
	u.AudioPromptTokens = min(u.AudioPromptTokens, u.PromptTokens)
	u.AudioCompletionTokens = min(u.AudioCompletionTokens, u.CompletionTokens)
	return u
}
