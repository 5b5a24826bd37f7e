package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "pacer-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "pacer")
	build := exec.Command("go", "build", "-o", binary, "../cmd/pacer")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building pacer:", err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// process is one running program.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	ready map[string]string // fields of the ready line

	mu     sync.Mutex
	stderr bytes.Buffer
	ended  chan struct{}
}

var readyField = regexp.MustCompile(`(\w+)=(\S+)|(http://\S+)`)

// start runs the program and waits for its ready line.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, ready: map[string]string{}, ended: make(chan struct{})}
	p.cmd = exec.Command(binary, args...)
	p.cmd.Env = append(os.Environ(), env...)
	out, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1)
	go p.read(out, lines)
	t.Cleanup(func() { p.stop(syscall.SIGKILL) })
	select {
	case line := <-lines:
		for _, m := range readyField.FindAllStringSubmatch(line, -1) {
			if m[3] != "" {
				p.ready["url"] = m[3]
			} else {
				p.ready[m[1]] = m[2]
			}
		}
	case <-p.ended:
		t.Fatalf("%v ended before it was ready:\n%s", args, p.log())
	case <-time.After(time.Minute):
		t.Fatalf("%v was not ready within a minute:\n%s", args, p.log())
	}
	return p
}

func (p *process) read(out io.Reader, ready chan<- string) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		fmt.Fprintln(&p.stderr, lines.Text())
		p.mu.Unlock()
		if strings.Contains(lines.Text(), ": ready ") {
			ready <- lines.Text()
		}
	}
	p.cmd.Wait()
	close(p.ended)
}

func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// stop sends a signal and returns the exit code.
func (p *process) stop(s syscall.Signal) int {
	p.cmd.Process.Signal(s)
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		p.cmd.Process.Kill()
		p.t.Errorf("did not end within a minute of %v:\n%s", s, p.log())
		<-p.ended
	}
	return p.cmd.ProcessState.ExitCode()
}

// write puts a configuration into a file of its own.
func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pacer.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func gatewayConfig(t *testing.T, backendURL, more string) string {
	return write(t, fmt.Sprintf(`listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
backends: [ { name: a, url: %q, kind: vllm } ]
routes: [ { model: chat, targets: [ { backend: a, model: llama-3.1-70b } ] } ]
%s`, backendURL+"/v1", more))
}

func client(p *process) *loadgen.Client {
	return &loadgen.Client{BaseURL: p.ready["data"] + "/v1", HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
}

// profile is the part of /api/v1/profiles that these tests read.
type profile struct {
	Targets []struct {
		Backend    string  `json:"backend"`
		Model      string  `json:"model"`
		TokensSeen float64 `json:"tokens_seen"`
		Points     []struct {
			N      int      `json:"n"`
			TPS    *float64 `json:"tps"`
			Source string   `json:"source"`
		} `json:"points"`
	} `json:"targets"`
}

func profiles(t *testing.T, p *process) profile {
	t.Helper()
	var out profile
	if err := json.Unmarshal(get(t, p.ready["admin"]+"/api/v1/profiles"), &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Targets) != 1 {
		t.Fatalf("got %d targets, want the one configured", len(out.Targets))
	}
	return out
}

func get(t *testing.T, url string) []byte {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v\n%s", url, resp.Status, err, body)
	}
	return body
}

// load streams requests from a few users at once.
func load(t *testing.T, p *process, users, each int) {
	t.Helper()
	c := client(p)
	var wg sync.WaitGroup
	for range users {
		wg.Go(func() {
			for range each {
				r := c.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 100, MaxTokens: 80})
				if r.Outcome != loadgen.Done || r.Tokens != 80 {
					t.Errorf("got %v with %d tokens (%v), want done with 80", r.Outcome, r.Tokens, r.Err)
				}
			}
		})
	}
	wg.Wait()
}

// until polls cond, at most a minute.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for tick := time.NewTicker(50 * time.Millisecond); ; <-tick.C {
		if cond() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// The main job by its processes: an engine, a gateway, clients; curves, routes
