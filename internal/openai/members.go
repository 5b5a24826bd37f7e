package openai

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

// AppendString appends text as a JSON string.
func AppendString(b []byte, text string) []byte { return appendString(b, text) }
