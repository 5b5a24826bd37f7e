package redistest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pacer-dev/pacer/internal/must"
)

// StartSentinel starts a Sentinel on a port of this machine that watches the
// master at masterPort under a name, and fails over half a second after it is
// gone. It wants a password. It ends with the test. program is the file that is run.
func StartSentinel(t testing.TB, program, port, password, name, masterPort string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf(`port %s
bind 127.0.0.1
dir %s
sentinel monitor %[3]s 127.0.0.1 %[4]s 1
sentinel down-after-milliseconds %[3]s 500
sentinel failover-timeout %[3]s 5000
requirepass %[5]s
`, port, dir, name, masterPort, password)
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	cmd := exec.Command(program, file, "--sentinel")
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s --sentinel: %v", program, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, as it should be
	})
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, Password: password, DisableIdentity: true})
	defer c.Close()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(startTimeout); c.Ping(context.Background()).Err() != nil; <-poll.C {
		if time.Now().After(deadline) {
			t.Fatalf("the Sentinel was not ready within %v", startTimeout)
		}
	}
}
