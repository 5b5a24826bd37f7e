// Package checkout finds the source tree that a test runs in.
package checkout

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Root returns the folder of Pacer's own module, at or above the working
// directory. It asks no path that the compiler wrote, which -trimpath shortens.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module github.com/pacer-dev/pacer\n") {
			return dir, nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", errors.New("no go.mod of Pacer at or above the working directory")
		}
		dir = above
	}
}
