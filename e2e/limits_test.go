package e2e

import (
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

// passes sends one short request with a key and reports whether its limits
// let it through.
func passes(t *testing.T, p *proctest.Process, key string) bool {
	t.Helper()
	r := must.Get(http.NewRequest(http.MethodPost, p.Ready["data"]+"/v1/chat/completions",
		strings.NewReader(`{"model":"chat","max_tokens":1,"messages":[{"role":"user","content":"hello"}]}`)))(t)
	r.Header.Set("Authorization", "Bearer "+key)
	resp := must.Get(http.DefaultClient.Do(r))(t)
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("status %s, want 200 or 429", resp.Status)
	}
	return resp.StatusCode == http.StatusOK
}

// A key's limits hold over two gateways, and those that a reload brings do.
func TestTwoGatewaysShareTheLimitsOfAKey(t *testing.T) {
	t.Parallel()
	const secret = "sk-the-mobile-app"
	redis := redistest.Start(t)
	engine := proctest.Start(t, nil, "sim", "--listen", "127.0.0.1:0", "--preset", "llama-3.1-70b/h200/vllm", "--speed", "5")
	file := gatewayConfig(t, engine.Ready["url"], "replicas: 2\nstore: \""+redisURL(t, redis)+"\"\n"+
		"keys: [ { name: mobile, key: "+secret+", limits: { requests_per_minute: 12 } } ]\n")
	a, b := proctest.Start(t, nil, "serve", "-c", file), proctest.Start(t, nil, "serve", "-c", file)
	start := time.Now()
	flowed := func() int { return 1 + int(time.Since(start).Seconds()/5) }
	for i := range 10 {
		if !passes(t, a, secret) {
			t.Fatalf("request %d of 12 a minute was refused", i+1)
		}
	}
	shared := "pacer:{mobile}:limits:1:12-0"
	passes(t, b, secret)
	proctest.Until(t, "both tell what they used", func() bool { return redis.Do("HLEN", shared) == int64(3) })
	beyond := 0
	proctest.Until(t, "b refuses", func() bool {
		if passes(t, b, secret) {
			beyond++
			return false
		}
		return true
	})
	if beyond > 3+flowed() {
		t.Errorf("b let %d more through after 11 of 12", beyond)
	}
	proctest.Until(t, "a refuses", func() bool { return !passes(t, a, secret) })

	text := must.Get(os.ReadFile(file))(t)
	must.Do(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "minute: 12", "minute: 15")), 0o600))
	a.Signal(syscall.SIGHUP)
	proctest.Until(t, "a has new limits", func() bool { return passes(t, a, secret) })
	proctest.Until(t, "a tells what it used of them", func() bool { return redis.Do("EXISTS", "pacer:{mobile}:limits:1:15-0") == int64(1) })
	for _, key := range redis.Do("KEYS", "*").([]any) {
		if strings.Contains(key.(string), secret) {
			t.Errorf("the key itself is in Redis: %s", key)
		}
		if ms := redis.Do("PTTL", key).(int64); ms <= 0 {
			t.Errorf("%s lives for ever", key)
		}
	}
}
