// Package disk keeps usage and budgets over a restart of a gateway without a store,
// in one file of its state_dir. It is written aside and then takes the place of the
// one before. What cannot be read is moved aside.
package disk

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
	"github.com/pacer-dev/pacer/usage"
)

const (
	name  = "usage.bin"
	magic = "pacer usage 1\n"
	most  = 256 << 20 // bytes, unpacked
)

// Load returns what is kept in dir, nil when there is nothing. A file that cannot
// be understood is an error, and is moved aside.
func Load(dir string) (*usage.Past, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("disk: %w", err)
	}
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("disk: %w", err)
	}
	p, err := decode(data)
	if err == nil {
		return p, nil
	}
	aside := path + ".unreadable"
	return nil, errors.Join(fmt.Errorf("disk: the usage cannot be read, and is moved to %s: %w", aside, err), os.Rename(path, aside))
}

func decode(data []byte) (*usage.Past, error) {
	if !bytes.HasPrefix(data, []byte(magic)) {
		return nil, errors.New("it is no usage of this version")
	}
	z, err := gzip.NewReader(bytes.NewReader(data[len(magic):])) // its sum finds what was cut or changed
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(z, most))
	if err != nil {
		return nil, err
	}
	p := &usage.Past{}
	return p, gob.NewDecoder(bytes.NewReader(plain)).Decode(p)
}

// Save puts p in the place of what is kept in dir.
func Save(dir string, p *usage.Past) error {
	var b bytes.Buffer
	b.WriteString(magic)
	z := gzip.NewWriter(&b)
	err := errors.Join(gob.NewEncoder(z).Encode(p), z.Close())
	if err == nil {
		err = atomicfile.Write(filepath.Join(dir, name), b.Bytes())
	}
	if err != nil {
		return fmt.Errorf("disk: %w", err)
	}
	return nil
}
