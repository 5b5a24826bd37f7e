package providers

import (
	"bytes"
	"hash/maphash"

	"github.com/pacer-dev/pacer/internal/openai"
)

// maxShape bounds what is kept of a shape, in bytes.
const maxShape = 1 << 10

// shapeSeed is of this process alone: nobody can find bytes of which shapeSum says what
// it says of others.
var shapeSeed = maphash.MakeSeed()

// shapeSum stands for p, so that of thousands of streams nothing of it has to be in a
// cache: bytes that differ have the same one in 2^64 cases once.
func shapeSum(p []byte) uint64 { return maphash.Bytes(shapeSeed, p) }

// shape is the event that a stream repeats, but for its text: engines write the
// same bytes around every token. An event of the shape says what the one said that
// it was taken from, and is recognised without being parsed.
//
// Invariant: what stands before + t + after is one whole event that holds t as its only
// content, whatever text t is that has neither quotes, escapes nor control characters,
// and is not empty; and nothing of it is ever cut out. The zero value is none.
type shape struct {
	beforeSum, afterSum uint64 // shapeSum of what stands around the text
	before, after       uint16 // how much that is, in bytes; before = 0: there is no shape
	reasoning           bool
	off                 bool // for tests: nothing is recognised
}

// learn takes the shape of an event that was read from data as c.
func (s *shape) learn(data []byte, c *openai.Chunk) {
	const head, tail = "data: ", "\n\n"
	size := len(data) + len(head) + len(tail)
	alone := c.Content && c.Texts == 1 && !c.Text.Escaped && c.Bytes == c.Text.To-c.Text.From
	if !alone || c.HasUsage || c.HasTimings || c.Error || c.Choices.Count != 1 || c.Choices.Finished || c.Running.To > 0 || size > maxShape {
		return
	}
	var room [maxShape]byte
	before := append(append(room[:0], head...), data[:c.Text.From]...)
	after := append(append(before[len(before):], data[c.Text.To:]...), tail...)
	s.before, s.beforeSum = uint16(len(before)), shapeSum(before)
	s.after, s.afterSum = uint16(len(after)), shapeSum(after)
	s.reasoning = c.Reasoning
}

// count returns how far p is made of events of the shape, in bytes, how many those
// are, and how much text they have. The first one shows by its sums what the others are
// compared with.
func (s *shape) count(p []byte) (size, events, text int) {
	if s.before == 0 || s.off {
		return 0, 0, 0
	}
	var before, after []byte
	for rest := p; len(rest) > int(s.before); {
		head, behind := rest[:s.before], rest[s.before:]
		n := plainText(behind)
		if n == 0 || len(behind)-n < int(s.after) {
			break
		}
		tail := behind[n : n+int(s.after)]
		switch {
		case events > 0:
			if !bytes.Equal(head, before) || !bytes.Equal(tail, after) {
				return size, events, text
			}
		case shapeSum(head) != s.beforeSum || shapeSum(tail) != s.afterSum:
			return 0, 0, 0
		default:
			before, after = head, tail
		}
		rest = behind[n+len(tail):]
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
