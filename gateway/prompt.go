package gateway

import (
	"math"
	"sync"
)

const (
	// promptPrior is how many estimated tokens' worth of belief in the bare
	// estimate, or in the start of a key, the first requests have to overcome.
	promptPrior = 1000

	// promptMemory is how many estimated tokens the ratio of a gateway without
	// keys remembers: what lies further back counts less and less.
	promptMemory = 1 << 20

	// keyWeight is the most estimated tokens that one request of a key counts for,
	// and keyMemory how many are remembered of it. One long prompt says little of
	// the next ones, and other content is learned in tens of requests.
	keyWeight = 1024
	keyMemory = 16 * keyWeight

	// leastScale and mostScale bound what one request shows: 24 bytes a token and
	// one. Cyrillic escaped as JSON has 20, digits with spaces between have one.
	leastScale = bytesPerToken / 24.0
	mostScale  = bytesPerToken / 1.0

	// routePrior is how many keys' worth of belief in the bare estimate the start of a
	// new key has. Whatever one key sends, it moves that start by 1.28 at most:
	// (mostScale/leastScale)^(1/(routePrior+1)).
	routePrior = 12

	// mostPromptKeys is of how many keys a route knows the ratio. One more takes the
	// place of any other, which then begins anew.
	mostPromptKeys = 256

	// maxPromptTokens bounds what a client can make us believe.
	maxPromptTokens = 1 << 20
)

// promptScale learns how many tokens of prompt a route's backends count for
// each that was estimated from the size of the body: languages and tokenizers
// differ by factors. What one key sends says nothing of what another one does, so
// each has its own ratio. A new one begins with the mean of all. The zero value
// is ready; it is safe for concurrent use.
type promptScale struct {
	mu   sync.Mutex             // guards the rest
	keys map[string]promptRatio // by the name of a key, "" = there are none; at most mostPromptKeys
	logs float64                // Σ ln(scale) of keys
}

// promptRatio is what the prompts of one key have shown.
type promptRatio struct {
	prior             float64 // tokens of belief in the bare estimate that do not fade
	counted, estimate float64 // tokens of the finished requests, and of the start of a key, fading
}

// scale is how many tokens are counted for one estimated.
func (r promptRatio) scale() float64 { return (r.counted + r.prior) / (r.estimate + r.prior) }

// apply returns what an estimate for a prompt of key is worth.
func (p *promptScale) apply(key string, estimate int) int {
	return int(min(max(1, p.of(key)*float64(estimate)), maxPromptTokens))
}

// of returns the scale of key.
func (p *promptScale) of(key string) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, known := p.keys[key]; known {
		return r.scale()
	}
	return p.start()
}

// start is the scale of a key of which nothing is known: the geometric mean of the
// others, with routePrior. p.mu is held.
func (p *promptScale) start() float64 {
	return math.Exp(p.logs / float64(len(p.keys)+routePrior))
}

// learn adds a finished request of key. A count that is 16 times off was made by
// something else than the size of the body, or is not true.
func (p *promptScale) learn(key string, estimate, counted int) {
	if estimate <= 0 || counted <= 0 || counted > 16*estimate || estimate > 16*counted {
		return
	}
	size := float64(estimate)
	tokens := min(max(leastScale*size, float64(counted)), mostScale*size)
	weight, memory := size, float64(promptMemory)
	if key != "" {
		weight, memory = min(size, keyWeight), keyMemory
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r, known := p.keys[key]
	switch {
	case known:
		p.logs -= math.Log(r.scale())
	case key == "":
		p.makeRoom()
		r.prior = promptPrior
	default:
		p.makeRoom()
		r.counted, r.estimate = promptPrior*p.start(), promptPrior
	}
	keep := max(0, 1-weight/memory)
	r.counted = r.counted*keep + tokens*(weight/size)
	r.estimate = r.estimate*keep + weight
	p.keys[key] = r
	p.logs += math.Log(r.scale())
}

// makeRoom has a place for one more key. p.mu is held.
func (p *promptScale) makeRoom() {
	if p.keys == nil {
		p.keys = map[string]promptRatio{}
	}
	if len(p.keys) < mostPromptKeys {
		return
	}
	for key, r := range p.keys { // in no order
		p.logs -= math.Log(r.scale())
		delete(p.keys, key)
		return
	}
}
