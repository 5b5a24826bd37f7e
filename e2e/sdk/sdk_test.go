package sdk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

func TestMain(m *testing.M) { proctest.Main(m) }

// suiteTimeout bounds one suite, with the installation of what it needs.
const suiteTimeout = 8 * time.Minute

// world is a gateway in front of two engines.
type world struct {
	pacer, sim string // URLs
}

const (
	fullKey    = "sk-sdk-full"
	narrowKey  = "sk-sdk-narrow"
	limitedKey = "sk-sdk-limited"
)

func hash(key string) string {
	h := sha256.Sum256([]byte(key))
	return hex.EncodeToString(h[:])
}

// newWorld starts the processes. They end with the test.
func newWorld(t *testing.T) world {
	t.Helper()
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "4")
	thinking := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "4", "--behave", "reasoning")
	gateway := proctest.Gateway(t, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
backends:
  - { name: a, url: %s/v1, kind: vllm }
  - { name: t, url: %s/v1, kind: vllm }
  - { name: dead, url: http://127.0.0.1:1/v1 }
  - { name: voice, url: %s/v1 }
routes:
  - { models: [chat, org/model], targets: [ { backend: a, model: llama-3.1-70b } ], slo: { min_tps: 5 } }
  - { model: thinking, targets: [ { backend: t, model: llama-3.1-70b } ] }
  - { model: dead, targets: [ { backend: dead } ] }
  - { model: voice, targets: [ { backend: dead }, { backend: voice, model: gpt-realtime } ], prefer: order }
keys:
  - { name: full, key_sha256: %s, allow: { min_tps_max: 1000000 } }
  - { name: narrow, key_sha256: %s, routes: [chat], allow: { min_tps_max: 10 } }
  - { name: limited, key_sha256: %s, limits: { requests_per_minute: 1 } }
`, engine.Ready["url"], thinking.Ready["url"], realtimeAPI(t), hash(fullKey), hash(narrowKey), hash(limitedKey)))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", gateway.Log())
		}
	})
	return world{pacer: gateway.Ready["data"], sim: engine.Ready["url"]}
}

// run runs a command of a suite in dir, with the world in its environment.
func (w world) run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	if out, err := w.command(t, dir, name, args...); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// install runs a command that fetches what a suite needs. Without it there is
// nothing to test: a machine may have no such language, or no way out.
func (w world) install(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	if out, err := w.command(t, dir, name, args...); err != nil {
		t.Skipf("the suite cannot be installed here: %s %v: %v\n%s", name, args, err, out)
	}
}

func (w world) command(t *testing.T, dir, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.Context(), suiteTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"PACER_URL="+w.pacer, "PACER_KEY="+fullKey, "PACER_NARROW_KEY="+narrowKey, "PACER_LIMITED_KEY="+limitedKey, "SIM_URL="+w.sim,
		"PIP_DISABLE_PIP_VERSION_CHECK=1", "PYTHONDONTWRITEBYTECODE=1", "NO_UPDATE_NOTIFIER=1")
	cmd.WaitDelay = time.Second
	return cmd.CombinedOutput()
}

// scratch is the folder that installations are kept in between runs.
func scratch(t *testing.T, name string) string {
	t.Helper()
	dir := must.Get(filepath.Abs(filepath.Join("..", "..", "bin", "sdk", name)))(t)
	must.Do(t, os.MkdirAll(dir, 0o755))
	return dir
}

// TestPython runs the suites of openai and anthropic for Python.
func TestPython(t *testing.T) {
	w := newWorld(t)
	venv := scratch(t, "python")
	python := filepath.Join(venv, "bin", "python")
	if _, err := os.Stat(python); err != nil {
		w.install(t, ".", "python3", "-m", "venv", venv)
	}
	w.install(t, "python", python, "-m", "pip", "install", "-q", "-r", "requirements.txt")
	w.run(t, "python", python, "-W", "error::ResourceWarning", "-m", "unittest", "-b")
}

// TestNode runs the suites of openai, Vercel's AI SDK, LangChain and anthropic
// for Node.
func TestNode(t *testing.T) {
	w := newWorld(t)
	dir := scratch(t, "node")
	for _, pattern := range []string{"*.mjs", "package*.json", ".npmrc"} {
		files, err := filepath.Glob(filepath.Join("node", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s in node (%v)", pattern, err)
		}
		for _, f := range files {
			data := must.Get(os.ReadFile(f))(t)
			must.Do(t, os.WriteFile(filepath.Join(dir, filepath.Base(f)), data, 0o644))
		}
	}
	w.install(t, dir, "node", "-e", "process.exit(process.versions.node.split('.')[0] < 20 ? 1 : 0)") // the SDKs ask for 20
	w.install(t, dir, "npm", "ci", "--no-progress", "--loglevel=error")
	w.run(t, dir, "node", "--test", "--test-concurrency=1", "--test-timeout=120000")
}
