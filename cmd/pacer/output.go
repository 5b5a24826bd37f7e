package main

import (
	"bytes"
	"encoding/json"
	"io"
	"unicode"
)

// printJSON writes v for programs, and for people to read as well.
func printJSON(out io.Writer, v any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	return encoder.Encode(v)
}

// failing remembers the first error, so that a closed pipe is one. Names come
// from files and from other machines: no control character of theirs reaches
// the terminal.
type failing struct {
	out io.Writer
	err error
}

// Write implements io.Writer.
func (w *failing) Write(p []byte) (int, error) {
	if w.err == nil {
		_, w.err = w.out.Write(bytes.Map(func(c rune) rune {
			if unicode.IsControl(c) && c != '\n' {
				return '?'
			}
			return c
		}, p))
	}
	return len(p), nil
}
