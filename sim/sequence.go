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

	before, after *Sequence // neighbours while waiting
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

// line is a first-in-first-out queue from whose middle sequences may leave.
// The zero value is empty.
type line struct {
	head, tail *Sequence
	length     int
}

func (l *line) push(s *Sequence) {
	s.before = l.tail
	if l.tail == nil {
		l.head = s
	} else {
		l.tail.after = s
	}
	l.tail = s
	l.length++
}

// unshift puts s at the head of the line.
func (l *line) unshift(s *Sequence) {
	s.after = l.head
	if l.head == nil {
		l.tail = s
	} else {
		l.head.before = s
	}
	l.head = s
	l.length++
}

// remove takes s, which must be in the line, out of it.
func (l *line) remove(s *Sequence) {
	if s.before == nil {
		l.head = s.after
	} else {
		s.before.after = s.after
	}
	if s.after == nil {
		l.tail = s.before
	} else {
		s.after.before = s.before
	}
	s.before, s.after = nil, nil
	l.length--
}