// and metrics tell what happened; both end with 0 on SIGTERM.
func TestServe(t *testing.T) {
	engine := start(t, nil, "sim", "--listen", "127.0.0.1:0", "--preset", "llama-3.1-70b/h200/vllm", "--speed", "5")
	if engine.ready["model"] != "llama-3.1-70b" {
		t.Errorf("ready line says model=%s, want llama-3.1-70b", engine.ready["model"])
	}
	gateway := start(t, nil, "serve", "-c", gatewayConfig(t, engine.ready["url"], ""))
	load(t, gateway, 8, 3)

	until(t, "the tokens of all streams learned", func() bool {
		return profiles(t, gateway).Targets[0].TokensSeen >= 8*3*79*0.9
	})
	if !strings.Contains(string(get(t, gateway.ready["admin"]+"/metrics")), `pacer_requests_total{backend="a",class="interactive",outcome="ok",route="chat"} 24`) {
		t.Error("metrics do not count 24 requests on route chat")
	}
	var routes struct {
		Routes []struct{ Offered, Failed int }
	}
	if err := json.Unmarshal(get(t, gateway.ready["admin"]+"/api/v1/routes"), &routes); err != nil || len(routes.Routes) != 1 ||
		routes.Routes[0].Offered != 24 || routes.Routes[0].Failed != 0 {
		t.Errorf("routes say %+v (%v), want 24 offered, 0 failed", routes, err)
	}
	get(t, gateway.ready["data"]+"/readyz")
	if !strings.Contains(string(get(t, gateway.ready["admin"]+"/")), "<html") {
		t.Error("no page on the admin port")
	}
	if code := gateway.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("gateway ended with %d, want 0:\n%s", code, gateway.log())
	}
	if code := engine.stop(syscall.SIGINT); code != 0 {
		t.Errorf("engine ended with %d, want 0:\n%s", code, engine.log())
	}
}

// Without a file, OPENAI_BASE_URL is enough.
func TestServeFromTheEnvironment(t *testing.T) {
	engine := start(t, nil, "sim", "--listen", "127.0.0.1:0", "--preset", "llama-3.1-70b/h200/vllm", "--model", "chat", "--speed", "5")
	gateway := start(t, []string{"OPENAI_BASE_URL=" + engine.ready["url"] + "/v1", "OPENAI_API_KEY=sk-none"},
		"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	load(t, gateway, 2, 1)
	if strings.Contains(gateway.log(), "sk-none") {
		t.Error("the key is in the log")
	}
}

// A stream that runs when SIGTERM comes is finished, not cut.
func TestSIGTERMLetsStreamsFinish(t *testing.T) {
	engine := start(t, nil, "sim", "--listen", "127.0.0.1:0", "--preset", "llama-3.1-70b/h200/vllm")
	gateway := start(t, nil, "serve", "-c", gatewayConfig(t, engine.ready["url"], ""))
	done := make(chan loadgen.Result)
	go func() {
		done <- client(gateway).Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 10, MaxTokens: 100})
	}()
	until(t, "the stream runs", func() bool {
		return strings.Contains(string(get(t, gateway.ready["admin"]+"/metrics")), `pacer_inflight{backend="a",phase="decoding"} 1`)
	})
	code := gateway.stop(syscall.SIGTERM)
	if r := <-done; r.Outcome != loadgen.Done || r.Tokens != 100 || code != 0 {
		t.Errorf("got %v with %d tokens (%v), exit %d; want the whole stream and 0", r.Outcome, r.Tokens, r.Err, code)
	}
}

func TestBadUsageEndsWith2(t *testing.T) {
	bad := write(t, "backends: [ { name: a, url: \"ftp://x\" } ]\nroutes: [ { model: chat, targets: [ { backend: b } ] } ]\n")
	for _, args := range [][]string{
		{"serve", "-c", bad},
		{"serve", "-c", "/nowhere.yaml"},
		{"check", bad},
		{"serve", "--nonsense"},
		{"check"},
		{"sim", "--preset", "no-such-model"},
		{"nonsense"},
	} {
		cmd := exec.Command(binary, args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		err := cmd.Run()
		if cmd.ProcessState.ExitCode() != 2 || stderr.Len() == 0 {
			t.Errorf("pacer %v: %v, stderr %q; want exit code 2 and a message", args, err, stderr.String())
		}
	}
}

func TestCheckNamesEveryProblemWithItsPlace(t *testing.T) {
	bad := write(t, "backends: [ { name: a, url: \"ftp://x\" } ]\nroutes: [ { model: chat, targets: [ { backend: b } ] } ]\n")
	out, _ := exec.Command(binary, "check", bad).CombinedOutput()
	for _, want := range []string{bad + ":1:", bad + ":2:"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no problem at %s in:\n%s", want, out)
		}
	}
	if out, err := exec.Command(binary, "check", "../examples/minimal.yaml").CombinedOutput(); err != nil {
		t.Errorf("examples/minimal.yaml: %v\n%s", err, out)
	}
}
