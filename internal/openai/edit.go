package openai

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// Ask is what of its usage an answer is asked for.
type Ask uint8

// Each asks for what those before it ask for, too.
const (
	AskNothing    Ask = iota // as the client wrote it
	AskUsage                 // the usage at the end of the stream
	AskContinuous            // the usage in every chunk
)

// Edit returns what has to be changed in the body so that model is replaced
// (with "", the Model that r asks for), or added where the body has none, and the
// stream_options are set that ask names, in the order of the bytes. All others
// stay. nil = nothing has to be.
func (r *Request) Edit(model string, ask Ask) []Splice {
	var edits []Splice
	if model = cmp.Or(model, r.Model); model != r.model {
		edits = append(edits, r.rename(model))
	}
	if !r.form {
		edits = r.ask(ask, edits)
	}
	slices.SortFunc(edits, func(a, b Splice) int { return a.From - b.From })
	return edits
}

// rename returns the edit that has the body say model.
func (r *Request) rename(model string) Splice {
	at, first := r.spans.model, r.spans.first
	switch {
	case r.form && at.to > 0:
		return Splice{at.from, at.to, []byte(model)}
	case r.form:
		first := r.spans.delimiter
		text := slices.Concat(r.body[first.from:first.to], []byte("\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n"), []byte(model), []byte("\r\n"))
		return Splice{first.from, first.from, text}
	case at.to > 0:
		return Splice{at.from, at.to, AppendString(make([]byte, 0, len(model)+2), model)}
	}
	text := AppendString([]byte(`"model":`), model)
	if !r.spans.empty {
		text = append(text, ',')
	}
	return Splice{first, first, text}
}

// Forget lets go of the body. It cannot be edited any more.
func (r *Request) Forget() { r.body = nil }

// ask adds the edits that set the stream_options of ask.
func (r *Request) ask(ask Ask, edits []Splice) []Splice {
	if (ask < AskUsage || r.IncludeUsage) && (ask < AskContinuous || r.ContinuousUsage) {
		return edits
	}
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
			edits = append(edits, Splice{o.value.from, o.value.to, []byte("true")})
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
	case options.to == 0: // a body that asks for a stream is not empty
		return append(edits, Splice{r.spans.first, r.spans.first, append(text[:bare], "},"...)})
	case r.body[options.from] != '{': // null
		return append(edits, Splice{options.from, options.to, append(text[len(key):bare], '}')})
	case r.spans.optionsEmpty:
		text = text[:bare]
	}
	return append(edits, Splice{options.from + 1, options.from + 1, text[members:]})
}

// AppendString appends s as a JSON string. Only what must be escaped is:
// markup and other scripts stay as they are, and bytes that are not UTF-8
// become U+FFFD.
func AppendString(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	from := 0 // what is not appended yet
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[from:i]...), "\uFFFD"...)
				from = i + size
			}
			i += size
			continue
		case c >= 0x20 && c != '"' && c != '\\':
			i++
			continue
		case c == '"' || c == '\\':
			b = append(append(b, s[from:i]...), '\\', c)
		case c == '\n':
			b = append(append(b, s[from:i]...), '\\', 'n')
		default:
			b = append(append(b, s[from:i]...), '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}
