package config

import (
	"context"
	"maps"
	"os"
	"time"
)

// watchEvery is how often the files are looked at. What has changed is read
// once it has stood still for as long: half of a file may be a valid one.
const watchEvery = 500 * time.Millisecond

// Watch calls changed, one call at a time, after a file that the configuration
// in force was read from has changed, been replaced, come or gone, until ctx
// ends. It looks at size, time and identity by stat, which follows the links
// that Kubernetes swaps and works on every file system, where notices of the
// kernel do not.
func Watch(ctx context.Context, inForce func() *Config, changed func()) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	cfg := inForce()
	known := cfg.source.files // what was told of, or read
	last := known
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if c := inForce(); c != cfg {
			cfg, known, last = c, c.source.files, c.source.files
		}
		now := stamps{}
		for name := range cfg.source.files {
			now.note(name)
		}
		if still := now.equal(last); still && !now.equal(known) {
			known = now
			changed()
		}
		last = now
	}
}

// stamps are files by name as they were at one time; nil stands for one that
// is not there.
type stamps map[string]os.FileInfo

// note looks at a file.
func (s stamps) note(name string) {
	s[name] = nil
	if info, err := os.Stat(name); err == nil {
		s[name] = info
	}
}

func (s stamps) equal(other stamps) bool {
	return maps.EqualFunc(s, other, func(is, was os.FileInfo) bool {
		if is == nil || was == nil {
			return is == was
		}
		return os.SameFile(was, is) && was.Size() == is.Size() && was.ModTime().Equal(is.ModTime())
	})
}
