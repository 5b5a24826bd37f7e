// Package disk keeps a history over a restart, in one file of a directory that is
// the gateway's own. What is more than a file holds is left out, the oldest first.
package disk

import (
	"errors"

	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/internal/statefile"
)

var file = statefile.File{Name: "history.bin", Form: "pacer history 2\n", Most: 64 << 20, Plain: 256 << 20}

// Load returns the past that is kept in dir, nil when there is none. A file that cannot
// be understood is an error, and is moved aside.
func Load(dir string) (*history.Past, error) {
	p := &history.Past{}
	if kept, err := file.Load(dir, p); !kept {
		return nil, err
	}
	return p, nil
}

// Save puts p in the place of what is kept in dir, without the oldest steps where all
// of them are more than is kept. It returns the share of them that is.
func Save(dir string, p *history.Past) (kept float64, err error) {
	data, kept, err := fitting(&file, p)
	if err == nil {
		err = file.Write(dir, data)
	}
	return kept, err
}

// fitting is p as f may have it, and the share of its steps that it has.
func fitting(f *statefile.File, p *history.Past) (data []byte, kept float64, err error) {
	kept = 1
	for range 8 {
		data, times, err := f.Pack(p.Latest(kept))
		if err != nil || times <= 1 {
			return data, kept, err
		}
		kept *= 0.9 / times
	}
	return nil, 0, errors.New("disk: the names and marks alone are more than a file holds")
}
