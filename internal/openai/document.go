package openai

import "bytes"

// maxMember is how much of a document's usage or error is kept, in bytes.
const maxMember = 4 << 10

// Document reads usage off a JSON answer of any size that comes in pieces, and
// keeps nothing else of it: vectors and images have hundreds of megabytes. It
// finds where the top level's values begin and end; that the rest is JSON it
// takes on trust. The zero value is ready.
type Document struct {
	depth  int
	inText bool // within a string
	escape bool // behind a backslash in it
	begun  bool
	over   bool // the outermost value has ended
	broken bool // what came is no JSON document

	expectKey bool
	key       [6]byte // of the top level, as far as it matters
	keyLen    int     // may be above len(key)
	inKey     bool
	member    []byte // the value of usage or error
	keeping   byte   // 'u', 'e'; 0 = none

	tally  tally
	failed bool
}

// Feed takes the next piece.
func (d *Document) Feed(p []byte) {
	for i := 0; i < len(p) && !d.broken; {
		if d.inText {
			i += d.text(p[i:])
			continue
		}
		if d.depth > 1 && d.keeping == 0 { // numbers, mostly
			for i < len(p) && !structural[p[i]] {
				i++
			}
			if i == len(p) {
				return
			}
		}
		d.mark(p[i])
		i++
	}
}

// structural are the bytes that change where in a document the next one lies.
var structural = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

// text takes the beginning of p, which lies in a string, and returns how much.
func (d *Document) text(p []byte) int {
	if d.escape {
		d.escape = false
		d.keep(p[:1])
		return 1
	}
	n := bytes.IndexByte(p, '"')
	if n < 0 {
		n = len(p)
	}
	if slash := bytes.IndexByte(p[:n], '\\'); slash >= 0 {
		d.escape = true
		d.keep(p[:slash+1])
		return slash + 1
	}
	if n < len(p) {
		n++
		d.inText = false
	}
	d.keep(p[:n])
	return n
}

// mark takes one byte that lies in no string.
func (d *Document) mark(c byte) {
	switch c {
	case ' ', '\t', '\n', '\r':
		return
	}
	if d.over || !d.begun && c != '{' && c != '[' {
		d.broken = true
		return
	}
	d.begun = true
	top := d.depth == 1
	switch c {
	case '"':
		d.inText = true
		d.inKey, d.keyLen = top && d.expectKey, 0
		if d.inKey {
			d.expectKey = false
			return
		}
	case '{', '[':
		d.depth++
		if d.depth == 1 {
			d.expectKey = true // in an array too, where no colon will follow it
			return
		}
	case '}', ']':
		if top {
			d.endMember()
			d.over = true
		}
		d.depth--
	case ',':
		if top {
			d.endMember()
			return
		}
	case ':':
		if top && d.inKey {
			d.inKey = false
			switch string(d.key[:min(d.keyLen, len(d.key))]) {
			case `usage"`:
				d.keeping = 'u'
			case `error"`:
				d.keeping = 'e'
			}
			return
		}
	}
	if d.keeping != 0 {
		d.keep([]byte{c})
	}
}

// keep notes p where it is of interest. The key of a member ends in its quote.
func (d *Document) keep(p []byte) {
	switch {
	case d.inKey:
		if d.keyLen < len(d.key) {
			copy(d.key[d.keyLen:], p)
		}
		d.keyLen = min(d.keyLen+len(p), len(d.key)+1)
	case d.keeping != 0 && len(d.member) <= maxMember:
		d.member = append(d.member, p[:min(len(p), maxMember+1-len(d.member))]...)
	}
}

// endMember ends a member of the top level.
func (d *Document) endMember() {
	d.expectKey = true
	switch d.keeping {
	case 'u':
		w, counts := walker{b: d.member, inf: true}, d.tally
		if len(d.member) <= maxMember && w.tally(0, 1, &counts) == len(d.member) {
			d.tally = counts
		}
	case 'e':
		d.failed = saysError(d.member)
	}
	d.keeping, d.member = 0, d.member[:0]
}

// Kept is how many bytes are held.
func (d *Document) Kept() int { return cap(d.member) }

// End reports what was found; whole is whether the document came to its end.
func (d *Document) End() (u Usage, hasUsage, failed, whole bool) {
	return d.tally.usage(), d.tally.found, d.failed, d.over && !d.broken
}

// saysError reports whether the value of an error member is one.
func saysError(value []byte) bool {
	switch string(value) {
	case "", "null", "false", `""`:
		return false
	}
	return true
}
