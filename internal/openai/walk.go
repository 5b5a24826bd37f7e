package openai

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep objects and arrays may nest, the outermost counted.
const maxDepth = 1000

// span is a range of byte offsets; from == to: absent.
type span struct{ from, to int }

// walker goes over one JSON text by byte offsets and checks it on the way. Its
// methods take the offset where something begins and return the one behind it,
// or -1 when the text is not JSON; the first such place is kept in bad.
//
// It allocates nothing. What it accepts is what encoding/json accepts, up to
// maxDepth, and NaN and the infinities where they are asked for.
type walker struct {
	b    []byte
	n    int  // values that were begun
	inf  bool // NaN, Infinity and -Infinity are values, as Python writes and reads them
	bad  int  // offset of the first error, once a method returned -1
	deep bool // and it was the nesting
}

func (w *walker) fail(at int) int {
	w.bad = at
	return -1
}

// space skips white space.
func (w *walker) space(i int) int {
	for i < len(w.b) {
		switch w.b[i] {
		case ' ', '\t', '\n', '\r':
			i++
		default:
			return i
		}
	}
	return i
}

// kind is the first byte of the value at i, 0 at the end of the text.
func (w *walker) kind(i int) byte {
	if i < len(w.b) {
		return w.b[i]
	}
	return 0
}

// value walks over the value at i, which lies in depth containers.
func (w *walker) value(i, depth int) int {
	w.n++
	switch c := w.kind(i); c {
	case '"':
		end, _ := w.str(i)
		return end
	case '{':
		return w.object(i, depth)
	case '[':
		return w.array(i, depth)
	case 't':
		return w.literal(i, "true")
	case 'f':
		return w.literal(i, "false")
	case 'n':
		return w.literal(i, "null")
	default:
		if c == '-' && w.inf && w.kind(i+1) == 'I' {
			return w.literal(i, "-Infinity")
		}
		if c == '-' || '0' <= c && c <= '9' {
			return w.number(i)
		}
		if c == 'I' && w.inf {
			return w.literal(i, "Infinity")
		}
		if c == 'N' && w.inf {
			return w.literal(i, "NaN")
		}
		return w.fail(i)
	}
}

func (w *walker) object(i, depth int) int {
	if !w.enter(i, depth) {
		return -1
	}
	return w.fields(i, func(_ []byte, v int) int { return w.value(v, depth+1) })
}

func (w *walker) array(i, depth int) int {
	if !w.enter(i, depth) {
		return -1
	}
	return w.items(i, func(at int) int { return w.value(at, depth+1) })
}

// fields goes over the object at i. take gets each key, as it is written, and
// where its value begins, and returns the offset behind that, or -1.
func (w *walker) fields(i int, take func(key []byte, v int) int) int {
	at, done := w.first(i, '}')
	for !done {
		key, _, v := w.key(at)
		if v < 0 {
			return -1
		}
		if v = take(key, v); v < 0 {
			return -1
		}
		at, done = w.next(v, '}')
	}
	return at
}

// items goes over the array at i. take gets where each item begins, and returns
// the offset behind it, or -1.
func (w *walker) items(i int, take func(at int) int) int {
	at, done := w.first(i, ']')
	for !done {
		if at = take(at); at < 0 {
			return -1
		}
		at, done = w.next(at, ']')
	}
	return at
}

// enter reports whether one more container may open at i.
func (w *walker) enter(i, depth int) bool {
	if depth >= maxDepth {
		w.deep = true
		w.fail(i)
		return false
	}
	return true
}

// first returns where the first item of the container at i begins; done when
// it is empty, and then at is behind it. A loop over items is
//
//	for at, done := w.first(i, end); !done; at, done = w.next(behindItem, end)
func (w *walker) first(i int, end byte) (at int, done bool) {
	at = w.space(i + 1)
	if w.kind(at) == end {
		return at + 1, true
	}
	return at, false
}

// next goes from behind an item to the next one; done at the end of the
// container, and then at is behind it, or -1.
func (w *walker) next(i int, end byte) (at int, done bool) {
	i = w.space(i)
	switch w.kind(i) {
	case end:
		return i + 1, true
	case ',':
		return w.space(i + 1), false
	}
	return w.fail(i), true
}

