package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/proctest"
)

// proxy is one that is measured. Its processes run until the test ends.
type proxy struct {
	name  string
	addr  string
	admin string // of Pacer: its admin port
	pids  []int  // empty = there is none: the backend itself
}

// roles are what the test's own binary is when it is told so, as a process whose
// CPU can be counted alone.
var roles = map[string]func() error{"backend": serveBackend, "control": serveControl}

const roleVariable = "PACER_BENCH_ROLE"

func TestMain(m *testing.M) {
	if role := roles[os.Getenv(roleVariable)]; role != nil {
		if err := role(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	proctest.Main(m)
}

// serveControl is F: the least that a proxy in Go can do without cutting streams.
func serveControl() error {
	to, err := url.Parse("http://" + os.Args[1])
	if err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 4096, DisableCompression: true, IdleConnTimeout: 4 * time.Second}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1, Transport: transport}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("ready", l.Addr())
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
}

// startRole starts the test's own binary as role and returns its address.
func startRole(t *testing.T, role string, args ...string) (addr string, pid int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	run(t, cmd)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v", role, err)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "ready ")), cmd.Process.Pid
}

// run starts cmd, which ends with the test.
func run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
}

// proxies starts all that are installed, in front of backend.
func proxies(t *testing.T, backend string) []*proxy {
	t.Helper()
	all := []*proxy{{name: "none", addr: backend}}
	addr, pid := startRole(t, "control", backend)
	all = append(all, &proxy{name: "F", addr: addr, pids: []int{pid}})
	all = append(all, startPacer(t, "Pacer", "", "relay: goroutines", backend))
	if runtime.GOOS == "linux" {
		all = append(all, startPacer(t, "Pacer, loops", "", "relay: loop", backend))
	}
	if *against != "" {
		all = append(all, startPacer(t, "Pacer before", *against, "", backend))
	}
	for _, other := range []struct {
		name  string
		start func(t *testing.T, backend string) *proxy
	}{{"haproxy", startHAProxy}, {"nginx", startNginx}} {
		if _, err := exec.LookPath(other.name); err != nil {
			t.Logf("%s is not installed, and left out", other.name)
			continue
		}
		all = append(all, other.start(t, backend))
	}
	wanted, err := regexp.Compile(*who)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(p *proxy) bool { return p.name != "F" && !wanted.MatchString(p.name) })
}

// adminToken opens the admin port, which profiles are taken at.
const adminToken = "the-token-of-the-benchmark"

// startPacer starts Pacer as it is used: with floors, metering, metrics and the
// access log, whose reader throws it away. program = "" is the one that is built
// here.
func startPacer(t *testing.T, name, program, setting, backend string) *proxy {
	t.Helper()
	p := proctest.Run(t, proctest.Options{Program: program}, "serve", "-c", proctest.Write(t, fmt.Sprintf(`listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0, pprof: true, token: `+adminToken+` }
backends:
  - { name: gpu, url: "http://%s/v1", health_url: off, prior: { 1: 20, 64: 20, 1024: 20, 8192: 20 } }
routes:
  - { model: chat, targets: [ { backend: gpu } ], slo: { min_tps: 0.01 } }
%s
`, backend, setting)))
	_, data, _ := strings.Cut(p.Ready["data"], "://")
	return &proxy{name: name, addr: data, admin: p.Ready["admin"], pids: []int{p.PID()}}
}

// ask returns what the admin port of p answers.
func (p *proxy) ask(t *testing.T, path string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.admin+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+adminToken)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", path, resp.Status, err, b)
	}
	return b
}

// startHAProxy starts HAProxy as its manual has it for streams: nothing is
// buffered, connections to the backend are kept.
func startHAProxy(t *testing.T, backend string) *proxy {
	t.Helper()
	addr := freeAddress(t)
	conf := fmt.Sprintf(`global
  maxconn 9000
defaults
  mode http
  timeout connect 5s
  timeout client 10m
  timeout server 10m
  option http-no-delay
frontend in
  bind %s
  default_backend out
backend out
  http-reuse always
  server gpu %s pool-max-conn 4096 pool-purge-delay 4s
`, addr, backend)
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("haproxy", "-db", "-q", "-f", file)
	run(t, cmd)
	await(t, addr)
	return &proxy{name: "HAProxy", addr: addr, pids: []int{cmd.Process.Pid}}
}

func startNginx(t *testing.T, backend string) *proxy {
	t.Helper()
	addr, dir := freeAddress(t), t.TempDir()
	conf := fmt.Sprintf(`daemon off; error_log %[1]s/error.log crit; pid %[1]s/pid; worker_processes auto;
events { worker_connections 8000; }
http {
  access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  keepalive_requests 1000000;
  upstream gpu { server %[3]s; keepalive 2048; keepalive_requests 1000000; keepalive_timeout 4s; }
  server { listen %[2]s backlog=4096; location / { proxy_pass http://gpu; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_read_timeout 10m; } }
}
`, dir, addr, backend)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("nginx", "-c", file, "-e", filepath.Join(dir, "error.log"))
	run(t, cmd)
	await(t, addr)
	return &proxy{name: "nginx", addr: addr, pids: children(cmd.Process.Pid)}
}

// freeAddress is one that nobody listened at a moment ago: those programs cannot
// be told to say which port they took.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// await returns when somebody listens at addr.
func await(t *testing.T, addr string) {
	t.Helper()
	proctest.Until(t, "the proxy listens at "+addr, func() bool {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		c.Close()
		return true
	})
}

// children returns pid and the processes that it started.
func children(pid int) []int {
	pids := []int{pid}
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, f := range strings.Fields(string(b)) {
		if n, err := strconv.Atoi(f); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

// tick is how long one of the system's ticks is: USER_HZ, which Linux has told
// programs as 100 on every architecture that Go runs on.
const tick = 10 * time.Millisecond

// cpu is what the proxy's processes have used, of user and system time.
func (p *proxy) cpu(t *testing.T) time.Duration {
	t.Helper()
	var sum time.Duration
	for _, pid := range p.pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		// Fields 14 and 15, counted behind the name in parentheses, which is 2.
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		user, _ := strconv.Atoi(f[11])
		system, _ := strconv.Atoi(f[12])
		sum += time.Duration(user+system) * tick
	}
	return sum
}

// memory is what the proxy's processes have resident and is no file's, in bytes.
func (p *proxy) memory(t *testing.T) int64 {
	t.Helper()
	var sum int64
	for _, pid := range p.pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		_, rest, _ := strings.Cut(string(b), "RssAnon:")
		if f := strings.Fields(rest); len(f) > 0 {
			kib, _ := strconv.ParseInt(f[0], 10, 64)
			sum += kib << 10
		}
	}
	return sum
}
