package report

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
)

// Width returns the columns of the terminal; elsewhere $COLUMNS, or 80.
func Width(out io.Writer) int {
	if f, ok := out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	if w, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && w > 0 {
		return w
	}
	return 80
}

// Height returns the rows of the terminal; elsewhere, and where it does not say, 24.
func Height(out io.Writer) int {
	if f, ok := out.(*os.File); ok {
		if _, h, err := term.GetSize(int(f.Fd())); err == nil && h > 0 {
			return h
		}
	}
	return 24
}

// Cropped is text, whose lines all end, as far as rows hold it; the last of them then
// says how many lines are missing. Of fewer than 2 rows it takes 2.
func Cropped(text string, rows int) string {
	lines := strings.SplitAfter(text, "\n")
	all, keep := len(lines)-1, max(rows, 2)-1
	if all <= keep+1 {
		return text
	}
	return strings.Join(lines[:keep], "") + fmt.Sprintf("… and %d more lines\n", all-keep)
}

// Terminal returns w as the terminal that it is; nil = it is none.
func Terminal(w io.Writer) *os.File {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// Progress returns what shows a line in the place of the last one, on a terminal
// alone. An empty line ends it.
func Progress(w io.Writer) func(line string) {
	if Terminal(w) == nil {
		return func(string) {}
	}
	return func(line string) { fmt.Fprintf(w, "\r\x1b[K%s", line) }
}
