package openai

import "bytes"

// Members calls take with each top-level member of a body that Peek has read: its
// key, as it is written, and where its value lies in the body. There are none of a
// form, and of a body that was let go.
func (r *Request) Members(take func(key, value []byte, from int)) {
	if r.body == nil || r.form {
		return
	}
	w := walker{b: r.body}
	w.fields(w.space(0), func(key []byte, v int) int {
		end := w.value(v, 1)
		if end > 0 {
			take(key, r.body[v:end], v)
		}
		return end
	})
}

// Open is where the body's first member may be put in: behind its opening brace.
func (r *Request) Open() int { return r.spans.first }

// ValueLen is how long the JSON value is that b begins with; 0 = there is none, or it
// nests deeper than 1,000 levels.
func ValueLen(b []byte) int {
	w := walker{b: b}
	return max(w.value(0, 0), 0)
}

// TextLen is how many bytes of UTF-8 the JSON string q stands for, which was checked, and
// Unquote is its text; a q without quotes has none.
func TextLen(q []byte) int {
	if len(q) < 2 {
		return 0
	}
	return textLen(q[1:len(q)-1], bytes.IndexByte(q, '\\') >= 0)
}

func Unquote(q []byte) string {
	if len(q) < 2 {
		return ""
	}
	return unquote(q, bytes.IndexByte(q, '\\') >= 0)
}

// Valid reports whether text is one JSON value that nests no deeper than 1,000 levels.
func Valid(text []byte) bool {
	w := walker{b: text}
	end := w.value(w.space(0), 0)
	return end > 0 && w.space(end) == len(text)
}

// CountValues is how many JSON values text has, at whatever depth, itself among them; of
// what is no JSON as many as were begun.
func CountValues(text []byte) int {
	w := walker{b: text}
	w.value(w.space(0), 0)
	return w.n
}
