package sim

import "time"

// Sequence is one prompt and the answer that an Engine gives to it. It belongs
// to its engine; a caller keeps the pointer to Cancel it and reads Tag.
type Sequence struct {
	// Tag is the caller's own; the engine does not look at it.
	Tag any

	state  sequenceState
	prompt int       // tokens not yet prefilled
	left   int       // tokens not yet produced
	cache  int       // KV tokens reserved: prompt and answer; with Preempt, in use
	chunk  int       // prompt tokens prefilled by the step under way
	last   time.Time // of its newest token

	context int  // tokens that a decode step attends to
	resumed bool // was preempted after its first token, and prefills what it lost

	hashes []uint64 // of the blocks of prompt and answer; nil = nothing of it is cached
	held   []*block // of the prefix cache, that it uses
	cached int      // tokens of its prompt that were there when it got its slot

	links[*Sequence] // while waiting
}

type sequenceState uint8

const (
	waiting sequenceState = iota
	running               // has a slot; prefilling while prompt > 0, then decoding
	ended                 // finished or cancelled
)

// Admitted reports whether the sequence was ever given a slot or has ended.
func (s *Sequence) Admitted() bool { return s.state != waiting }

// Cached is how many tokens of the prompt the prefix cache had when the sequence
// got its slot.
func (s *Sequence) Cached() int { return s.cached }
