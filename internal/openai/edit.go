package openai

import (
	"slices"
	"unicode/utf8"
)

// splice replaces the bytes of at by text.
type splice struct {
	at   span
	text []byte
}

// Ask is what of its usage an answer is asked for.
type Ask uint8

// Each asks for what those before it ask for, too.
const (
	AskNothing    Ask = iota // as the client wrote it
	AskUsage                 // the usage at the end of the stream
	AskContinuous            // the usage in every chunk
)

// Edit returns the body with model replaced (unless "" or the same) and the
// stream_options set that ask names. All other bytes stay. Without an edit it
// returns the body itself.
func (r *Request) Edit(model string, ask Ask) []byte {
	var room [4]splice
	edits := room[:0]
	if model != "" && model != r.Model {
		text := []byte(model)
		if !r.form {
			text = appendString(make([]byte, 0, len(model)+2), model)
		}
		edits = append(edits, splice{r.spans.model, text})
	}
	if !r.form {
		edits = r.ask(ask, edits)
	}
	if len(edits) == 0 {
		return r.body
	}
	slices.SortFunc(edits, func(a, b splice) int { return a.at.from - b.at.from })
	size := len(r.body)
	for _, e := range edits {
		size += len(e.text) - (e.at.to - e.at.from)
	}
	out, done := make([]byte, 0, size), 0
	for _, e := range edits {
		out = append(append(out, r.body[done:e.at.from]...), e.text...)
		done = e.at.to
	}
	return append(out, r.body[done:]...)
}

// ask adds the edits that set the stream_options of ask.
func (r *Request) ask(ask Ask, edits []splice) []splice {
	const key = `"stream_options":`
	text := append(make([]byte, 0, 96), key...)
	text = append(text, '{')
	members := len(text)
	for _, o := range [...]struct {
		level Ask
		name  string
		is    bool
		value span
	}{
		{AskUsage, includeUsage, r.IncludeUsage, r.spans.includeUsage},
		{AskContinuous, continuousUsage, r.ContinuousUsage, r.spans.continuous},
	} {
		switch {
		case ask < o.level || o.is:
		case o.value.to > 0:
			edits = append(edits, splice{o.value, []byte("true")})
		default:
			text = append(append(append(text, '"'), o.name...), `":true,`...)
		}
	}
	if len(text) == members {
		return edits
	}
	options := r.spans.streamOptions
	bare := len(text) - 1 // without the last comma
	switch {
	case options.to == 0: // a body has a model, so something follows
		return append(edits, splice{span{r.spans.first, r.spans.first}, append(text[:bare], "},"...)})
	case r.body[options.from] != '{': // null
		return append(edits, splice{options, append(text[len(key):bare], '}')})
	case r.spans.optionsEmpty:
		text = text[:bare]
	}
	return append(edits, splice{span{options.from + 1, options.from + 1}, text[members:]})
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
