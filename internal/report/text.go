package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Obeyed reports whether a terminal may obey c instead of showing it, but for
// tabs and line ends: control characters, those of eight bits too, and marks
// that turn the direction of the text around.
func Obeyed(c rune) bool {
	return unicode.IsControl(c) && c != '\n' && c != '\t' || unicode.Is(unicode.Bidi_Control, c)
}

// Harmless returns text as it may be shown where its author is not known, on a
// line that holds other words, too.
func Harmless(text string) string {
	return strings.Map(func(c rune) rune {
		if Obeyed(c) || c == '\n' {
			return '?'
		}
		return c
	}, text)
}

// JSON writes v for programs, and for people to read as well.
func JSON(out io.Writer, v any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := out.Write(harmlessJSON(text.Bytes()))
	return err
}

// RawJSON writes JSON that somebody else encoded, as JSON does.
func RawJSON(out io.Writer, text json.RawMessage) error {
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", " "); err != nil {
		return err
	}
	indented.WriteByte('\n')
	_, err := out.Write(harmlessJSON(indented.Bytes()))
	return err
}

// harmlessJSON returns the same JSON with those characters escaped which may
// stand in it as they are, and which a terminal obeys. They are in strings: JSON
// has no others outside of them.
func harmlessJSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, Obeyed) {
		return text
	}
	var out bytes.Buffer
	for _, c := range string(text) {
		if Obeyed(c) {
			fmt.Fprintf(&out, `\u%04x`, c)
		} else {
			out.WriteRune(c)
		}
	}
	return out.Bytes()
}

// Writer hands on what is written to it, but for characters that a terminal
// obeys. It remembers the first error, so that a closed pipe is one.
type Writer struct {
	out io.Writer
	err error
}

// NewWriter returns a Writer to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Write implements io.Writer. It always succeeds; Err tells.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err == nil {
		_, w.err = w.out.Write(bytes.Map(func(c rune) rune {
			if Obeyed(c) {
				return '?'
			}
			return c
		}, p))
	}
	return len(p), nil
}

// Err returns the first error of the writer behind.
func (w *Writer) Err() error { return w.err }

// Wrap breaks text into lines of at most width columns, at blanks.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// Paragraph writes text behind a word, which later lines leave blank.
func Paragraph(w io.Writer, word, text string, width int) {
	for _, line := range Wrap(text, max(width-len(word), 30)) {
		fmt.Fprintf(w, "%s%s\n", word, line)
		word = strings.Repeat(" ", len(word))
	}
}

// Indented writes text two columns in.
func Indented(w io.Writer, text string, width int) {
	for _, line := range Wrap(text, width-2) {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

// OrDash is s, or a dash where s is empty.
func OrDash(s string) string { return cmp.Or(s, "–") }

// Plural is so many of something: 1 machine, 2 machines.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Shortened is text, cut to at most most characters where it is longer. most is 1 or
// more.
func Shortened(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}
