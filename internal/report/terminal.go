package report

import (
	"fmt"
	"io"
	"os"
	"strconv"

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
