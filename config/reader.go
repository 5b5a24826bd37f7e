package config

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/pacer-dev/pacer/internal/readfile"
)

// place is a position in the file, 1-based, columns in characters.
type place struct{ line, col int }

// note is where a value of the file stands, and its text as the file has it,
// variables unexpanded; "" if it has parts.
type note struct {
	at  place
	raw string
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
	plain    map[place][sha256.Size]byte // keys that stand there as plain text
	expanded int                         // bytes that variables put in so far

	shapes map[reflect.Type]*shape
	cfg    *Config

	// backends and routes are the index of each name; check fills them in.
	backends, routes map[string]int

	// noted is what the file holds, by path: ".routes[0].slo.min_tps". The checks
	// that span several parts ask it for places.
	noted map[string]note
}

// note keeps where a value stands.
func (r *reader) note(v value, raw string) {
	if r.noted == nil {
		r.noted = map[string]note{}
	}
	r.noted[v.path] = note{v.place(), raw}
}

// at is the place of what the file has at a path, or else of what would hold it.
func (r *reader) at(path string) place {
	for {
		n, ok := r.noted[path]
		end := strings.LastIndexAny(path, ".[")
		if ok || end < 0 {
			return n.at
		}
		path = path[:end]
	}
}

// given tells whether the file has something at a path.
func (r *reader) given(path string) bool {
	_, ok := r.noted[path]
	return ok
}

// raw is the text at a path as the file has it.
func (r *reader) raw(path string) string { return r.noted[path].raw }

// count is how many problems there were so far.
func (r *reader) count() int { return len(r.problems) + r.dropped }

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

// content is what the file at a path has. Where it cannot be read, what is called so
// in the message, which ends in what to name instead.
func (r *reader) content(at place, path, what, instead string) ([]byte, bool) {
	data, err := r.readFile(path)
	if err != nil {
		r.problem(at, "the %s cannot be read (%s); name %s", what, readfile.Reason(err), instead)
	}
	return data, err == nil
}

// path returns the file that the configuration names, relative to its own
// folder.
func (r *reader) path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(r.file), name)
}
