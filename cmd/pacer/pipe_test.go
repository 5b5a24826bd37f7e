//go:build unix

package main

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/providers"
)

// A pipe or a directory in the place of a file of target groups is an error at
// once: to open a pipe would block the loop that reloads, for ever.
func TestATargetFileThatIsNone(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "fleet.json")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for _, file := range []string{pipe, t.TempDir()} {
		looked := make(chan error, 1)
		go func() {
			_, err := providers.Source{URL: "http://pool:8000/v1", File: file}.Look(context.Background())
			looked <- err
		}()
		select {
		case err := <-looked:
			if err == nil || !strings.Contains(err.Error(), "not a regular file") {
				t.Errorf("%s: %v", file, err)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s: the look waits for a writer", file)
		}
	}
}
