package readfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

func TestRegular(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	must.Do(t, os.WriteFile(file, []byte("12345"), 0o600))
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	for most, want := range map[int64]string{3: "1234", 4: "12345", 100: "12345"} {
		if got, err := Regular(file, most); string(got) != want || err != nil {
			t.Errorf("of %d bytes: %q, %v", most, got, err)
		}
	}
	for path, want := range map[string]string{pipe: "not a regular file", "/dev/zero": "not a regular file", dir: "not a regular file", file + "s": "no such file or directory"} {
		if got, err := Regular(path, 100); err == nil || Reason(err) != want {
			t.Errorf("%s: %q, %v, want %s", path, got, err, want)
		}
	}
}
