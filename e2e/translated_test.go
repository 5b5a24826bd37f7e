//go:build linux

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pacer-dev/pacer/internal/proctest"
)

// What the gateway's process costs for each chunk of a stream over sockets, passed on
// and translated: translated at most twice.
func BenchmarkTranslatedOverSockets(b *testing.B) {
	const streams, tokens = 16, 500
	engine := proctest.Engine(b, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "20")
	gateway := proctest.Gateway(b, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
backends:
  - { name: engine, url: %[1]s/v1, kind: vllm, health_url: off }
  - { name: claude, url: %[2]s/v1, kind: anthropic, health_url: off }
routes:
  - { model: engine, targets: [ { backend: engine, model: llama-3.1-70b } ] }
  - { model: claude, targets: [ { backend: claude, model: llama-3.1-70b } ] }
`, engine.Ready["url"], strings.Replace(engine.Ready["url"], "127.0.0.1", "localhost", 1)))
	const chat = `{"model":%q,"messages":[{"role":"user","content":"hi"}],"max_tokens":500,"stream":true}`
	for _, c := range []struct{ name, path, body string }{
		{"chat as it is", "/v1/chat/completions", fmt.Sprintf(chat, "engine")},
		{"chat to gemini", "/v1beta/models/engine:streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":500}}`},
		{"chat to cohere", "/v2/chat", fmt.Sprintf(chat, "engine")},
		{"messages as it is", "/v1/messages", fmt.Sprintf(chat, "claude")},
		{"messages to chat", "/v1/chat/completions", fmt.Sprintf(chat, "claude")},
		{"messages to gemini", "/v1beta/models/claude:streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":500}}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			before := processTime(b, gateway.PID())
			for b.Loop() {
				var users sync.WaitGroup
				for range streams {
					users.Go(func() {
						resp, err := http.Post(gateway.Ready["data"]+c.path, "application/json", strings.NewReader(c.body))
						if err != nil {
							b.Error(err)
							return
						}
						defer resp.Body.Close()
						if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 || strings.Count(string(text), "data: ") < tokens {
							b.Errorf("got %d, %d events (%v)", resp.StatusCode, strings.Count(string(text), "data: "), err)
						}
					})
				}
				users.Wait()
			}
			b.ReportMetric(float64(processTime(b, gateway.PID())-before)/float64(b.N*streams*tokens), "cpu-ns/chunk")
		})
	}
}

// processTime is what the threads of a process have run, in nanoseconds.
func processTime(b *testing.B, pid int) (total int64) {
	b.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		b.Fatalf("no threads of %d (%v)", pid, err)
	}
	for _, name := range tasks {
		var ran int64
		if text, err := os.ReadFile(name); err != nil {
			b.Fatal(err) // a thread of Go's that has ended would take its time away
		} else if _, err := fmt.Sscan(string(text), &ran); err != nil {
			b.Fatal(err)
		}
		total += ran
	}
	return total
}
