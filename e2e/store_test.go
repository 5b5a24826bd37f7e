package e2e

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

// once runs a command that ends, and returns what it printed and its exit code.
func once(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.Command(proctest.Binary(t), args...)
	text, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// A gateway without Redis goes on with its curves after a restart. They can be taken to
// Redis by hand, where another gateway finds them; a file that is broken is moved aside.
func TestCurvesOutliveAGatewayWithoutRedis(t *testing.T) {
	t.Parallel()
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "5")
	dir := t.TempDir()
	file := gatewayConfig(t, engine.Ready["url"], fmt.Sprintf("state_dir: %q\n", dir))
	gateway := proctest.Start(t, nil, "serve", "-c", file)
	load(t, gateway, 4, 3)
	proctest.Until(t, "a curve", func() bool { return learned(t, gateway) >= most(12) })
	if code := gateway.Stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("ended with %d:\n%s", code, gateway.Log())
	}
	gateway = proctest.Start(t, nil, "serve", "-c", file)
	before := learned(t, gateway)
	if before < most(12) {
		t.Errorf("after a restart %v tokens are known", before)
	}
	gateway.Stop(syscall.SIGTERM)

	shared := gatewayConfig(t, engine.Ready["url"], fmt.Sprintf("store: %q\n", redisURL(t, redistest.Start(t))))
	if out, code := once(t, "store", "migrate", "-c", file, "--to", shared); code != 0 || !strings.Contains(out, "1 copied, 0 were there") {
		t.Fatalf("%d: %s", code, out)
	}
	second := proctest.Start(t, nil, "serve", "-c", shared)
	proctest.Until(t, "the curve by Redis", func() bool { return math.Abs(learned(t, second)-before) < 1 })
	copied := filepath.Join(dir, "copy.json")
	if out, code := once(t, "store", "export", "-c", shared, "-o", copied); code != 0 {
		t.Fatalf("%d: %s", code, out)
	}
	if out, code := once(t, "store", "import", "-c", shared, copied); code != 0 || !strings.Contains(out, "left as it was") {
		t.Errorf("%d: %s", code, out)
	}

	must.Do(t, os.WriteFile(filepath.Join(dir, "curves.json"), []byte(`{"format":"pacer curves","version":1,"curves":[{"sums":`), 0o600))
	gateway = proctest.Start(t, nil, "serve", "-c", file)
	load(t, gateway, 1, 1)
	if _, err := os.Stat(filepath.Join(dir, "curves.json.unreadable")); err != nil || !strings.Contains(gateway.Log(), "learned anew") {
		t.Errorf("%v; the log:\n%s", err, gateway.Log())
	}
	if code := gateway.Stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("ended with %d:\n%s", code, gateway.Log())
	}

	// What only cannot be read, as on a failing disk, is neither moved nor written over.
	hidden := filepath.Join(dir, "curves.json")
	for _, name := range []string{hidden, filepath.Join(dir, "curves.json.unreadable")} {
		must.Do(t, os.RemoveAll(name))
	}
	must.Do(t, os.Mkdir(hidden, 0o700))
	gateway = proctest.Start(t, nil, "serve", "-c", file)
	load(t, gateway, 1, 1)
	gateway.Stop(syscall.SIGTERM)
	_, moved := os.Stat(filepath.Join(dir, "curves.json.unreadable"))
	if there, err := os.Stat(hidden); err != nil || !there.IsDir() || moved == nil || !strings.Contains(gateway.Log(), "stays as it is") {
		t.Errorf("what stood there: %v; moved aside: %v; the log:\n%s", err, moved == nil, gateway.Log())
	}
}
