package doctor

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// tried is how many bytes are written to see whether there is room: an empty file
	// takes none, and a few bytes fit into what a file system keeps of each file.
	tried = 64 << 10

	// ample is so much free space that none is missed: the largest history, 64 MiB,
	// is written anew beside the one before, and curves and usage are there too.
	ample = 128 << 20
)

// writable looks whether files can be written in dir, or, where pacer would make it
// first, in the nearest one above that is there; "" = none is wanted.
func writable(dir string, f *findings) {
	if dir == "" {
		return
	}
	there := dir
	for {
		if _, err := os.Stat(there); !errors.Is(err, fs.ErrNotExist) || there == filepath.Dir(there) {
			break
		}
		there = filepath.Dir(there)
	}
	if err := tryToWrite(there); err != nil {
		f.fail(mendOfDir(err), "state_dir %s cannot be written: %s", dir, describe(err))
		return
	}
	if free, known := freeAt(there); known && free < ample {
		f.warn("make room there, or name a directory on another disk", "state_dir %s can be written, and has %d MiB left; what is kept may need %d", dir, free>>20, ample>>20)
		return
	}
	f.ok("state_dir %s can be written", dir)
}

// tryToWrite writes a file in dir down to the disk, and takes it away. What it writes
// cannot be compressed.
func tryToWrite(dir string) error {
	file, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	data := make([]byte, tried)
	_, _ = rand.Read(data) // it never fails
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// mendOfDir says what to do where a directory cannot be written.
func mendOfDir(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make room there, or name a directory on another disk"
	case errors.Is(err, syscall.EROFS):
		return "name a directory on a disk that can be written"
	case errors.Is(err, syscall.EIO):
		return "look at the disk"
	}
	return "make the directory, and give it to the user that pacer runs as"
}
