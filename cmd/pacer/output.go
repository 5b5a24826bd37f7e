package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// obeyed reports whether a terminal may obey c instead of showing it, but for
// tabs and line ends: control characters, those of eight bits too, and marks
// that turn the direction of the text around.
func obeyed(c rune) bool {
	return unicode.IsControl(c) && c != '\n' && c != '\t' || unicode.Is(unicode.Bidi_Control, c)
}

// harmless returns text as it may be shown where its author is not known, on a
// line that holds other words, too.
func harmless(text string) string {
	return strings.Map(func(c rune) rune {
		if obeyed(c) || c == '\n' {
			return '?'
		}
		return c
	}, text)
}

// printJSON writes v for programs, and for people to read as well.
func printJSON(out io.Writer, v any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := out.Write(harmlessJSON(text.Bytes()))
	return err
}

// harmlessJSON returns the same JSON with those characters escaped which may
// stand in it as they are, and which a terminal obeys. They are in strings: JSON
// has no others outside of them.
func harmlessJSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, obeyed) {
		return text
	}
	var out bytes.Buffer
	for _, c := range string(text) {
		if obeyed(c) {
			fmt.Fprintf(&out, `\u%04x`, c)
		} else {
			out.WriteRune(c)
		}
	}
	return out.Bytes()
}

// failing remembers the first error, so that a closed pipe is one. Names come
// from files and from other machines: nothing of theirs that a terminal obeys
// reaches it.
type failing struct {
	out io.Writer
	err error
}

// Write implements io.Writer.
func (w *failing) Write(p []byte) (int, error) {
	if w.err == nil {
		_, w.err = w.out.Write(bytes.Map(func(c rune) rune {
			if obeyed(c) {
				return '?'
			}
			return c
		}, p))
	}
	return len(p), nil
}
