package openai

import (
	"unicode/utf16"
	"unicode/utf8"
)

// promptKeys are where the text of a prompt stands.
var promptKeys = map[string]bool{
	"content": true, "text": true, "prompt": true, "input": true, "system": true, "instructions": true,
	"arguments": true, "description": true, "reasoning": true, "reasoning_content": true, "thinking": true,
}

// PromptText returns the beginning of the text of the prompt in a request body
// that Peek accepted, at most most bytes of UTF-8, and how many bytes of the body
// it was found in. Images and sound are no text.
func PromptText(body []byte, most int) (text []byte, within int) {
	p := promptReader{walker: walker{b: body}, most: most}
	if p.read(p.space(0), false) < 0 && !p.full() {
		return nil, 0 // no JSON: a form
	}
	if !p.full() {
		return p.text, len(body)
	}
	return p.text, p.within
}

type promptReader struct {
	walker
	text   []byte
	most   int
	within int // how far text goes in b
}

func (p *promptReader) full() bool { return len(p.text) >= p.most-utf8.UTFMax }

// read walks over the value at i and takes its strings if they are text. It
// returns -1 at an error, and once it has enough.
func (p *promptReader) read(i int, isText bool) int {
	switch p.kind(i) {
	case '"':
		end, escaped := p.str(i)
		if end < 0 || !isText {
			return end
		}
		text, used := appendUnquoted(p.text, p.b[i+1:end-1], escaped, p.most-1)
		if p.text = append(text, '\n'); p.full() {
			p.within = i + 1 + used
			return -1
		}
		return end
	case '[':
		return p.items(i, func(at int) int { return p.read(at, isText) })
	case '{':
		return p.fields(i, func(key []byte, v int) int { return p.read(v, promptKeys[string(key)]) })
	}
	return p.value(i, 0)
}

// appendUnquoted appends the text that the checked string b (without its
// quotes) stands for, as encoding/json reads it but for bytes that are not
// UTF-8, as far as whole characters of it leave dst at most most bytes. It
// returns how much of b that is.
func appendUnquoted(dst, b []byte, escaped bool, most int) ([]byte, int) {
	if !escaped {
		used := min(len(b), max(most-len(dst), 0))
		for used > 0 && used < len(b) && !utf8.RuneStart(b[used]) {
			used--
		}
		return append(dst, b[:used]...), used
	}
	i := 0
	for i < len(b) && len(dst) < most {
		switch c := b[i]; {
		case utf8.RuneStart(c) && (c >= utf8.RuneSelf || c == '\\' && b[i+1] == 'u') && len(dst) > most-utf8.UTFMax:
			return dst, i // there may be no room for all of it
		case c != '\\':
			dst = append(dst, c)
			i++
		case b[i+1] != 'u':
			dst = append(dst, unescaped[b[i+1]])
			i += 2
		default:
			var r rune
			r, i = escapedRune(b, i)
			dst = utf8.AppendRune(dst, r) // half a pair becomes U+FFFD
		}
	}
	return dst, i
}

// escapedRune reads the \u escape at i, or both of a pair of surrogates.
func escapedRune(b []byte, i int) (r rune, end int) {
	r = codeUnit(b[i+2:])
	i += 6
	if utf16.IsSurrogate(r) && i+6 <= len(b) && b[i] == '\\' && b[i+1] == 'u' {
		if pair := utf16.DecodeRune(r, codeUnit(b[i+2:])); pair != utf8.RuneError {
			return pair, i + 6
		}
	}
	return r, i
}

// unescaped is what a letter behind a backslash stands for.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
