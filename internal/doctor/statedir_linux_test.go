package doctor

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

// tmpfs mounts a disk of so many bytes for the time of the test.
func tmpfs(t *testing.T, size string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a full disk is a tmpfs, and no tmpfs can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// An empty file can be made on a full disk, and what a gateway keeps cannot.
func TestAFullDisk(t *testing.T) {
	dir := tmpfs(t, "256k")
	f := must.Get(os.Create(filepath.Join(dir, "log")))(t)
	for {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			break
		}
	}
	must.Do(t, f.Close())
	var found findings
	writable(filepath.Join(dir, "state"), &found)
	has(t, found, "fail: state_dir */state cannot be written: no space left on device; make room there, or name a directory on another disk")
	if left := must.Get(os.ReadDir(dir))(t); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestADiskWithLittleRoom(t *testing.T) {
	var found findings
	writable(tmpfs(t, "8m"), &found)
	has(t, found, "warn: state_dir * can be written, and has 8 MiB left; what is kept may need 128; make room there, or name a directory on another disk")
	found = nil
	writable(tmpfs(t, "200m"), &found)
	has(t, found, "ok: state_dir * can be written")
}
