package openai

import "io"

// Splice replaces the bytes [From, To) of a body by Text.
type Splice struct {
	From, To int
	Text     []byte
}

// EditedLen is how long a body of n bytes is with edits.
func EditedLen(n int, edits []Splice) int {
	for _, e := range edits {
		n += len(e.Text) - (e.To - e.From)
	}
	return n
}

// Reader reads a body with edits, of which none lies before, or within, the
// one before it. It holds no copy.
type Reader struct {
	body  []byte
	at    int      // what of body has been read, or left out
	text  []byte   // what is left of the edit under way
	edits []Splice // that come after it
}

// NewReader returns a Reader at the beginning.
func NewReader(body []byte, edits []Splice) *Reader { return &Reader{body: body, edits: edits} }

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(r.text) > 0 {
			m := copy(p[n:], r.text)
			r.text = r.text[m:]
			n += m
			continue
		}
		end := len(r.body)
		if len(r.edits) > 0 {
			end = r.edits[0].From
		}
		m := copy(p[n:], r.body[r.at:end])
		r.at += m
		n += m
		switch {
		case r.at < end: // p is full
		case len(r.edits) > 0:
			r.text, r.at, r.edits = r.edits[0].Text, r.edits[0].To, r.edits[1:]
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
	return n, nil
}
