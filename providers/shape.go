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

// count returns how many events of the shape p is, and how much text they have; 0 =
// p is not made of such events alone.
func (s *shape) count(p []byte) (events, text int) {
	if len(s.before) == 0 || s.off {
		return 0, 0
	}
	for len(p) > 0 {
		if !bytes.HasPrefix(p, s.before) {
			return 0, 0
		}
		p = p[len(s.before):]
		n := plainText(p)
		if n == 0 || !bytes.HasPrefix(p[n:], s.after) {
			return 0, 0
		}
		p = p[n+len(s.after):]
		events, text = events+1, text+n
	}
	return events, text
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
