package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

// keysCommand runs pacer keys against a gateway and returns what it prints.
func keysCommand(t *testing.T, p *proctest.Process, args ...string) string {
	t.Helper()
	cmd := exec.Command(proctest.Binary(t), append([]string{"keys", "--admin", p.Ready["admin"]}, args...)...)
	cmd.Env = append(os.Environ(), "PACER_ADMIN_TOKEN=root-token")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("pacer keys %v: %v\n%s%s", args, err, out, complaint.String())
	}
	return strings.TrimSpace(string(out))
}

// A key that one of three gateways hands out is taken by all, and refused by all
// once it is revoked; a rotation keeps the old secret for its grace; a Redis that
// loses everything gets the keys back.
func TestKeysAreHandedOutOverThreeGateways(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "20")
	file := gatewayConfig(t, engine.Ready["url"], "replicas: 3\nstore: \""+redisURL(t, redis)+"\"\n"+
		"keys: [ { name: of-file, key: sk-of-the-file } ]\n")
	text := must.Get(os.ReadFile(file))(t)
	must.Do(t, os.WriteFile(file, []byte(strings.Replace(string(text), "admin: { listen: 127.0.0.1:0 }", "admin: { listen: 127.0.0.1:0, token: root-token }", 1)), 0o600))
	var gateways []*proctest.Process
	for range 3 {
		gateways = append(gateways, proctest.Start(t, nil, "serve", "-c", file))
	}
	var b buyer
	all := func(key string, want int) func() bool {
		return func() bool {
			for _, g := range gateways {
				if got, _ := b.buy(g.Ready["data"], key, 10); got != want {
					return false
				}
			}
			return true
		}
	}
	for _, g := range gateways { // on a busy machine Redis may not have been asked in time
		proctest.Until(t, "the store is there", func() bool { return metrics(t, g)["pacer_store_up"] == 1 })
	}
	secret := keysCommand(t, gateways[0], "create", "mobile", "--routes", "chat")
	proctest.Until(t, "all take the key", all(secret, http.StatusOK))
	younger := keysCommand(t, gateways[1], "rotate", "mobile", "--grace", "1h")
	proctest.Until(t, "all take the new secret", all(younger, http.StatusOK))
	if !all(secret, http.StatusOK)() {
		t.Error("the old secret is refused within its grace")
	}
	redis.Restart() // empty
	proctest.Until(t, "the keys are back", func() bool {
		return strings.Contains(keysPrint(gateways[2], t, "list"), "mobile") && all(younger, http.StatusOK)()
	})
	proctest.Until(t, "it can be revoked", func() bool {
		cmd := exec.Command(proctest.Binary(t), "keys", "revoke", "mobile", "--admin", gateways[2].Ready["admin"])
		cmd.Env = append(os.Environ(), "PACER_ADMIN_TOKEN=root-token")
		return cmd.Run() == nil
	})
	began := time.Now()
	proctest.Until(t, "all refuse the key", func() bool { return all(younger, http.StatusUnauthorized)() && all(secret, http.StatusUnauthorized)() })
	t.Logf("refused by all %v after it was revoked, looks included", time.Since(began).Round(time.Millisecond))
	if !all("sk-of-the-file", http.StatusOK)() {
		t.Error("the key of the file is refused")
	}
	again := proctest.Start(t, nil, "serve", "-c", file)
	if got, _ := b.buy(again.Ready["data"], younger, 10); got != http.StatusUnauthorized {
		t.Errorf("a gateway that has just started answers a revoked key with %d", got)
	}
	proctest.Until(t, "its audit log tells of it", func() bool { return strings.Contains(keysPrint(again, t, "audit"), "key.revoke") })
	for _, key := range redis.Do("KEYS", "*").([]any) {
		if values, ok := redis.Do("HGETALL", key).([]any); ok {
			for _, v := range values {
				if text, _ := v.(string); strings.Contains(text, secret) || strings.Contains(text, younger) {
					t.Errorf("a secret is in %s", key)
				}
			}
		}
	}
	for _, g := range gateways {
		if log := g.Log(); strings.Contains(log, secret) || strings.Contains(log, younger) {
			t.Error("a secret is in a log")
		}
	}
}

// keysPrint is what pacer keys says when asked for what, "" while it does not work.
func keysPrint(p *proctest.Process, t *testing.T, what string) string {
	cmd := exec.Command(proctest.Binary(t), "keys", what, "--admin", p.Ready["admin"])
	cmd.Env = append(os.Environ(), "PACER_ADMIN_TOKEN=root-token")
	out, _ := cmd.Output()
	return string(out)
}
