package providers

import (
	"bytes"

	"github.com/pacer-dev/pacer/internal/openai"
)

// maxShape bounds what is kept of a shape, in bytes.
const maxShape = 1 << 10

// shape is the event that a stream repeats, but for its text: engines write the
// same bytes around every token. An event of the shape says what the one said that
// it was taken from, and is recognised without being parsed.
//
// Invariant: before + t + after is one whole event that holds t as its only content,
// whatever text t is that has neither quotes, escapes nor control characters, and is
// not empty; and nothing of it is ever cut out. The zero value is none.
type shape struct {
	before, after []byte
	reasoning     bool
	off           bool // for tests: nothing is recognised
}

// learn takes the shape of an event that was read from data as c.
func (s *shape) learn(data []byte, c *openai.Chunk) {
	size := len(data) + len("data: ") + len("\n\n")
	alone := c.Content && c.Texts == 1 && !c.Text.Escaped && c.Bytes == c.Text.To-c.Text.From
	if !alone || c.HasUsage || c.HasTimings || c.Error || c.Choices.Count != 1 || c.Choices.Finished || c.Running.To > 0 || size > maxShape {
		return
	}
	s.before = append(append(s.before[:0], "data: "...), data[:c.Text.From]...)
	s.after = append(append(s.after[:0], data[c.Text.To:]...), "\n\n"...)
	s.reasoning = c.Reasoning
}

// count returns how far p is made of events of the shape, in bytes, how many those
// are, and how much text they have.
func (s *shape) count(p []byte) (size, events, text int) {
	if len(s.before) == 0 || s.off {
		return 0, 0, 0
	}
	for rest := p; bytes.HasPrefix(rest, s.before); {
		rest = rest[len(s.before):]
		n := plainText(rest)
		if n == 0 || !bytes.HasPrefix(rest[n:], s.after) {
			break
		}
		rest = rest[n+len(s.after):]
		size, events, text = len(p)-len(rest), events+1, text+n
	}
	return size, events, text
}

// plainText is how much of p stands for itself within a JSON string, up to its quote;
// 0 = something else does.
func plainText(p []byte) int {
	for i, c := range p {
		switch {
		case c == '"':
			return i
		case c == '\\', c < ' ':
			return 0
		}
	}
	return 0
}
