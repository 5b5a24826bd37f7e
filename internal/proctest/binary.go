package proctest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/pacer-dev/pacer/internal/checkout"
)

var built struct {
	once sync.Once
	file string
	err  error
}

// Binary builds the program once and returns its file. Main removes it.
func Binary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() { built.file, built.err = build() })
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.file
}

// build returns a copy of the program, in a folder of its own. The program itself
// is bin/test/pacer, which all test processes share: the Go tool links it anew
// only where a source has changed. A link takes seconds, and a copy none.
func build() (file string, err error) {
	root, err := checkout.Root()
	if err != nil {
		return "", err
	}
	shared := filepath.Join(root, "bin", "test", "pacer")
	if err := os.MkdirAll(filepath.Dir(shared), 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(shared+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close() // which gives the lock back
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	// As make build has it, so that one of the two compiles and both link.
	tool := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-buildvcs=auto", "-o", shared, "./cmd/pacer")
	tool.Dir, tool.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := tool.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building pacer: %w\n%s", err, out)
	}
	dir, err := os.MkdirTemp("", "pacer-test-")
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "pacer")
	// By another process: what this one forks meanwhile would hold the file open for
	// writing, and such a file cannot be run.
	if out, err := exec.Command("cp", shared, file).CombinedOutput(); err != nil {
		return file, fmt.Errorf("copying pacer: %w\n%s", err, out)
	}
	return file, nil
}

// Main runs the tests of a package and removes what Binary built.
func Main(m *testing.M) {
	code := m.Run()
	if built.file != "" {
		os.RemoveAll(filepath.Dir(built.file))
	}
	os.Exit(code)
}
