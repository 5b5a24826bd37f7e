//go:build unix

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// A pipe in the place of the file that nobody writes to is an empty file: a
// reload that waited for its writer would never end, nor would the program.
func TestLoadDoesNotWaitForAWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pacer.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	loaded := make(chan error, 1)
	go func() {
		_, err := Load(path)
		loaded <- err
	}()
	select {
	case err := <-loaded:
		if err == nil {
			t.Error("an empty pipe was loaded")
		}
	case <-time.After(5 * time.Second):
		t.Error("Load waits for somebody to write to the pipe")
		if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
			f.Close()
		}
		<-loaded
	}
}

// What a shell's <(…) writes is read to its end, however late it comes.
func TestLoadReadsAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	must.Do(t, err)
	defer r.Close()
	go func() {
		defer w.Close()
		<-time.After(20 * time.Millisecond)
		w.WriteString("backends: [ { name: a, url: \"http://a/v1\" } ]\nroutes: [ { model: m, targets: [ { backend: a } ] } ]\n")
	}()
	if _, err := Load(fmt.Sprintf("/dev/fd/%d", r.Fd())); err != nil {
		t.Error(err)
	}
}
