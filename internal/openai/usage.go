package openai

import (
	"math"
	"strconv"
)

// usage reads an object with token counts; one that counts neither prompt nor
// completion is none.
func (p *chunkParser) usage(i, depth int) int {
	if p.kind(i) != '{' {
		return p.value(i, depth)
	}
	var u Usage
	var found bool
	at, done := p.first(i, '}')
	for !done {
		key, _, v := p.key(at)
		if v < 0 {
			return -1
		}
		end := -1
		switch string(key) {
		case "prompt_tokens":
			end = p.tokens(v, depth+1, &u.PromptTokens)
			found = found || isNumber(p.kind(v))
		case "completion_tokens":
			end = p.tokens(v, depth+1, &u.CompletionTokens)
			found = found || isNumber(p.kind(v))
		case "prompt_cache_hit_tokens": // DeepSeek
			end = p.tokens(v, depth+1, &u.CachedTokens)
		case "reasoning_tokens": // SGLang
			end = p.tokens(v, depth+1, &u.ReasoningTokens)
		case "prompt_tokens_details", "completion_tokens_details":
			end = p.usageDetails(v, depth+1, &u)
		default:
			end = p.value(v, depth+1)
		}
		if end < 0 {
			return -1
		}
		at, done = p.next(end, '}')
	}
	if u = u.clamped(); found && u != (Usage{}) { // Ollama has zeros in every chunk
		p.c.Usage, p.c.HasUsage = u, true
	}
	return at
}

func (p *chunkParser) usageDetails(i, depth int, u *Usage) int {
	if p.kind(i) != '{' {
		return p.value(i, depth)
	}
	at, done := p.first(i, '}')
	for !done {
		key, _, v := p.key(at)
		if v < 0 {
			return -1
		}
		end := -1
		switch string(key) {
		case "cached_tokens":
			end = p.tokens(v, depth+1, &u.CachedTokens)
		case "reasoning_tokens":
			end = p.tokens(v, depth+1, &u.ReasoningTokens)
		default:
			end = p.value(v, depth+1)
		}
		if end < 0 {
			return -1
		}
		at, done = p.next(end, '}')
	}
	return at
}

// usageWithin reads {"usage": {…}}.
func (p *chunkParser) usageWithin(i int) int {
	if p.kind(i) != '{' {
		return p.value(i, 1)
	}
	at, done := p.first(i, '}')
	for !done {
		key, _, v := p.key(at)
		if v < 0 {
			return -1
		}
		end := -1
		if string(key) == "usage" && !p.c.HasUsage {
			end = p.usage(v, 2)
		} else {
			end = p.value(v, 2)
		}
		if end < 0 {
			return -1
		}
		at, done = p.next(end, '}')
	}
	return at
}

// timings reads llama.cpp's: predicted_n tokens were generated, prompt_n were
// prefilled and cache_n were there already.
func (p *chunkParser) timings(i int) int {
	if p.kind(i) != '{' {
		return p.value(i, 1)
	}
	var u Usage
	at, done := p.first(i, '}')
	for !done {
		key, _, v := p.key(at)
		if v < 0 {
			return -1
		}
		end := -1
		switch string(key) {
		case "predicted_n":
			end = p.tokens(v, 2, &u.CompletionTokens)
			p.c.HasTimings = isNumber(p.kind(v))
		case "prompt_n":
			end = p.tokens(v, 2, &u.PromptTokens)
		case "cache_n":
			end = p.tokens(v, 2, &u.CachedTokens)
		default:
			end = p.value(v, 2)
		}
		if end < 0 {
			return -1
		}
		at, done = p.next(end, '}')
	}
	u.PromptTokens += u.CachedTokens
	p.c.Timings = u.clamped()
	return at
}

// tokens reads the count at v into n. What is no number leaves it alone.
func (p *chunkParser) tokens(v, depth int, n *int) int {
	end := p.value(v, depth)
	if end < 0 || !isNumber(p.kind(v)) {
		return end
	}
	sum := 0
	for _, c := range p.b[v:end] {
		if c < '0' || '9' < c { // a sign, a fraction or an exponent
			f, _ := strconv.ParseFloat(string(p.b[v:end]), 64)
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
	return u
}
