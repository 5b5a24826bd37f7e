package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

func uploadLines(t *testing.T, base, content string) string {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("purpose", "batch")
	part, _ := w.CreateFormFile("file", "in.jsonl")
	_, _ = io.WriteString(part, content)
	_ = w.Close()
	return askJSON(t, "POST", base+"/v1/files", w.FormDataContentType(), b.String())["id"].(string)
}

func askJSON(t *testing.T, method, url, kind, body string) (v map[string]any) {
	t.Helper()
	r := must.Get(http.NewRequest(method, url, strings.NewReader(body)))(t)
	r.Header.Set("Content-Type", kind)
	resp := must.Get(http.DefaultClient.Do(r))(t)
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if err := json.Unmarshal(text, &v); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%s %s: %s %s", method, url, resp.Status, text)
	}
	return v
}

// users stream from a gateway, one after the other each, until over is closed.
type users struct {
	over         chan struct{}
	running      sync.WaitGroup
	mu           sync.Mutex // guards what follows
	kept, missed int
	others       map[string]int // outcomes that are no whole stream
	slowest      float64        // tokens/s
}

// watch begins with n of them; what does not keep floor is missed.
func watch(n int, floor float64, gateway *proctest.Process) *users {
	u := &users{over: make(chan struct{}), others: map[string]int{}, slowest: math.Inf(1)}
	for range n {
		u.running.Go(func() {
			c := client(gateway)
			for {
				select {
				case <-u.over:
					return
				default:
				}
				r := c.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 100, MaxTokens: 150})
				u.mu.Lock()
				switch tps, ok := r.TPS(); {
				case r.Outcome != loadgen.Done:
					u.others[fmt.Sprint(r.Outcome)]++
				case r.Kept(floor, time.Second):
					u.kept++
				default:
					u.missed++
					if ok {
						u.slowest = min(u.slowest, tps)
					}
				}
				u.mu.Unlock()
			}
		})
	}
	return u
}

// stop ends them, and says what they saw.
func (u *users) stop() string {
	close(u.over)
	u.running.Wait()
	return fmt.Sprintf("%d streams kept the floor, %d missed it (slowest %.1f tokens/s), others %v", u.kept, u.missed, u.slowest, u.others)
}

// Two gateways do a job over three engines, beside users with a floor. A gateway, the
// Redis that holds the job, and an engine are killed while it runs. The other ones end
// it: each request has one answer, and users have their speed.
func TestABatchAmongUsers(t *testing.T) {
	if racetest.On {
		t.Skip("a minute of real processes: make numbers runs it")
	}
	n, tokens := 600, 20
	if *long {
		n = 10_000
	}
	redis := redistest.Start(t, "--appendonly", "yes")
	var engines []*proctest.Process
	backends, targets := "", ""
	for i := range 3 {
		e := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm")
		engines = append(engines, e)
		backends += fmt.Sprintf("  - { name: e%d, kind: vllm, url: %q, prior: llama-3.1-70b/h200/vllm }\n", i, e.Ready["url"]+"/v1")
		targets += fmt.Sprintf("{ backend: e%d, model: llama-3.1-70b }, ", i)
	}
	file := proctest.Write(t, fmt.Sprintf(`listen: 127.0.0.1:0
admin: { listen: "127.0.0.1:0" }
store: %q
replicas: 2
batches: { slots: 48 }
backends:
%sroutes:
  - { model: chat, targets: [ %s ], slo: { min_tps: 30 } }
  - { model: nightly, class: batch, targets: [ %s ] }
`, redisURL(t, redis), backends, targets, targets))
	a, b := proctest.Start(t, nil, "serve", "-c", file), proctest.Start(t, nil, "serve", "-c", file)
	people := watch(6, 30, b)

	job := startJob(t, a, n, tokens)
	look := func() map[string]any { return jobAt(t, b, job) }
	began := time.Now()
	proctest.Until(t, "a fifth is done", func() bool { return completed(look()) >= n/5 })
	if told := proctest.JSON[api.Jobs](t, b.Ready["admin"]+"/api/v1/jobs").Jobs; len(told) != 1 || told[0].ID != job["id"] || told[0].Total != n || told[0].Completed < n/5 {
		t.Errorf("the admin port of the other gateway tells of %+v", told)
	}
	a.Stop(syscall.SIGKILL)
	proctest.Until(t, "two fifths are done", func() bool { return completed(look()) >= 2*n/5 })
	redis.Restart() // which kills it first
	proctest.Until(t, "three fifths are done", func() bool { return completed(look()) >= 3*n/5 })
	engines[2].Stop(syscall.SIGKILL)
	proctest.Until(t, "a part more is done", func() bool { return completed(look()) >= 3*n/5+n/20 })
	if j := look(); j["status"] != "in_progress" {
		t.Fatalf("it was over before all had died: %v", j)
	}
	finish := time.Now().Add(15 * time.Minute)
	for look()["status"] == "in_progress" && time.Now().Before(finish) {
		<-time.After(200 * time.Millisecond)
	}
	j, took := look(), time.Since(began)
	if j["status"] != "completed" || completed(j) != n {
		t.Fatalf("got %v", j)
	}
	answeredOnce(t, b, j, n, tokens)

	second := startJob(t, b, n, tokens)
	proctest.Until(t, "the second job runs", func() bool { return completed(jobAt(t, b, second)) >= n/50 })
	asked := time.Now()
	askJSON(t, "POST", fmt.Sprintf("%s/v1/batches/%v/cancel", b.Ready["data"], second["id"]), "", "")
	proctest.Until(t, "it is cancelled", func() bool { return jobAt(t, b, second)["status"] == "cancelled" })
	cancelled := time.Since(asked)
	if *long && cancelled > 2*time.Second {
		t.Errorf("cancelled after %v, want 2 s", cancelled)
	}
	says := people.stop()
	t.Logf("%d lines in %.0f s, cancelled after %.2f s; %s", n, took.Seconds(), cancelled.Seconds(), says)
	// A stream that ran on the engine that was killed has ended with it.
	if all := people.kept + people.missed; all < 10 || float64(people.missed) > 0.01*float64(all) {
		t.Errorf("of %d streams %d missed their floor, want 1 %% at most", all, people.missed)
	}
	if shed := people.others["shed"]; shed > 0 {
		t.Errorf("%d users were refused", shed)
	}
}

