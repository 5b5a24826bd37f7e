package checkout

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

func TestRoot(t *testing.T) {
	root := must.Get(Root())(t)
	if _, err := os.Stat(filepath.Join(root, "internal", "checkout", "checkout_test.go")); err != nil {
		t.Errorf("%s is not the root: %v", root, err)
	}
	// A module of its own within the tree is not the root.
	t.Chdir(filepath.Join(root, "tools"))
	if again, err := Root(); again != root || err != nil {
		t.Errorf("from tools: %q, %v, want %q", again, err, root)
	}
	t.Chdir(t.TempDir())
	if found, err := Root(); err == nil {
		t.Errorf("outside of the tree: %q, want an error", found)
	}
}
