package bench

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
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

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// proxy is one that is measured. Its processes run until the test ends.
type proxy struct {
	name  string
	addr  string
	admin string // of Pacer: its admin port
	pids  []int  // empty = there is none: the backend itself
	ca    *x509.CertPool
	over  wiring
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

// serveControl is F: the least that a proxy in Go can do without cutting streams. Its
// arguments are the backend's URL, the certificate of the backend's authority, and, for
// TLS in front, a certificate and its key.
func serveControl() error {
	to, err := url.Parse(os.Args[1])
	if err != nil {
		return err
	}
	authority, err := authorityOf(os.Args[2])
	if err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 4096, DisableCompression: true, IdleConnTimeout: 4 * time.Second, TLSClientConfig: &tls.Config{RootCAs: authority}}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1, Transport: transport}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("ready", l.Addr())
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	})}
	if len(os.Args) > 3 {
		return s.ServeTLS(l, os.Args[3], os.Args[4])
	}
	return s.Serve(l)
}

// authorityOf returns the pool that trusts the certificate in file.
func authorityOf(file string) (*x509.CertPool, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return pool, nil
}

// startRole starts the test's own binary as role and returns its address.
func startRole(t *testing.T, role string, args ...string) (addr string, pid int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	out, err := cmd.StdoutPipe()
	must.Do(t, err)
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
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
}

// place is a backend, and what reaches it and the proxies in front of it.
type place struct {
	backend   string // its address
	over      wiring
	tps       float64 // what its streams have, and Pacer's prior says
	fleet     fleet   // of Pacer's configuration
	cert, key string  // files
	ca        *x509.CertPool
}

// usualTPS is the speed of most paced streams.
const usualTPS = 20

// newPlace starts a backend that is reached as over says, and whose streams have so
// many tokens per second: Pacer would refuse streams on one that is far slower than
// its prior.
func newPlace(t *testing.T, over wiring, tps float64) *place {
	t.Helper()
	at := &place{over: over, tps: tps}
	at.cert, at.key = proctest.Certificate(t)
	var err error
	if at.ca, err = authorityOf(at.cert); err != nil {
		t.Fatal(err)
	}
	var args []string
	if over.back {
		args = []string{at.cert, at.key}
	}
	at.backend, _ = startRole(t, "backend", args...)
	return at
}

// url is where proxies reach the backend.
func (at *place) url() string {
	if at.over.back {
		return "https://" + at.backend
	}
	return "http://" + at.backend
}

// proxies starts all that are installed; with TLS anywhere those in Go alone.
func (at *place) proxies(t *testing.T) []*proxy {
	t.Helper()
	args := []string{at.url(), at.cert}
	if at.over.front != frontPlain {
		args = append(args, at.cert, at.key)
	}
	addr, pid := startRole(t, "control", args...)
	all := []*proxy{{name: "F", addr: addr, pids: []int{pid}, ca: at.ca, over: at.over}}
	all = append(all, at.startPacer(t, "Pacer", "", ""))
	if at.over == (wiring{}) && runtime.GOOS == "linux" {
		all = append(all, at.startPacer(t, "Pacer, goroutines", "", "relay: goroutines"))
	}
	if *against != "" {
		all = append(all, at.startPacer(t, "Pacer before", *against, *setting))
	}
	if at.over == (wiring{}) {
		all = append([]*proxy{{name: "none", addr: at.backend}}, all...)
		all = append(all, at.others(t)...)
	}
	wanted := must.Get(regexp.Compile(*who))(t)
	return slices.DeleteFunc(all, func(p *proxy) bool { return p.name != "F" && !wanted.MatchString(p.name) })
}

// others starts those that are not in Go.
func (at *place) others(t *testing.T) (all []*proxy) {
	t.Helper()
	for _, other := range []struct {
		name  string
		start func(t *testing.T, backend string) *proxy
	}{{"haproxy", startHAProxy}, {"nginx", startNginx}} {
		if _, err := exec.LookPath(other.name); err != nil {
			t.Logf("%s is not installed, and left out", other.name)
			continue
		}
		all = append(all, other.start(t, at.backend))
	}
	return all
}

// adminToken opens the admin port, which profiles are taken at.
const adminToken = "the-token-of-the-benchmark"

// fleet is how much there is in a configuration. The zero value is one of each, and no
// keys.
type fleet struct{ targets, routes, keys int }

