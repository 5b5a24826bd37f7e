package gateway

import "sync"

const (
	// promptPrior is how many estimated tokens' worth of belief in the bare
	// estimate the first requests have to overcome.
	promptPrior = 1000

	// promptMemory is how many estimated tokens the ratio remembers: what lies
	// further back counts less and less.
	promptMemory = 1 << 20

	// maxPromptTokens bounds what a client can make us believe.
	maxPromptTokens = 1 << 20
)

// promptScale learns how many tokens of prompt a route's backends count for
// each that was estimated from the size of the body: languages and tokenizers
// differ by factors. The zero value is ready; it is safe for concurrent use.
type promptScale struct {
	mu                sync.Mutex // guards counted and estimated
	counted, estimate float64    // tokens of the finished requests, fading
}

// apply returns what an estimate is worth.
func (p *promptScale) apply(estimate int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	scale := (p.counted + promptPrior) / (p.estimate + promptPrior)
	return int(min(max(1, scale*float64(estimate)), maxPromptTokens))
}

// learn adds a finished request. A count that is 16 times off was made by
// something else than the size of the body, or is not true.
func (p *promptScale) learn(estimate, counted int) {
	if estimate <= 0 || counted <= 0 || counted > 16*estimate || estimate > 16*counted {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	keep := max(0, 1-float64(estimate)/promptMemory)
	p.counted = p.counted*keep + float64(counted)
	p.estimate = p.estimate*keep + float64(estimate)
}
