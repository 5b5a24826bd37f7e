// Package curvesfile keeps what was learned of targets in a file: to carry curves from
// one store to another, to start warm without Redis, and to read what a store holds.
//
// The file is JSON. The sums of a target are all that is needed to go on learning; its
// levels are there for people, and are not read back. Numbers are written so that they
// read as the very same.
package curvesfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/internal/atomicfile"
	"github.com/pacer-dev/pacer/profiles"
)

const (
	format  = "pacer curves"
	version = 1

	// Most is how long a file may be, in bytes. A target takes up to 30 KB.
	Most = 256 << 20
)

// File is what was learned of some targets. Its zero value holds nothing.
type File struct {
	Format  string    `json:"format"`  // always "pacer curves"
	Version int       `json:"version"` // of this layout
	Saved   time.Time `json:"saved"`
	Curves  []Curve   `json:"curves"` // by backend, then model
}

// Curve is what was learned of one target.
type Curve struct {
	Backend  string    `json:"backend"`
	Model    string    `json:"model"`
	Separate bool      `json:"separate,omitzero"` // the models of the backend do not slow each other down
	Updated  time.Time `json:"updated"`           // when the last evidence came in

	// Levels are for people: what one of n streams got. Reading ignores them.
	Levels []Level `json:"levels"`

	// Shifts counts the changes of speed that the sums have been through.
	Shifts uint64 `json:"shifts,omitzero"`

	// Sums are those of docs/CURVES-MODEL.md, by the names that Redis has for them.
	Sums map[string]float64 `json:"sums"`
}

// Level is a level of concurrency that was visited.
type Level struct {
	N             int     `json:"n"`
	TPS           float64 `json:"tps"`            // tokens/s of one stream, at the prompt load there
	Low           float64 `json:"low"`            // its lower bound
	StreamSeconds float64 `json:"stream_seconds"` // that are remembered
}

// target names what c was learned of.
func (c *Curve) target() profiles.Target {
	return profiles.Target{Backend: c.Backend, Model: c.Model, Separate: c.Separate}
}

// New returns sums as a file. The levels are those that a gateway without a prior and
// without a margin of its own would show.
func New(now time.Time, sums map[profiles.Target]profiles.Sums) *File {
	f := &File{Format: format, Version: version, Saved: now.UTC(), Curves: []Curve{}}
	book := profiles.NewBook(profiles.Options{})
	book.Ensure(slices.Collect(maps.Keys(sums))...)
	book.Apply(now, sums, nil)
	for _, t := range book.Targets() {
		s := sums[t]
		c := Curve{
			Backend: t.Backend, Model: t.Model, Separate: t.Separate, Updated: s.Updated.UTC(), Shifts: s.Shifts,
			Levels: levels(book.Curve(t)), Sums: map[string]float64{},
		}
		for _, g := range s.Groups() {
			for _, field := range g.Fields {
				if field.Value != 0 {
					c.Sums[field.Name] = field.Value
				}
			}
		}
		f.Curves = append(f.Curves, c)
	}
	return f
}

func levels(c *profiles.Curve) []Level {
	out := []Level{}
	for _, p := range c.Points() {
		if p.StreamSeconds > 0 && !math.IsNaN(p.TPS) && !math.IsNaN(p.Low) {
			out = append(out, Level{N: p.N, TPS: round(p.TPS), Low: round(p.Low), StreamSeconds: round(p.StreamSeconds)})
		}
	}
	return out
}

func round(x float64) float64 { return math.Round(x*100) / 100 }

// Sums returns what f holds, by target. The error names the first target whose sums
// nobody can have measured, or that stands twice.
func (f *File) Sums() (map[profiles.Target]profiles.Sums, error) {
	all := make(map[profiles.Target]profiles.Sums, len(f.Curves))
	for i := range f.Curves {
		c := &f.Curves[i]
		t := c.target()
		if _, twice := all[t]; twice {
			return nil, fmt.Errorf("%s %q stands there twice", c.Backend, c.Model)
		}
		s := profiles.SumsFrom(c.Sums, c.Updated)
		s.Shifts = c.Shifts
		if err := s.Check(); err != nil {
			return nil, fmt.Errorf("%s %q: %w", c.Backend, c.Model, err)
		}
		all[t] = s
	}
	return all, nil
}

// Write writes f with a line for each sum, so that two files can be compared.
func (f *File) Write(w io.Writer) error {
	data, err := json.MarshalIndent(f, "", " ")
	if err == nil {
		_, err = w.Write(append(data, '\n'))
	}
	return err
}

// Read reads what Write has written, here or by another version with the same layout.
func Read(r io.Reader) (*File, error) {
	data, err := io.ReadAll(io.LimitReader(r, Most+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > Most:
		return nil, fmt.Errorf("it is longer than %d bytes", Most)
	}
	var f File
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("it is no file of pacer store export: %w", err)
	}
	switch {
	case f.Format != format:
		return nil, errors.New("it is no file of pacer store export: its format is not " + format)
	case f.Version != version:
		return nil, fmt.Errorf("it is of version %d, and this program reads version %d", f.Version, version)
	}
	return &f, nil
}

// Load reads the file at path; nil = there is none.
func Load(path string) (*File, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	f, err := Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Save puts f in the place of the file at path, whole or not at all.
func (f *File) Save(path string) error {
	data, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(data, '\n'))
}
