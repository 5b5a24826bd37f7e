// Package disk keeps a history over a restart, in one file of a directory that is
// the gateway's own. It is written aside and then takes the place of the one
// before, so a crash or a full disk leaves that one whole. What cannot be read is
// moved aside, once, and nothing is lost but the past.
package disk

import (
	"bytes"
	"compress/gzip"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pacer-dev/pacer/history"
)

const (
	name   = "history.bin"
	aside  = "history.bin.unreadable"
	magic  = "pacer history 1\n"
	sumLen = 4

	// mostBytes bounds the file, and mostPlain what is in it.
	mostBytes = 64 << 20
	mostPlain = 256 << 20
)

// Error says why there is no past: the file was moved to Aside.
type Error struct {
	Err   error
	Aside string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("disk: the history cannot be read, and was moved to %s: %v", e.Aside, e.Err)
}

// Unwrap returns what is wrong with the file.
func (e *Error) Unwrap() error { return e.Err }

// Load returns the past that is kept in dir, nil when there is none. The error is
// an *Error where the file could not be understood.
func Load(dir string) (*history.Past, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("disk: %w", err)
	}
	path := filepath.Join(dir, name)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("disk: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	f.Close()
	if err != nil {
		return nil, fmt.Errorf("disk: %w", err)
	}
	past, err := decode(data)
	if err == nil {
		return past, nil
	}
	to := filepath.Join(dir, aside)
	if renamed := os.Rename(path, to); renamed != nil {
		return nil, fmt.Errorf("disk: %w, and %w", err, renamed)
	}
	return nil, &Error{Err: err, Aside: to}
}

// Save puts p in the place of what is kept in dir.
func Save(dir string, p *history.Past) error {
	data, err := encode(p)
	if err != nil {
		return fmt.Errorf("disk: %w", err)
	}
	f, err := os.CreateTemp(dir, name+".*.new")
	if err != nil {
		return fmt.Errorf("disk: %w", err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		os.Remove(f.Name()) // it is of no use; that it stays would only cost its room
		return fmt.Errorf("disk: %w", err)
	}
	return nil
}

// Clean removes what a crash left half written.
func Clean(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, name+".*.new")) // the pattern is sound
	for _, path := range left {
		os.Remove(path)
	}
}

// encode is p behind its name and its sum.
func encode(p *history.Past) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(magic)
	b.Write(make([]byte, sumLen))
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(gob.NewEncoder(z).Encode(p), z.Close()); err != nil {
		return nil, err
	}
	data := b.Bytes()
	if len(data) > mostBytes {
		return nil, fmt.Errorf("a history of %d bytes is more than is kept", len(data))
	}
	body := data[len(magic)+sumLen:]
	putSum(data[len(magic):], crc32.ChecksumIEEE(body))
	return data, nil
}

func putSum(to []byte, sum uint32) {
	for i := range sumLen {
		to[i] = byte(sum >> (8 * i))
	}
}

// decode reads what encode wrote.
func decode(data []byte) (*history.Past, error) {
	switch {
	case len(data) > mostBytes:
		return nil, fmt.Errorf("it has more than %d bytes", mostBytes)
	case !bytes.HasPrefix(data, []byte(magic)) || len(data) < len(magic)+sumLen:
		return nil, errors.New("it is not a history of this version")
	}
	var sum [sumLen]byte
	body := data[len(magic)+sumLen:]
	if putSum(sum[:], crc32.ChecksumIEEE(body)); !bytes.Equal(sum[:], data[len(magic):len(magic)+sumLen]) {
		return nil, errors.New("its sum is wrong: it was cut, or changed")
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	p := &history.Past{}
	if err := gob.NewDecoder(io.LimitReader(z, mostPlain)).Decode(p); err != nil {
		return nil, err
	}
	return p, nil
}
