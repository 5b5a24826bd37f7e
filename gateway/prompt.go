package gateway

import (
	"bytes"
	"sync"
)

const (
	// tokensPerByte is what a prompt is taken for before anything is known.
	tokensPerByte = 0.25

	// imageTokens is what an embedded file counts for, whatever its size.
	imageTokens = 1000

	// maxPromptTokens bounds what a client can make us believe.
	maxPromptTokens = 1 << 20

	// promptMemory is how many bytes of bodies the ratio remembers: what lies
	// further back counts less and less.
	promptMemory = 4 << 20
)

// promptSizes learns how many tokens of prompt a byte of a route's request
// bodies is. The zero value is ready; it is safe for concurrent use.
type promptSizes struct {
	mu            sync.Mutex // guards tokens and bytes
	tokens, bytes float64    // of the finished requests, fading
}

// promptPrior is how many bytes' worth of belief in tokensPerByte the first
// requests have to overcome.
const promptPrior = 4 << 10

// estimate returns the prompt tokens of a body with textBytes of text and
// files embedded files.
func (p *promptSizes) estimate(textBytes, files int) int {
	p.mu.Lock()
	ratio := (p.tokens + tokensPerByte*promptPrior) / (p.bytes + promptPrior)
	p.mu.Unlock()
	return int(min(ratio*float64(textBytes)+imageTokens*float64(files), maxPromptTokens))
}

// learn adds a finished request. Bodies with files teach nothing about text.
func (p *promptSizes) learn(textBytes, files, tokens int) {
	if textBytes <= 0 || files > 0 || tokens <= 0 || tokens > textBytes {
		return // a token has at least a byte: what says otherwise is no usage
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	keep := max(0, 1-float64(textBytes)/promptMemory)
	p.tokens = p.tokens*keep + float64(tokens)
	p.bytes = p.bytes*keep + float64(textBytes)
}

var base64Mark = []byte(";base64,")

// measureBody returns how many bytes of a request body are text, leaving out
// embedded files (images, audio), and how many files there are: a picture of
// 20 MB is not a prompt of 5 million tokens.
func measureBody(body []byte) (textBytes, files int) {
	textBytes = len(body)
	for {
		i := bytes.Index(body, base64Mark)
		if i < 0 {
			return textBytes, files
		}
		body = body[i+len(base64Mark):]
		end := bytes.IndexByte(body, '"')
		if end < 0 {
			end = len(body)
		}
		textBytes -= end
		files++
		body = body[end:]
	}
}
