package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pacer-dev/pacer/internal/readfile"
)

// Bounds on what is read.
const (
	maxFile  = 1 << 20 // bytes of a configuration
	maxNamed = 1 << 20 // bytes of a file that it names; bundles of CAs are 200 KiB
)

// pipePatience is how long a configuration that comes through a pipe may take.
const pipePatience = 10 * time.Second

// Parse reads a configuration. name is used in messages, and its folder is
// where relative paths start; getenv looks up variables. The error is an
// Errors. Parse touches no file: a key_file is refused, and whether
// certificates exist is not looked at; Load does both.
func Parse(name string, data []byte, getenv func(string) (string, bool)) (*Config, error) {
	return parse(&reader{file: name, getenv: getenv}, data)
}

// Load reads and parses a file, with the variables of the environment, and
// checks the files that it names. The error is an Errors, unless the file
// itself could not be read.
func Load(path string) (*Config, error) {
	files := stamps{}
	files.note(path)
	// It may be a pipe, as of a shell's <(…). One that nobody writes to any more is
	// empty, and one that somebody holds open must not block a reload for ever.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, unread(err)
	}
	defer f.Close()
	_ = f.SetReadDeadline(time.Now().Add(pipePatience)) // a file has no deadline, and needs none
	// One byte more than allowed, so that parse sees that it is too much.
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, unread(err)
	}
	getenv, asked := seen(os.LookupEnv)
	cfg, err := parse(&reader{file: path, getenv: getenv, readFile: func(named string) ([]byte, error) {
		files.note(named)
		return readNamed(named)
	}}, data)
	if err != nil {
		return nil, err
	}
	cfg.source.File, cfg.source.Ignored, cfg.source.files = path, setOf(os.LookupEnv, asked), files
	if at, err := filepath.Abs(path); err == nil {
		cfg.source.File = at
	}
	return cfg, nil
}

// unread says why a configuration cannot be read, and what to do.
func unread(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("config: %w; write it, or name a file that is there", err)
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("config: %w; name a file in it", err)
	}
	return fmt.Errorf("config: %w", err)
}

func parse(r *reader, data []byte) (*Config, error) {
	root, problem := tree(data)
	if problem != nil {
		problem.File = r.file
		return nil, Errors{*problem}
	}
	r.cfg = &Config{}
	v := value{node: root, name: "the configuration"}
	r.note(v, "")
	o, _ := r.object(v, r.cfg)
	if !o.fine["store"] {
		r.cfg.Store = inMemory()
	}
	r.check()
	if err := r.result(); err != nil {
		return nil, err
	}
	s := &r.cfg.source
	for _, w := range sorted(r.warnings) {
		text := w.String()
		s.Warnings = append(s.Warnings, text)
		if key, plain := r.plain[place{w.Line, w.Col}]; plain {
			if s.plain == nil {
				s.plain = map[string][sha256.Size]byte{}
			}
			s.plain[text] = key
		}
	}
	return r.cfg, nil
}

// readNamed reads a small file.
func readNamed(path string) ([]byte, error) {
	data, err := readfile.Regular(path, maxNamed)
	if len(data) > maxNamed {
		err = errors.New("larger than 1 MiB")
	}
	return data, err
}
