package config

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// A change is told once, and only when the file has stood still: in place, by a
// rename, through a swapped link as Kubernetes does it, and when it is gone.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "pacer.yaml")
	write := func(name, text string) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	swap := func(from, to string) {
		t.Helper()
		must.Do(t, os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)))
	}
	write("pacer.yaml", "one")
	cfg := &Config{source: Source{files: stamps{}}}
	cfg.source.files.note(file)
	write("pacer.yaml", "changed before anybody looks")
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(context.Background())
		var told atomic.Int32
		ended := make(chan error)
		go func() { ended <- Watch(ctx, func() *Config { return cfg }, func() { told.Add(1) }) }()
		pass := func(d time.Duration) { <-time.After(d); synctest.Wait() }
		expect := func(what string, want int) {
			t.Helper()
			pass(3 * watchEvery)
			if got := int(told.Load()); got != want {
				t.Errorf("%s: told %d times, want %d", what, got, want)
			}
		}
		expect("before", 1)
		write("pacer.yaml", "in place")
		expect("in place", 2)
		write("new", "by a rename")
		swap("new", "pacer.yaml")
		expect("rename", 3)
		for i := range 6 { // written bit by bit
			write("pacer.yaml", "growing........."[:8+i])
			pass(watchEvery)
		}
		if told.Load() != 3 {
			t.Error("told of a file that is still being written")
		}
		expect("written", 4)
		write("v2", "a link's target")
		must.Do(t, os.Symlink(filepath.Join(dir, "v2"), filepath.Join(dir, "link")))
		swap("link", "pacer.yaml")
		expect("link", 5)
		os.Remove(file)
		expect("gone", 6)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
