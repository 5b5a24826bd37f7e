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
	"github.com/pacer-dev/pacer/internal/atomicfile"
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

// Save puts p in the place of what is kept in dir, without the oldest steps where all
// of them are more than is kept. It returns the share of them that is.
func Save(dir string, p *history.Past) (kept float64, err error) {
	data, kept, err := fitting(p, mostBytes, mostPlain)
	if err != nil {
		return 0, fmt.Errorf("disk: %w", err)
	}
	if err := atomicfile.Write(filepath.Join(dir, name), data); err != nil {
		return kept, fmt.Errorf("disk: %w", err)
	}
	return kept, nil
}

// fitting is p in at most so many bytes, packed and not, and the share of its steps
// that it has.
func fitting(p *history.Past, packed, plain int) (data []byte, kept float64, err error) {
	kept = 1
	for range 8 {
		data, size, err := encode(p.Latest(kept))
		if err != nil {
			return nil, 0, err
		}
		over := max(float64(len(data))/float64(packed), float64(size)/float64(plain))
		if over <= 1 {
			return data, kept, nil
		}
		kept *= 0.9 / over
	}
	return nil, 0, fmt.Errorf("the names and marks alone are more than %d bytes", packed)
}

// Clean removes what a crash left half written.
func Clean(dir string) { atomicfile.Clean(filepath.Join(dir, name)) }

// encode is p behind its name and its sum, and how much of it there was before it was
// packed.
func encode(p *history.Past) (data []byte, plain int, err error) {
	var b bytes.Buffer
	b.WriteString(magic)
	b.Write(make([]byte, sumLen))
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, 0, err
	}
	counted := &counter{to: z}
	if err := errors.Join(gob.NewEncoder(counted).Encode(p), z.Close()); err != nil {
		return nil, 0, err
	}
	data = b.Bytes()
	body := data[len(magic)+sumLen:]
	putSum(data[len(magic):], crc32.ChecksumIEEE(body))
	return data, counted.bytes, nil
}

// counter counts what is written to another one.
type counter struct {
	to    io.Writer
	bytes int
}

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	c.bytes += len(b)
	return c.to.Write(b)
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
