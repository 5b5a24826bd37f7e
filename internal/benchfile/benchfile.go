package benchfile

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/pacer-dev/pacer/internal/readfile"
)

// Bounds on what is read.
const (
	// MaxBytes bounds one file. Results with every single request in them
	// (vllm bench serve --save-detailed) are the large ones.
	MaxBytes = 16 << 20

	// MaxPoints bounds a curve, over all its files.
	MaxPoints = 256

	// MaxN is the highest n that a curve is drawn for.
	MaxN = 8192

	maxNotes = 64 // said one by one
	maxTPS   = 1e5
	minTPS   = 1e-3

	// fullTTFT is the time to the first token, in seconds, above which the
	// engine was full: requests queued, and fewer than n were decoding.
	fullTTFT = 5
)

// Point is the speed at one level.
type Point struct {
	N    int     // concurrency, from 1
	TPS  float64 // tokens/s for one of N streams, after the first token
	TTFT float64 // mean time to the first token in seconds; 0 = not stated
	File string
	Line int // 1-based, where File states it
}

// Note is something in a file that the curve does not rest on, and why.
type Note struct {
	File    string
	Line    int // 1-based
	Message string
}

// String returns FILE:LINE: message.
func (n Note) String() string { return fmt.Sprintf("%s:%d: %s", n.File, n.Line, n.Message) }

// Error says why a file gave no curve.
type Error struct {
	File    string
	Line    int    // 1-based; 0 = the file as a whole
	Message string // what could not be read; what is expected
}

// Error returns FILE:LINE: message.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Message
	}
	return Note{e.File, e.Line, e.Message}.String()
}

// Curve is what one or several files say.
type Curve struct {
	Model  string  // as the benchmark called it; "" = not stated
	Format string  // of the first file, in words
	Points []Point // by N, each once; at least one
	Notes  []Note  // in the order found
}

// Load reads the files, which together are one curve: one level a file, or all
// in one. A level that is stated twice counts as stated last. The error is an
// *Error of the first file that is wrong.
func Load(paths ...string) (Curve, error) {
	var all Curve
	for _, path := range paths {
		data, err := readfile.Regular(path, MaxBytes)
		if err != nil {
			return Curve{}, &Error{File: path, Message: readfile.Reason(err) + "; expected a file with a TPS-vs-concurrency curve"}
		}
		c, err := Parse(path, data)
		if err != nil {
			return Curve{}, err
		}
		if all.Points == nil {
			all = c
			continue
		}
		if c.Model != "" && all.Model != "" && c.Model != all.Model {
			p := c.Points[0]
			return Curve{}, &Error{File: p.File, Line: p.Line, Message: fmt.Sprintf("this is the curve of %.80q, and %s that of %.80q; expected files of one model", c.Model, all.Points[0].File, all.Model)}
		}
		all.Notes = append(all.Notes, c.Notes...)
		for _, p := range c.Points {
			all.set(p)
		}
		if len(all.Points) > MaxPoints {
			return Curve{}, &Error{File: path, Line: c.Points[0].Line, Message: tooMany}
		}
	}
	if len(all.Notes) > maxNotes {
		all.Notes = all.Notes[:maxNotes]
	}
	return all, nil
}

var tooMany = fmt.Sprintf("more than %d levels of concurrency; expected fewer, such as 1, 2, 4, 8, …", MaxPoints)

// Parse reads the text of one file. name is used in messages, and may say the
// concurrency (a folder such as m-openai-chat-concurrency16) of an export that
// does not. The error is an *Error.
func Parse(name string, data []byte) (Curve, error) {
	f := &file{name: name, data: bytes.TrimPrefix(data, []byte("\ufeff"))}
	if len(data) > MaxBytes {
		return Curve{}, f.fail(0, "%v", errTooLarge)
	}
	text := bytes.TrimSpace(f.data)
	var err error
	switch {
	case len(text) == 0:
		return Curve{}, f.fail(1, "the file is empty; %s", expected)
	case text[0] == '{' || text[0] == '[':
		err = f.json()
	default:
		err = f.csv()
	}
	if err != nil {
		return Curve{}, err
	}
	if len(f.curve.Points) == 0 {
		if len(f.curve.Notes) > 0 {
			n := f.curve.Notes[0]
			return Curve{}, f.fail(n.Line, "%s; nothing else is here to rest a curve on", n.Message)
		}
		return Curve{}, f.fail(1, "no points; %s", expected)
	}
	return f.curve, nil
}

