package loadgen

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Arrival is one request of a trace.
type Arrival struct {
	At           time.Duration // since the start of the trace
	PromptTokens int
	OutputTokens int
}

// Bounds on a trace.
const (
	maxTrace     = 1_000_000  // requests that ReadTrace keeps
	maxTraceLine = 64 << 10   // bytes
	maxTokens    = 10_000_000 // of one prompt or answer
	maxSeconds   = 1e9        // from the first request to the last
)

// TraceError says what is wrong with a trace, and where.
type TraceError struct {
	File    string
	Line    int // 1-based
	Message string
}

// Error returns FILE:LINE: message.
func (e *TraceError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message) }

// Trace reads the requests of a CSV one by one, whatever its length: with the
// columns arrival_s, prompt_tokens and output_tokens, or TIMESTAMP,
// ContextTokens and GeneratedTokens as Azure publishes its traces; in any order
// and among others, but sorted by arrival. Its errors are *TraceError, or those
// of the reader.
type Trace struct {
	file  string
	lines *bufio.Scanner
	line  int

	at, prompt, output, columns int

	stamped bool      // arrivals are dates, not seconds
	zero    time.Time // the first of them
	last    time.Duration
	begun   bool
	fields  [][]byte // reused
}

// traceColumns are the names of what a trace must have, in lower case: of each
// row either all of the left ones or all of the right ones.
var traceColumns = [3][2]string{
	{"arrival_s", "timestamp"},
	{"prompt_tokens", "contexttokens"},
	{"output_tokens", "generatedtokens"},
}

// NewTrace reads the header. file is how messages call the trace.
func NewTrace(file string, r io.Reader) (*Trace, error) {
	t := &Trace{file: file, lines: bufio.NewScanner(r)}
	t.lines.Buffer(make([]byte, 4<<10), maxTraceLine)
	if err := t.scan(); err != nil {
		if errors.Is(err, io.EOF) {
			t.line = 1
			return nil, t.fail("the file is empty; want %s", traceHeader)
		}
		return nil, err
	}
	var names []string
	for _, f := range t.fields {
		names = append(names, strings.ToLower(string(f)))
	}
	t.columns = len(names)
	var missing string
	for form := range traceColumns[0] {
		t.at = slices.Index(names, traceColumns[0][form])
		t.prompt = slices.Index(names, traceColumns[1][form])
		t.output = slices.Index(names, traceColumns[2][form])
		t.stamped = form == 1
		if t.at >= 0 && t.prompt >= 0 && t.output >= 0 {
			return t, nil
		}
		if found := max(t.at, t.prompt, t.output) >= 0; found || missing == "" {
			for i, at := range []int{t.at, t.prompt, t.output} {
				if at < 0 {
					missing = traceColumns[i][form]
					break
				}
			}
		}
	}
	return nil, t.fail("the header has no column %s; want %s", missing, traceHeader)
}

const traceHeader = "arrival_s,prompt_tokens,output_tokens, or TIMESTAMP,ContextTokens,GeneratedTokens"

// Next returns the next request, and io.EOF after the last.
func (t *Trace) Next() (Arrival, error) {
	if err := t.scan(); err != nil {
		return Arrival{}, err
	}
	if len(t.fields) != t.columns {
		return Arrival{}, t.fail("%d columns, and the header has %d", len(t.fields), t.columns)
	}
	at, err := t.arrival(t.fields[t.at])
	if err != nil {
		return Arrival{}, err
	}
	if t.begun && at < t.last {
		return Arrival{}, t.fail("arrivals go back in time, by %v; sort the file by its first column of time", t.last-at)
	}
	prompt, err := t.tokens("prompt", t.fields[t.prompt], 0)
	if err != nil {
		return Arrival{}, err
	}
	output, err := t.tokens("output", t.fields[t.output], 1)
	if err != nil {
		return Arrival{}, err
	}
	t.last, t.begun = at, true
	return Arrival{At: at, PromptTokens: prompt, OutputTokens: output}, nil
}

// scan reads the fields of the next line that is not blank.
func (t *Trace) scan() error {
	for t.lines.Scan() {
		t.line++
		line := t.lines.Bytes()
		if t.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		t.fields = t.fields[:0]
		for field := range bytes.SplitSeq(line, []byte(",")) {
			field = bytes.TrimSpace(field)
			if n := len(field); n >= 2 && field[0] == '"' && field[n-1] == '"' {
				field = field[1 : n-1]
			}
			t.fields = append(t.fields, field)
		}
		return nil
	}
	switch err := t.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		t.line++
		return t.fail("the line is longer than %d bytes: this is no trace", maxTraceLine)
	case err != nil:
		return fmt.Errorf("%s: %w", t.file, err)
	}
	return io.EOF
}

// traceTimes are how a TIMESTAMP is written: fractions of a second are read
// whether or not the layout has them.
var traceTimes = []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", time.RFC3339}

// arrival reads seconds, or a date, which counts from the first one.
func (t *Trace) arrival(field []byte) (time.Duration, error) {
	text := string(field)
	seconds, err := strconv.ParseFloat(text, 64)
	if t.stamped {
		var stamp time.Time
		for _, layout := range traceTimes {
			if stamp, err = time.Parse(layout, text); err == nil {
				break
			}
		}
		if err != nil {
			return 0, t.fail("%.40q is no time; want one such as 2023-11-16 18:15:46.680", text)
		}
		if !t.begun {
			t.zero = stamp
		}
		seconds = stamp.Sub(t.zero).Seconds()
		if seconds < 0 {
			return 0, t.fail("arrivals go back in time, to before the first one; sort the file by TIMESTAMP")
		}
	}
	if err != nil || !(seconds >= 0 && seconds < maxSeconds) {
		return 0, t.fail("the arrival %.40q is no number of seconds from 0", text)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// tokens reads a count of at least least.
func (t *Trace) tokens(of string, field []byte, least int) (int, error) {
	n, err := strconv.Atoi(string(field))
	if err != nil || n < least || n > maxTokens {
		return 0, t.fail("%.40q %s tokens; want a whole number from %d to %d", field, of, least, maxTokens)
	}
	return n, nil
}

func (t *Trace) fail(format string, args ...any) error {
	return &TraceError{File: t.file, Line: t.line, Message: fmt.Sprintf(format, args...)}
}

// ReadTrace reads a Trace as a whole, up to until (0 = all).
func ReadTrace(file string, r io.Reader, until time.Duration) ([]Arrival, error) {
	t, err := NewTrace(file, r)
	if err != nil {
		return nil, err
	}
	var out []Arrival
	for {
		a, err := t.Next()
		switch {
		case err == io.EOF || err == nil && until > 0 && a.At > until:
			return out, nil
		case err != nil:
			return nil, err
		case len(out) == maxTrace:
			return nil, t.fail("more than %d requests; take fewer", maxTrace)
		}
		out = append(out, a)
	}
}
