package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Table is text in columns, two blanks apart.
type Table struct {
	Head   []string
	Left   int      // so many columns begin at the left, the others end at the right
	Drop   []string // columns that a narrow terminal loses, in this order
	Indent string   // before each row

	rows   [][]string
	hidden []string
}

// Add adds a row of as many cells as the head has.
func (t *Table) Add(cells ...string) {
	for i := range cells {
		cells[i] = Harmless(cells[i])
	}
	t.rows = append(t.rows, cells)
}

// Hide leaves columns out.
func (t *Table) Hide(columns ...string) { t.hidden = append(t.hidden, columns...) }

// Print writes the columns that fit.
func (t *Table) Print(w io.Writer, width int) {
	widths := make([]int, len(t.Head))
	for i := range t.Head {
		for _, row := range append(t.rows, t.Head) {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	hidden := slices.Clone(t.hidden)
	for _, column := range t.Drop {
		sum := len(t.Indent) - 2
		for i, name := range t.Head {
			if !slices.Contains(hidden, name) {
				sum += widths[i] + 2
			}
		}
		if sum <= width {
			break
		}
		hidden = append(hidden, column)
	}
	for _, row := range append([][]string{t.Head}, t.rows...) {
		line := t.Indent
		for i, cell := range row {
			if slices.Contains(hidden, t.Head[i]) {
				continue
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i < t.Left {
				line += cell + pad + "  "
			} else {
				line += pad + cell + "  "
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}
