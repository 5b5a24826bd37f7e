package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxProblems bounds what is said about one file.
const maxProblems = 1000

// Problem is one thing wrong with a file.
type Problem struct {
	File      string
	Line, Col int    // 1-based, columns in characters; 0 = the file as a whole
	Message   string // what is wrong; what to write instead
}

// String returns FILE:LINE:COL: message, or FILE: message without a place.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Col, p.Message)
}

// Errors is every problem of a file, by line.
type Errors []Problem

// Error returns one FILE:LINE:COL: message per line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// sorted orders by place; problems of one place keep the order they were
// found in.
func sorted(list []Problem) []Problem {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return list
}
