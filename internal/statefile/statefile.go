// Package statefile keeps a value over a restart: as gob, packed, in one file of a
// directory that is the gateway's own. The file is written aside and then takes the
// place of the one before, so a crash or a full disk leaves that one whole. What cannot
// be read is moved aside, once, and nothing is lost but the past.
package statefile

import (
	"bytes"
	"compress/gzip"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pacer-dev/pacer/internal/atomicfile"
)

// File is a file and what may be in it. All fields are required.
type File struct {
	Name  string // within its directory
	Form  string // what it begins with: of which kind and version it is
	Most  int64  // bytes of it
	Plain int64  // bytes of what is packed in it
}

// Load reads what is kept in dir into what into points to; false = nothing is. A file
// that cannot be understood is an error, and is moved to its name with .unreadable.
func (f *File) Load(dir string, into any) (kept bool, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, fmt.Errorf("statefile: %w", err)
	}
	path := filepath.Join(dir, f.Name)
	atomicfile.Clean(path)
	data, err := f.read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("statefile: %w", err)
	}
	if err = f.Unpack(data, into); err == nil {
		return true, nil
	}
	aside := path + ".unreadable"
	return false, errors.Join(fmt.Errorf("statefile: %s cannot be read, and is moved to %s: %w", f.Name, aside, err), os.Rename(path, aside))
}

// read returns the bytes of the file, one more than may be at most.
func (f *File) read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, f.Most+1))
}

// Save puts v in the place of what is kept in dir. What is more than may be is an error,
// and what is kept stays: Load would find a file that it cannot read.
func (f *File) Save(dir string, v any) error {
	data, times, err := f.Pack(v)
	if err != nil {
		return err
	}
	if times > 1 {
		return fmt.Errorf("statefile: it is %.3g times as much as %s holds", times, f.Name)
	}
	return f.Write(dir, data)
}

// Write puts what Pack has packed in the place of what is kept in dir.
func (f *File) Write(dir string, data []byte) error {
	if err := atomicfile.Write(filepath.Join(dir, f.Name), data); err != nil {
		return fmt.Errorf("statefile: %w", err)
	}
	return nil
}

// Pack returns v as the file has it, and how many times as much that is as may be: what
// is more than 1 is not read again.
func (f *File) Pack(v any) (data []byte, times float64, err error) {
	var plain, packed bytes.Buffer
	packed.WriteString(f.Form)
	z, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err == nil {
		err = gob.NewEncoder(&plain).Encode(v)
	}
	size := plain.Len()
	if err == nil {
		_, err = plain.WriteTo(z)
	}
	if err = errors.Join(err, z.Close()); err != nil {
		return nil, 0, fmt.Errorf("statefile: %w", err)
	}
	return packed.Bytes(), max(float64(packed.Len())/float64(f.Most), float64(size)/float64(f.Plain)), nil
}

// Unpack reads what Pack has packed into what into points to.
func (f *File) Unpack(data []byte, into any) error {
	packed, ours := bytes.CutPrefix(data, []byte(f.Form))
	switch {
	case int64(len(data)) > f.Most:
		return fmt.Errorf("it has more than %d bytes", f.Most)
	case !ours:
		return errors.New("it is none of this version")
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	plain, err := io.ReadAll(io.LimitReader(z, f.Plain+1)) // to its end, where the sum finds what was changed
	switch {
	case err != nil:
		return err
	case int64(len(plain)) > f.Plain:
		return fmt.Errorf("it has more than %d bytes of what is packed", f.Plain)
	}
	return gob.NewDecoder(bytes.NewReader(plain)).Decode(into)
}