// expected is what a file may be.
const expected = "expected CSV with the header n,tps, JSON with points of n and tps, or a result of vllm bench serve, AIPerf or GenAI-Perf"

// file is one file being read.
type file struct {
	name  string
	data  []byte
	curve Curve

	counted, lines int // line breaks before an offset, so that a line costs what lies between
}

// fail returns an *Error.
func (f *file) fail(line int, format string, args ...any) error {
	return &Error{File: f.name, Line: line, Message: fmt.Sprintf(format, args...)}
}

// skip notes what the curve does not rest on.
func (f *file) skip(line int, format string, args ...any) {
	if len(f.curve.Notes) < maxNotes {
		f.curve.Notes = append(f.curve.Notes, Note{f.name, line, fmt.Sprintf(format, args...)})
	}
}

// line returns the line that an offset lies in.
func (f *file) line(offset int) int {
	offset = min(max(offset, 0), len(f.data))
	if offset < f.counted {
		f.counted, f.lines = 0, 0
	}
	f.lines += bytes.Count(f.data[f.counted:offset], []byte("\n"))
	f.counted = offset
	return 1 + f.lines
}

// add puts a level into the curve. What a benchmark may well have measured but
// says nothing about n decoding streams is noted; what is no level is an
// error.
func (f *file) add(line int, n, tps, ttft float64) error {
	switch {
	case !(n >= 1) || n != float64(int(n)):
		return f.fail(line, "n is %v; expected a whole number from 1", n)
	case n > MaxN:
		f.skip(line, "n = %.0f left out: a curve ends at %d", n, MaxN)
		return nil
	case !(tps >= minTPS && tps <= maxTPS):
		return f.fail(line, "the speed at n = %.0f is %v tokens/s; expected what one stream gets, from %v to %v", n, tps, minTPS, float64(maxTPS))
	case ttft > fullTTFT:
		f.skip(line, "n = %.0f left out: the first token took %.1f s on average, so the engine was full and fewer than %.0f were decoding", n, ttft, n)
		return nil
	}
	f.curve.set(Point{N: int(n), TPS: tps, TTFT: max(ttft, 0), File: f.name, Line: line})
	if len(f.curve.Points) > MaxPoints {
		return f.fail(line, "%s", tooMany)
	}
	return nil
}

// set puts p in its place by N. Of two at one N the later counts.
func (c *Curve) set(p Point) {
	i, found := slices.BinarySearchFunc(c.Points, p.N, func(p Point, n int) int { return p.N - n })
	if !found {
		c.Points = slices.Insert(c.Points, i, p)
		return
	}
	if old := c.Points[i]; len(c.Notes) < maxNotes {
		c.Notes = append(c.Notes, Note{old.File, old.Line, fmt.Sprintf("n = %d left out: %s:%d states it again, and counts", p.N, p.File, p.Line)})
	}
	c.Points[i] = p
}

// model notes whose curve it is. One file holds one.
func (f *file) model(line int, name string) error {
	switch {
	case name == "" || name == f.curve.Model:
	case f.curve.Model == "":
		f.curve.Model = name
	default:
		return f.fail(line, "this is a result of %.80q, and those before it are of %.80q; expected one model a file", name, f.curve.Model)
	}
	return nil
}

// format names what the file is; the first word counts.
func (f *file) format(name string) {
	if f.curve.Format == "" {
		f.curve.Format = name
	}
}

var errTooLarge = fmt.Errorf("larger than %d MiB; expected a summary, not every single request", MaxBytes>>20)
