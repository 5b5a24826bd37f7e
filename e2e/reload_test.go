package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

func ask(t *testing.T, url string) (int, string) {
	t.Helper()
	resp := must.Get(http.Get(url))(t)
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, string(body)
}

// Without a file a SIGHUP ends nothing either.
func TestSIGHUPWithoutAFile(t *testing.T) {
	t.Parallel()
	gateway := proctest.Start(t, []string{"OPENAI_BASE_URL=http://127.0.0.1:1/v1"}, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	gateway.Signal(syscall.SIGHUP)
	proctest.Until(t, "it goes on", func() bool { return strings.Contains(gateway.Log(), "configuration reloaded") })
	if code := gateway.Stop(syscall.SIGINT); code != 0 {
		t.Errorf("exit code %d, want 0:\n%s", code, gateway.Log())
	}
}

// The built program follows its file while it streams: a new route, a new key,
// a broken file that it refuses and explains, and a SIGHUP.
func TestReload(t *testing.T) {
	t.Parallel()
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "20")
	text := func(routes, more string) string {
		return fmt.Sprintf("listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nbackends: [ { name: a, url: %q, kind: vllm } ]\nroutes:\n%s%s",
			engine.Ready["url"]+"/v1", routes, more)
	}
	const chat = "  - { model: chat, targets: [ { backend: a, model: llama-3.1-70b } ] }\n"
	file := proctest.Write(t, text(chat, ""))
	gateway := proctest.Start(t, nil, "serve", "-c", file)
	put := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(file+".new", []byte(text), 0o600))
		must.Do(t, os.Rename(file+".new", file))
	}
	reloads := func(result string, n int) func() bool {
		return func() bool {
			_, metrics := ask(t, gateway.Ready["admin"]+"/metrics")
			return strings.Contains(metrics, fmt.Sprintf("pacer_config_reloads_total{result=%q} %d\n", result, n))
		}
	}

	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	var mu sync.Mutex
	streams, dropped := 0, 0
	for range 8 {
		clients.Go(func() {
			for ctx.Err() == nil {
				r := client(gateway).Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: 300})
				mu.Lock()
				if streams++; r.Outcome != loadgen.Done {
					dropped++
				}
				mu.Unlock()
			}
		})
	}

	put(text(chat+"  - { model: more, targets: [ { backend: a, model: llama-3.1-70b } ] }\n", ""))
	proctest.Until(t, "the new route", reloads("ok", 1))
	if status, _ := ask(t, gateway.Ready["data"]+"/v1/models/more"); status != 200 {
		t.Errorf("the new route: status %d", status)
	}

	put("routes: [ { model: chat, targets: [ { backend: nobody } ] } ]\n")
	proctest.Until(t, "the refusal", reloads("refused", 1))
	if log := gateway.Log(); !strings.Contains(log, "the old one stays") || !strings.Contains(log, file+":1:") {
		t.Errorf("the log does not say what is wrong and where:\n%s", log)
	}
	if status, _ := ask(t, gateway.Ready["data"]+"/v1/models/more"); status != 200 {
		t.Errorf("after a refused file: status %d", status)
	}
	cause := func() string {
		if c := standing(t, gateway)["gateway "]; c.Cause.Cause != nil {
			return *c.Cause.Cause
		}
		return ""
	}
	proctest.Until(t, "the refusal among what is wrong", func() bool { return strings.HasPrefix(cause(), "configuration refused: "+file+":1:") })

	put(text(chat, ""))
	gateway.Signal(syscall.SIGHUP)
	proctest.Until(t, "the reload by signal", reloads("ok", 2))
	proctest.Until(t, "the word that the refusal is over", func() bool { return strings.Contains(gateway.Log(), "the refusal is over") })
	proctest.Until(t, "nothing wrong", func() bool { return cause() == "" })
	if status, _ := ask(t, gateway.Ready["data"]+"/v1/models/more"); status != 404 {
		t.Errorf("the removed route: status %d, want 404", status)
	}
	stop()
	clients.Wait()
	if dropped > 0 || streams == 0 {
		t.Errorf("%d of %d streams were dropped", dropped, streams)
	}

	sum := sha256.Sum256([]byte("secret"))
	put(text(chat, fmt.Sprintf("keys: [ { name: k, key_sha256: %q } ]\n", hex.EncodeToString(sum[:]))))
	proctest.Until(t, "the key", func() bool {
		status, _ := ask(t, gateway.Ready["data"]+"/v1/models")
		return status == 401
	})
}