// aKey is the text of the first key.
const aKey = "key-0"

// configuration is Pacer as it is used: with floors, metering, metrics and the access
// log. All backends are the one at that place.
func (at *place) configuration(f fleet, setting string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0, pprof: true, token: %s }\n", adminToken)
	if at.over.front != frontPlain {
		fmt.Fprintf(&b, "tls: { cert: %q, key: %q }\n", at.cert, at.key)
	}
	var targets []string
	b.WriteString("backends:\n")
	for i := range max(f.targets, 1) {
		targets = append(targets, fmt.Sprintf("{ backend: gpu-%d }", i))
		fmt.Fprintf(&b, "  - { name: gpu-%d, url: \"%s/%d/v1\", ca_file: %q, health_url: off, prior: { 1: %[5]g, 64: %[5]g, 1024: %[5]g, 8192: %[5]g } }\n", i, at.url(), i, at.cert, at.tps)
	}
	b.WriteString("routes:\n")
	for i := range max(f.routes, 1) {
		model := "chat"
		if i > 0 {
			model += strconv.Itoa(i)
		}
		fmt.Fprintf(&b, "  - { model: %s, targets: [ %s ], slo: { min_tps: 0.01 } }\n", model, strings.Join(targets, ", "))
	}
	if f.keys > 0 {
		b.WriteString("keys:\n")
		for i := range f.keys {
			fmt.Fprintf(&b, "  - { name: k%d, key_sha256: %x }\n", i, sha256.Sum256(fmt.Appendf(nil, "key-%d", i)))
		}
	}
	fmt.Fprintln(&b, setting)
	return b.String()
}

// startPacer starts Pacer, whose log nobody reads. program = "" is the one that is
// built here.
func (at *place) startPacer(t *testing.T, name, program, setting string) *proxy {
	t.Helper()
	return at.startWith(t, name, program, at.configuration(at.fleet, setting))
}

func (at *place) startWith(t *testing.T, name, program, configuration string) *proxy {
	t.Helper()
	p := proctest.Run(t, proctest.Options{Program: program}, "serve", "-c", proctest.Write(t, configuration))
	_, data, _ := strings.Cut(p.Ready["data"], "://")
	return &proxy{name: name, addr: data, admin: p.Ready["admin"], pids: []int{p.PID()}, ca: at.ca, over: at.over}
}

// ask returns what the admin port of p answers.
func (p *proxy) ask(t *testing.T, path string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.admin+path, nil)
	must.Do(t, err)
	r.Header.Set("Authorization", "Bearer "+adminToken)
	resp, err := http.DefaultClient.Do(r)
	must.Do(t, err)
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
  maxconn 9950
defaults
  mode http
  timeout connect 5s
  timeout client 10m
  timeout server 10m
  option http-no-delay
  option abortonclose
frontend in
  bind %s
  default_backend out
backend out
  http-reuse always
  server gpu %s pool-max-conn 4096 pool-purge-delay 4s
`, addr, backend)
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	must.Do(t, os.WriteFile(file, []byte(conf), 0o600))
	cmd := exec.Command("haproxy", "-db", "-q", "-f", file)
	run(t, cmd)
	await(t, addr)
	return &proxy{name: "HAProxy", addr: addr, pids: []int{cmd.Process.Pid}}
}

func startNginx(t *testing.T, backend string) *proxy {
	t.Helper()
	addr, dir := freeAddress(t), t.TempDir()
	conf := fmt.Sprintf(`daemon off; error_log %[1]s/error.log crit; pid %[1]s/pid; worker_processes auto;
events { worker_connections 10000; }
http {
  access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  keepalive_requests 1000000;
  upstream gpu { server %[3]s; keepalive 2048; keepalive_requests 1000000; keepalive_timeout 4s; }
  server { listen %[2]s backlog=4096; location / { proxy_pass http://gpu; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_read_timeout 10m; } }
}
`, dir, addr, backend)
	file := filepath.Join(dir, "nginx.conf")
	must.Do(t, os.WriteFile(file, []byte(conf), 0o600))
	cmd := exec.Command("nginx", "-c", file, "-e", filepath.Join(dir, "error.log"))
	run(t, cmd)
	await(t, addr)
	return &proxy{name: "nginx", addr: addr, pids: children(cmd.Process.Pid)}
}

// freeAddress is one that nobody listened at a moment ago: those programs cannot
// be told to say which port they took.
func freeAddress(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
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