// key reads the key at i and returns its bytes between the quotes and where
// its value begins.
func (w *walker) key(i int) (key []byte, escaped bool, value int) {
	if w.kind(i) != '"' {
		return nil, false, w.fail(i)
	}
	end, escaped := w.str(i)
	if end < 0 {
		return nil, false, -1
	}
	colon := w.space(end)
	if w.kind(colon) != ':' {
		return nil, false, w.fail(colon)
	}
	return w.b[i+1 : end-1], escaped, w.space(colon + 1)
}

const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// str walks over the string whose opening quote is at i.
//
// Eight bytes at a time are searched for the three kinds that matter: (x-k)&^x
// has the high bit of a byte set if the byte is below k (below 0x80), and a
// byte equal to c is one below 1 in x^c. A borrow can only mark bytes behind a
// true hit, so the first mark is right.
func (w *walker) str(i int) (end int, escaped bool) {
	b := w.b
	for i++; ; {
		for i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			quote, slash := x^('"'*lows), x^('\\'*lows)
			m := ((x-0x20*lows)&^x | (quote-lows)&^quote | (slash-lows)&^slash) & highs
			if m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			i += 8
		}
		for i < len(b) && b[i] >= 0x20 && b[i] != '"' && b[i] != '\\' {
			i++
		}
		if i >= len(b) || b[i] < 0x20 {
			return w.fail(i), false
		}
		if b[i] == '"' {
			return i + 1, escaped
		}
		escaped = true
		if i = w.escape(i + 1); i < 0 {
			return -1, false
		}
	}
}

// escape walks over what follows a backslash.
func (w *walker) escape(i int) int {
	switch w.kind(i) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if i+5 > len(w.b) {
			return w.fail(len(w.b))
		}
		for j := i + 1; j < i+5; j++ {
			if hex(w.b[j]) < 0 {
				return w.fail(j)
			}
		}
		return i + 5
	}
	return w.fail(i)
}

func hex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func (w *walker) number(i int) int {
	if w.b[i] == '-' {
		i++
	}
	var ok bool
	if w.kind(i) == '0' {
		i++
	} else if i, ok = w.digits(i); !ok {
		return w.fail(i)
	}
	if w.kind(i) == '.' {
		if i, ok = w.digits(i + 1); !ok {
			return w.fail(i)
		}
	}
	if c := w.kind(i); c == 'e' || c == 'E' {
		i++
		if c := w.kind(i); c == '+' || c == '-' {
			i++
		}
		if i, ok = w.digits(i); !ok {
			return w.fail(i)
		}
	}
	return i
}

// digits walks over at least one digit.
func (w *walker) digits(i int) (end int, ok bool) {
	for ; i < len(w.b) && '0' <= w.b[i] && w.b[i] <= '9'; i++ {
		ok = true
	}
	return i, ok
}

func (w *walker) literal(i int, word string) int {
	for j := range len(word) {
		if w.kind(i+j) != word[j] {
			return w.fail(min(i+j, len(w.b)))
		}
	}
	return i + len(word)
}

// unquote returns the text of the string raw, quotes included, as
// encoding/json reads it.
func unquote(raw []byte, escaped bool) string {
	text := raw[1 : len(raw)-1]
	if !escaped && utf8.Valid(text) {
		return string(text)
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(text)
	}
	return s
}

// textLen returns how many bytes of UTF-8 the checked string b (without its
// quotes) stands for.
func textLen(b []byte, escaped bool) int {
	if !escaped {
		return len(b)
	}
	n := 0
	for i := 0; i < len(b); {
		switch {
		case b[i] != '\\':
			i++
			n++
		case b[i+1] != 'u':
			i += 2
			n++
		default:
			var r rune
			if r, i = escapedRune(b, i); utf16.IsSurrogate(r) {
				r = utf8.RuneError // half a pair
			}
			n += utf8.RuneLen(r)
		}
	}
	return n
}

// codeUnit reads the four hex digits of an escape.
func codeUnit(b []byte) rune {
	return rune(hex(b[0])<<12 | hex(b[1])<<8 | hex(b[2])<<4 | hex(b[3]))
}
