// Package atomicfile replaces files as a whole: whoever reads one finds what was there
// before or what is there now, whatever ends the program in between.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write puts data in the place of the file at path, readable by its owner alone. When
// it fails, what was there stays, and the error names the file.
func Write(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+unfinished) // of mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name()) // it is of no use; that it stays would only cost its room
	}
	return err
}

// unfinished ends the name of what is not yet in its place.
const unfinished = ".new"

// Clean removes what a crash left half written beside path.
func Clean(path string) {
	left, _ := filepath.Glob(path + ".*" + unfinished) // the pattern is sound
	for _, f := range left {
		os.Remove(f)
	}
}
