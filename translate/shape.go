package translate

import (
	"bytes"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/pacer-dev/pacer/internal/openai"
)

// maxShape bounds what a stream keeps of a payload, in bytes.
const maxShape = 1 << 10

// shape is the payload that a stream repeats, but for its text, for what it counts
// and for what it is padded with: servers write the same bytes around every piece.
// A payload of the shape is not read as JSON.
//
// Invariant: the last payload that was read said one piece of text, and maybe a
// usage, and changed nothing in who reads it. So any payload with the same bytes
// around another text says the same of that text. The zero value is none.
type shape struct {
	name  []byte
	fixed [4][]byte // before, between and behind the holes
	holes [3]hole
	n     int // holes; 0 = there is no shape
	piece Event

	at  [3]span // where the holes are in the payload that was matched last
	off bool    // for tests: nothing is recognised

	// What the payload under way has said so far.
	events int
	usage  []byte
}

// hole is what differs from payload to payload.
type hole uint8

const (
	textHole    hole = iota // a string that is not empty, with its quotes
	usageHole               // an object
	paddingHole             // a string that nobody reads, with its quotes
)

// span is a piece of a payload: [from, to).
type span struct{ from, to int }

// begin is called before a payload is read.
func (s *shape) begin() { s.n, s.events, s.usage = 0, 0, nil }

// note takes an event of the payload under way. One that says anything but a piece
// of text and a usage counts for more than there may be.
func (s *shape) note(e *Event) {
	s.events++
	switch {
	case e.Kind == Used && e.Raw != nil && s.events == 1:
		s.usage, s.events = e.Raw, 0
	case e.Kind == BlockDelta && e.Block != Redacted && s.events == 1:
		s.piece = *e
	default:
		s.events = 2
	}
}

// learn takes the shape of f, which was read.
func (s *shape) learn(f frame) {
	if s.events != 1 || len(f.data) > maxShape || s.off {
		return
	}
	var at [3]span
	text, ok := within(f.data, s.piece.Text)
	if !ok {
		return
	}
	at[0], s.holes[0], s.n = text, textHole, 1
	if s.usage != nil {
		usage, ok := within(f.data, s.usage)
		if !ok || usage.from < text.to && text.from < usage.to {
			s.n = 0
			return
		}
		s.add(&at, usage, usageHole)
	}
	if pad, ok := padding(f.data, at[s.n-1].to); ok {
		s.add(&at, pad, paddingHole)
	}
	s.name = append(s.name[:0], f.name...)
	from := 0
	for i := range s.n {
		s.fixed[i] = append(s.fixed[i][:0], f.data[from:at[i].from]...)
		from = at[i].to
	}
	s.fixed[s.n] = append(s.fixed[s.n][:0], f.data[from:]...)
	s.piece.Text = nil
}

// add puts a hole where it belongs.
func (s *shape) add(at *[3]span, w span, h hole) {
	i := s.n
	for ; i > 0 && at[i-1].from > w.from; i-- {
		at[i], s.holes[i] = at[i-1], s.holes[i-1]
	}
	at[i], s.holes[i] = w, h
	s.n++
}

// within is where part lies in all, if it shares its memory.
func within(all, part []byte) (span, bool) {
	if len(all) == 0 || len(part) == 0 {
		return span{}, false
	}
	from := uintptr(unsafe.Pointer(unsafe.SliceData(part))) - uintptr(unsafe.Pointer(unsafe.SliceData(all)))
	if from > uintptr(len(all)-len(part)) {
		return span{}, false
	}
	return span{int(from), int(from) + len(part)}, true
}

// padding finds the string that OpenAI and Bedrock fill up their pieces with, so
// that their lengths say nothing: it stands at the end.
func padding(data []byte, from int) (span, bool) {
	for _, name := range []string{`"p":"`, `"obfuscation":"`} {
		if i := bytes.LastIndex(data[from:], []byte(name)); i >= 0 {
			at := from + i + len(name) - 1
			if n := valueLen(data[at:], '"'); n > 0 && bytes.IndexByte(data[at+n:], '"') < 0 {
				return span{at, at + n}, true
			}
		}
	}
	return span{}, false
}

// matches reports whether f is of the shape, and notes where its holes are.
func (s *shape) matches(f frame) bool {
	if s.n == 0 || !bytes.Equal(f.name, s.name) {
		return false
	}
	d, at := f.data, 0
	for i := range s.n {
		if !bytes.HasPrefix(d[at:], s.fixed[i]) {
			return false
		}
		at += len(s.fixed[i])
		begin := byte('"')
		if s.holes[i] == usageHole {
			begin = '{'
		}
		n := valueLen(d[at:], begin)
		if n == 0 || n == len(`""`) && s.holes[i] == textHole {
			return false
		}
		s.at[i] = span{at, at + n}
		at += n
	}
	return bytes.Equal(d[at:], s.fixed[s.n])
}

// firstEvent is the event that p begins with, and how long it is, if it is written as
// servers mostly do: maybe a name, then one line of data. size is 0 for all others.
func firstEvent(p []byte) (f frame, size int) {
	if bytes.HasPrefix(p, []byte("event: ")) {
		end := bytes.IndexByte(p, '\n')
		if end < 0 || p[end-1] == '\r' {
			return f, 0
		}
		f.name, size = p[len("event: "):end], end+1
	}
	if !bytes.HasPrefix(p[size:], []byte("data: ")) {
		return f, 0
	}
	size += len("data: ")
	n := bytes.IndexByte(p[size:], '\n')
	if n <= 0 {
		return f, 0
	}
	f.data = p[size : size+n]
	size += n + 1
	end := 1
	if f.data[n-1] == '\r' {
		f.data, end = f.data[:n-1], 2
	}
	if bytes.IndexByte(f.data, '\r') >= 0 || bytes.IndexByte(f.name, '\r') >= 0 || len(p) < size+end || p[size+end-1] != '\n' || end == 2 && p[size] != '\r' {
		return f, 0
	}
	return f, size + end
}

// say emits what f says, which matches.
func (s *shape) say(f frame, from hearing, to heard) {
	e := s.piece
	for i := range s.n {
		part := f.data[s.at[i].from:s.at[i].to]
		switch s.holes[i] {
		case textHole:
			e.Text = part
		case usageHole:
			from.used(gjson.Result{Type: gjson.JSON, Raw: unsafe.String(unsafe.SliceData(part), len(part))}, to)
		}
	}
	to.emit(e)
}

// valueLen is how long the JSON value is that b begins with, if it begins with begin; 0 =
// there is none.
func valueLen(b []byte, begin byte) int {
	if len(b) == 0 || b[0] != begin {
		return 0
	}
	for i := 1; begin == '"' && i < len(b) && b[i] >= ' ' && b[i] != '\\'; i++ { // as most texts
		if b[i] == '"' {
			return i + 1
		}
	}
	return openai.ValueLen(b)
}
