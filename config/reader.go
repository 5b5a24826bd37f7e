package config

import (
	"fmt"
	"path/filepath"
)

// place is a position in the file, 1-based, columns in characters.
type place struct{ line, col int }

// mention is a place where the file names something that stands elsewhere.
type mention struct {
	at  place
	raw string // as the file has it, which is what messages show
}

// reader turns the tree of one file into a Config and gathers everything that
// is wrong with it. It is used once, by one goroutine.
type reader struct {
	file   string
	getenv func(string) (string, bool)

	// readFile reads a file that the configuration names; nil = files are not
	// looked at.
	readFile func(string) ([]byte, error)

	problems []Problem
	dropped  int // problems beyond maxProblems
	warnings []Problem
	expanded int // bytes that variables put in so far

	cfg   *Config
	marks marks
}

// marks are the places of what the checks across sections talk about, each
// slice parallel to the one it is named after.
type marks struct {
	listen, adminListen, replicas, hosts place
	backends                             []backendMarks
	routes                               []routeMarks
	keys                                 []keyMarks
}

// problem records that something at a place is wrong.
func (r *reader) problem(at place, format string, args ...any) {
	if len(r.problems) == maxProblems {
		r.dropped++
		return
	}
	r.problems = append(r.problems, Problem{File: r.file, Line: at.line, Col: at.col, Message: fmt.Sprintf(format, args...)})
}

// warn records that something at a place is allowed but likely not meant.
func (r *reader) warn(at place, format string, args ...any) {
	if len(r.warnings) < maxProblems {
		r.warnings = append(r.warnings, Problem{File: r.file, Line: at.line, Col: at.col, Message: fmt.Sprintf(format, args...)})
	}
}

// result returns every problem by line, or nil.
func (r *reader) result() error {
	if len(r.problems) == 0 {
		return nil
	}
	all := Errors(sorted(r.problems))
	if r.dropped > 0 {
		all = append(all, Problem{File: r.file, Message: fmt.Sprintf("and %d more problems; mend these first", r.dropped)})
	}
	return all
}

// path returns the file that the configuration names, relative to its own
// folder.
func (r *reader) path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(r.file), name)
}
