package atomicfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

func TestAFileIsReplacedWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.json")
	for _, text := range []string{"first", "second, and longer"} {
		must.Do(t, Write(path, []byte(text)))
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: others may read it", info.Mode(), err)
	}
	half := path + ".123.new"
	must.Do(t, os.WriteFile(half, nil, 0o600))
	Clean(path)
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 || left[0] != path {
		t.Errorf("left: %v", left)
	}
}

// A directory in the place of the file cannot be replaced: nothing is lost, and nothing
// half written stays.
func TestWhatCannotBeReplacedStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	must.Do(t, os.MkdirAll(filepath.Join(path, "kept"), 0o700))
	if err := Write(path, []byte("text")); err == nil {
		t.Error("a directory was replaced")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	if err := Write(filepath.Join(path, "gone", "x"), nil); err == nil {
		t.Error("a file was written where no directory is")
	}
}