func startJob(t *testing.T, gateway *proctest.Process, n, tokens int) map[string]any {
	t.Helper()
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"custom_id":"c%d","method":"POST","url":"/v1/chat/completions","body":{"model":"nightly","max_tokens":%d,"messages":[{"role":"user","content":"x"}]}}`+"\n", i, tokens)
	}
	id := uploadLines(t, gateway.Ready["data"], lines.String())
	return askJSON(t, "POST", gateway.Ready["data"]+"/v1/batches", "application/json",
		fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, id))
}

// jobAt is the job as gateway has it. Nobody can say while Redis is away.
func jobAt(t *testing.T, gateway *proctest.Process, job map[string]any) (v map[string]any) {
	t.Helper()
	resp := must.Get(http.Get(fmt.Sprintf("%s/v1/batches/%v", gateway.Ready["data"], job["id"])))(t)
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusServiceUnavailable:
		return map[string]any{"status": "in_progress"}
	case http.StatusOK:
		if err := json.NewDecoder(resp.Body).Decode(&v); err == nil {
			return v
		}
	}
	t.Fatalf("the job cannot be read: %s", resp.Status)
	return nil
}

// completed is how many requests of a job have a good answer.
func completed(job map[string]any) int {
	counts, _ := job["request_counts"].(map[string]any)
	n, _ := counts["completed"].(float64)
	return int(n)
}

// answeredOnce reads the output of a job as OpenAI's API has it: each of the n requests
// is in it once, whole.
func answeredOnce(t *testing.T, gateway *proctest.Process, job map[string]any, n, tokens int) {
	t.Helper()
	out := proctest.Get(t, fmt.Sprintf("%s/v1/files/%v/content", gateway.Ready["data"], job["output_file_id"]))
	seen := map[string]int{}
	for line := range strings.Lines(string(out)) {
		var l struct {
			ID       string `json:"id"`
			CustomID string `json:"custom_id"`
			Error    any    `json:"error"`
			Response struct {
				Status    int    `json:"status_code"`
				RequestID string `json:"request_id"`
				Body      struct {
					Object string `json:"object"`
					Usage  struct {
						Completion int `json:"completion_tokens"`
					} `json:"usage"`
				} `json:"body"`
			} `json:"response"`
		}
		must.Do(t, json.Unmarshal([]byte(line), &l))
		seen[l.CustomID]++
		if r := l.Response; l.ID == "" || l.Error != nil || r.Status != 200 || r.RequestID == "" || r.Body.Object != "chat.completion" || r.Body.Usage.Completion != tokens {
			t.Fatalf("no line of OpenAI's: %s", line)
		}
	}
	for i := range n {
		if got := seen[fmt.Sprintf("c%d", i)]; got != 1 {
			t.Errorf("c%d has %d answers", i, got)
		}
	}
	if len(seen) != n || job["error_file_id"] != nil {
		t.Errorf("%d requests have answers, want %d; errors %v", len(seen), n, job["error_file_id"])
	}
}
