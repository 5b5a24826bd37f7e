package sdk

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// TestNodeSessions runs the realtime clients of openai for Node, which speak TLS and
// nothing else.
func TestNodeSessions(t *testing.T) {
	cert, key := proctest.Certificate(t)
	t.Setenv("NODE_EXTRA_CA_CERTS", cert)
	gateway := proctest.Gateway(t, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
tls: { cert: %q, key: %q }
backends:
  - { name: dead, url: http://127.0.0.1:1/v1 }
  - { name: voice, url: %s/v1 }
routes:
  - { model: chat, targets: [ { backend: dead } ] }
  - { model: voice, targets: [ { backend: dead }, { backend: voice, model: gpt-realtime } ], prefer: order }
keys:
  - { name: full, key_sha256: %s }
  - { name: narrow, key_sha256: %s, routes: [chat] }
`, cert, key, realtimeAPI(t), hash(fullKey), hash(narrowKey)))
	w := world{pacer: gateway.Ready["data"]}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", gateway.Log())
		}
	})
	dir := scratch(t, "sessions")
	for _, name := range []string{"realtime.test.mjs", "package.json", "package-lock.json", ".npmrc"} {
		data := must.Get(os.ReadFile(filepath.Join("sessions", name)))(t)
		must.Do(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	w.install(t, dir, "node", "-e", "process.exit(process.versions.node.split('.')[0] < 20 ? 1 : 0)") // 20 has WebSocket behind a flag
	w.install(t, dir, "npm", "ci", "--no-progress", "--loglevel=error")
	w.run(t, dir, "node", "--experimental-websocket", "--test", "--test-timeout=120000")
}
