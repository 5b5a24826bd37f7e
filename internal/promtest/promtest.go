// Package promtest runs a real Prometheus and its promtool for a test. Both come
// from Debian's package: deploy/test-deps.sh installs them.
package promtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// patience bounds what a server or a scrape may take, on a busy machine too.
const patience = 30 * time.Second

// Tool runs promtool with args in dir, with input on its stdin, and returns what
// it says and whether it found nothing wrong. It skips the test when promtool is
// not installed, and fails it when CI is set.
func Tool(t testing.TB, dir, input string, args ...string) (said string, ok bool) {
	t.Helper()
	cmd := exec.Command(find(t, "promtool"), args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// find returns the path of a program of Prometheus.
func find(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s not installed: run make deps", name)
	}
	t.Skipf("%s not installed: run make deps", name)
	return ""
}

// Server is a Prometheus that runs.
type Server struct {
	t    testing.TB
	base string
}

var listening = regexp.MustCompile(`Listening on.* address=([\d.]+:\d+)`)

// Scrape starts a Prometheus that scrapes url each second, with native histograms
// and exemplars. The test ends it.
func Scrape(t testing.TB, url string) *Server {
	t.Helper()
	dir := t.TempDir()
	host, path := strings.TrimPrefix(url, "http://"), "/"
	if i := strings.IndexByte(host, '/'); i >= 0 {
		host, path = host[:i], host[i:]
	}
	conf := fmt.Sprintf("global: { scrape_interval: 1s }\nscrape_configs:\n  - { job_name: pacer, metrics_path: %s, static_configs: [ { targets: [ %q ] } ] }\n", path, host)
	must.Do(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(conf), 0o600))
	return Start(t, "--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"),
		"--web.listen-address", "127.0.0.1:0", "--enable-feature", "native-histograms,exemplar-storage")
}

// Start starts a Prometheus with these flags, which name a free port. The test ends it.
func Start(t testing.TB, flags ...string) *Server {
	t.Helper()
	cmd := exec.Command(find(t, "prometheus"), flags...)
	out := must.Get(cmd.StderrPipe())(t)
	must.Do(t, cmd.Start())
	address, done := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if found := listening.FindStringSubmatch(lines.Text()); found != nil {
				address <- found[1]
			}
		}
		_ = cmd.Wait() // killed, as it should be
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
	})
	select {
	case a := <-address:
		return &Server{t: t, base: "http://" + a}
	case <-done:
		t.Fatal("prometheus ended at once")
	case <-time.After(patience):
		t.Fatalf("prometheus was not ready within %v", patience)
	}
	return nil
}

// Query asks for path, which is below /api/v1/, until good says that data is what
// it waits for.
func (s *Server) Query(path string, values url.Values, good func(data json.RawMessage) bool) {
	s.t.Helper()
	var last []byte
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		resp, err := http.Get(s.base + "/api/v1/" + path + "?" + values.Encode())
		if err != nil {
			continue // not up yet
		}
		var answer struct{ Data json.RawMessage }
		err = json.NewDecoder(resp.Body).Decode(&answer)
		resp.Body.Close()
		if last = answer.Data; err == nil && resp.StatusCode == http.StatusOK && good(answer.Data) {
			return
		}
	}
	s.t.Fatalf("%s?%s: after %v still %.500s", path, values.Encode(), patience, last)
}
