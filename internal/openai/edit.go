package openai

import "unicode/utf8"

// splice replaces the bytes of at by text.
type splice struct {
	at   span
	text []byte
}

// Edit returns the body with model replaced (unless "" or the same) and, if
// injectUsage, stream_options.include_usage set to true. All other bytes stay.
// Without an edit it returns the body itself.
func (r *Request) Edit(model string, injectUsage bool) []byte {
	var edits [2]splice
	n := 0
	if model != "" && model != r.Model {
		text := []byte(model)
		if !r.form {
			text = appendString(make([]byte, 0, len(model)+2), model)
		}
		edits[n] = splice{r.spans.model, text}
		n++
	}
	if injectUsage && !r.IncludeUsage && !r.form {
		edits[n] = r.askForUsage()
		n++
	}
	if n == 0 {
		return r.body
	}
	if n == 2 && edits[1].at.from < edits[0].at.from {
		edits[0], edits[1] = edits[1], edits[0]
	}
	size := len(r.body)
	for _, e := range edits[:n] {
		size += len(e.text) - (e.at.to - e.at.from)
	}
	out, done := make([]byte, 0, size), 0
	for _, e := range edits[:n] {
		out = append(append(out, r.body[done:e.at.from]...), e.text...)
		done = e.at.to
	}
	return append(out, r.body[done:]...)
}

// askForUsage is the edit that sets stream_options.include_usage.
func (r *Request) askForUsage() splice {
	options, usage := r.spans.streamOptions, r.spans.includeUsage
	switch {
	case usage.to > 0:
		return splice{usage, []byte("true")}
	case options.to == 0: // a body has a model, so something follows
		return splice{span{r.spans.first, r.spans.first}, []byte(`"stream_options":{"include_usage":true},`)}
	case r.body[options.from] != '{': // null
		return splice{options, []byte(`{"include_usage":true}`)}
	case r.spans.optionsEmpty:
		return splice{span{options.from + 1, options.from + 1}, []byte(`"include_usage":true`)}
	}
	return splice{span{options.from + 1, options.from + 1}, []byte(`"include_usage":true,`)}
}

// appendString appends s as a JSON string. Only what must be escaped is:
// markup and other scripts stay as they are, and bytes that are not UTF-8
// become U+FFFD.
func appendString(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		case c < utf8.RuneSelf:
			b = append(b, c)
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			b = utf8.AppendRune(b, r)
			i += size
			continue
		}
		i++
	}
	return append(b, '"')
}
