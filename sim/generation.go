package sim

import "sync/atomic"

// generation is what one HTTP request asks of the engine. Its outbox is a
// counter for each sequence: what has been produced is known from its number,
// so nothing piles up for a client that reads slowly.
type generation struct {
	choices      []choice
	promptTokens int           // of all prompts, each counted once
	maxTokens    int           // of each choice
	wrongUsage   bool          // usage counts one choice only
	news         chan struct{} // a counter moved; holds one

	hashes      []uint64 // of the blocks of prompt and answer, for the prefix cache
	tellsCached bool     // usage says what the prefix cache had
	wrongCached bool     // and that is all of the prompt, whatever it had
}

// choice is one sequence of a generation. The engine's side calls deliver and
// admit; the rest is the handler's.
type choice struct {
	generation   *generation
	sequence     *Sequence
	promptTokens int
	admitted     atomic.Bool
	cached       atomic.Int64 // tokens of the prompt that the prefix cache had
	produced     atomic.Int64 // tokens

	written int // tokens, by the handler
}

// deliver hands over more tokens. It never blocks.
func (c *choice) deliver(tokens int) {
	c.produced.Add(int64(tokens))
	c.generation.tell()
}

// admit says that the sequence got a slot. It never blocks.
func (c *choice) admit() {
	c.cached.Store(int64(c.sequence.Cached()))
	c.admitted.Store(true)
	c.generation.tell()
}

func (g *generation) tell() {
	select {
	case g.news <- struct{}{}:
	default:
	}
}

// admitted reports whether any sequence got a slot.
func (g *generation) admitted() bool {
	for i := range g.choices {
		if g.choices[i].admitted.Load() {
			return true
		}
	}
	return false
}

// produced is how many tokens the furthest choice has, and whether all choices
// have all of theirs.
func (g *generation) produced() (most int, complete bool) {
	complete = true
	for i := range g.choices {
		n := int(g.choices[i].produced.Load())
		most = max(most, n)
		complete = complete && n == g.maxTokens
	}
	return most, complete
}
