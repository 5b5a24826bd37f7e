// Package readfile reads files that a user names: whole, bounded, and neither a pipe,
// which could block for ever, nor a device, which could go on for ever.
package readfile

import (
	"errors"
	"io"
	"os"
)

// Regular returns what a regular file has, up to most bytes and one more, by which
// the caller knows that it is too large.
func Regular(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// Reason is why a file could not be read, without its name.
func Reason(err error) string {
	var of *os.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	return err.Error()
}
