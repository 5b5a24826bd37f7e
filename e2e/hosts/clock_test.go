//go:build linux

package hosts

import (
	"encoding/json"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pacer-dev/pacer/internal/proctest"
)

// wrongClock adds to the time package what moves the wall clock of a process: a static
// program asks the kernel itself, so that nothing between them can tell it another time.
const wrongClock = `
var clockOff = func() (off int64) {
	text, _ := syscall.Getenv("PACER_TEST_CLOCK")
	sign := int64(1)
	for i, c := range []byte(text) {
		if i == 0 && c == '-' {
			sign = -1
		} else {
			off = 10*off + int64(c-'0')
		}
	}
	return sign * off
}()
`

var clocked struct {
	once sync.Once
	file string
	err  error
	text string
}

// clockProgram is the program as it is, but for a clock that is PACER_TEST_CLOCK seconds
// ahead. It takes minutes to build the first time.
func clockProgram(t *testing.T) string {
	t.Helper()
	proctest.Binary(t) // whose folder goes with it
	clocked.once.Do(func() {
		dir := filepath.Dir(proctest.Binary(t))
		source := filepath.Join(build.Default.GOROOT, "src", "time", "time.go")
		text, err := os.ReadFile(source)
		if err != nil {
			clocked.err = err
			return
		}
		changed := strings.Replace(string(text), "sec, nsec, mono := runtimeNow()\n", "sec, nsec, mono := runtimeNow()\n\tsec += clockOff\n", 1)
		if !strings.Contains(changed, "\t\"syscall\"\n") {
			changed = strings.Replace(changed, "import (\n", "import (\n\t\"syscall\"\n", 1)
		}
		if changed == string(text) || !strings.Contains(changed, "sec += clockOff") {
			clocked.err = os.ErrInvalid
			clocked.text = "time.Now is another one than this test knows"
			return
		}
		mine, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json")
		list, err := json.Marshal(map[string]map[string]string{"Replace": {source: mine}})
		if err == nil {
			err = os.WriteFile(mine, []byte(changed+wrongClock), 0o600)
		}
		if err == nil {
			err = os.WriteFile(overlay, list, 0o600)
		}
		if err != nil {
			clocked.err = err
			return
		}
		clocked.file = filepath.Join(dir, "pacer-clock")
		out, err := exec.Command("go", "build", "-buildvcs=false", "-overlay", overlay, "-o", clocked.file, "github.com/pacer-dev/pacer/cmd/pacer").CombinedOutput()
		clocked.err, clocked.text = err, string(out)
	})
	if clocked.err != nil {
		t.Fatalf("a program with another clock: %v\n%s", clocked.err, clocked.text)
	}
	return clocked.file
}
