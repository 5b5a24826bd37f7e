// Package golden compares what a test got with a file in testdata, and rewrites
// the file with go test -update. It is for tests alone.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// Update reports whether expected output is to be rewritten.
func Update() bool { return *update }

// Want compares text with a file in testdata.
func Want(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must.Do(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want := must.Get(os.ReadFile(path))(t)
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant (go test -update rewrites it):\n%s", path, got, want)
	}
}
