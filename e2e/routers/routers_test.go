package routers

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/sim"
)

var (
	kept  = flag.String("routers", "", "folder where the installed routers are kept between runs; without it nothing is tested")
	table = flag.String("table", "", "file to write the table of docs/WARM.md to; empty = no table")
)

func TestMain(m *testing.M) { proctest.Main(m) }

const (
	model   = "deepseek-r1"
	engines = 4
	floor   = 30.0 // tokens/s
	grace   = time.Second
	length  = 2 * time.Minute

	installTimeout = 10 * time.Minute
	startTimeout   = time.Minute
)

// other is a router of the field.
type other struct {
	name, version string // on PyPI
	command       []string
}

var others = []other{
	{"vllm-router", "0.1.17", []string{"vllm-router"}},
	{"sglang-router", "0.3.2", []string{"sglang-router", "launch"}},
}

// install puts it into a virtual environment of its own and returns its folder of
// programs.
func (o *other) install(t *testing.T) string {
	t.Helper()
	venv := must.Get(filepath.Abs(filepath.Join(*kept, o.name)))(t)
	ctx, cancel := context.WithTimeout(t.Context(), installTimeout)
	defer cancel()
	for _, args := range [][]string{
		{"python3", "-m", "venv", venv},
		{filepath.Join(venv, "bin", "python"), "-m", "pip", "install", "-q", "--no-cache-dir", "--only-binary", ":all:", o.name + "==" + o.version},
	} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	return filepath.Join(venv, "bin")
}

// freePort is one that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// start runs the router before the engines with its cache-aware policy, as it comes,
// and returns its URL.
func (o *other) start(t *testing.T, urls []string) string {
	t.Helper()
	bin, port := o.install(t), freePort(t)
	args := append([]string{}, o.command[1:]...)
	args = append(args, "--host", "127.0.0.1", "--port", port, "--prometheus-port", freePort(t), "--policy", "cache_aware", "--worker-urls")
	cmd := exec.Command(filepath.Join(bin, o.command[0]), append(args, urls...)...)
	log := must.Get(os.Create(filepath.Join(t.TempDir(), "router.log")))(t)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		log.Close()
	})
	url := "http://127.0.0.1:" + port
	for until := time.Now().Add(startTimeout); ; time.Sleep(200 * time.Millisecond) {
		resp, err := http.Get(url + "/v1/models")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return url
			}
		}
		if time.Now().After(until) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("%s is not there within %v: %v\n%s", o.name, startTimeout, err, text)
		}
	}
}

// fleet starts engines with prefix caches.
func fleet(t *testing.T) (urls []string) {
	t.Helper()
	for i := range engines {
		p := proctest.Engine(t, "--preset", model+"/h200/sglang", "--kv-tokens", "400000", "--prefix-block", "16", "--seed", strconv.Itoa(i+1))
		urls = append(urls, p.Ready["url"])
	}
	return urls
}

// hits is the share of the prompt tokens that the engines found in their caches, and
// most how many of the prompt tokens one of them had.
func hits(t *testing.T, urls []string) (share, most float64) {
	t.Helper()
	prompt, cached, top := 0, 0, 0
	for _, url := range urls {
		cache := proctest.JSON[sim.Truth](t, url+"/sim/truth").Cache
		prompt, cached, top = prompt+cache.Prompt, cached+cache.Cached, max(top, cache.Prompt)
	}
	return float64(cached) / float64(prompt), float64(top) / float64(prompt)
}

// pacer starts the gateway before the engines.
func pacer(t *testing.T, urls []string, affinity string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nbackends:\n")
	targets := []string{}
	for i, url := range urls {
		fmt.Fprintf(&b, "  - { name: e%d, url: %s/v1, kind: vllm }\n", i, url)
		targets = append(targets, fmt.Sprintf("{ backend: e%d, model: %s }", i, model))
	}
	fmt.Fprintf(&b, "routes: [ { model: %s, affinity: %s, slo: { min_tps: %v }, targets: [ %s ] } ]\n", model, affinity, floor, strings.Join(targets, ", "))
	return proctest.Gateway(t, b.String()).Ready["data"]
}

// One load of chats, live, through each of them, before engines that are started anew.
func TestChatsLiveThroughEachRouter(t *testing.T) {
	if *kept == "" {
		t.Skip("make routers runs this: it installs the routers of vLLM and SGLang, and takes 30 minutes")
	}
	var rows strings.Builder
	rows.WriteString("| requests/s | router | met | missed of served | refused | from a cache | busiest engine | TTFT p50 | p99 |\n|---|---|---|---|---|---|---|---|---|\n")
	row := func(t *testing.T, rate float64, name string, urls []string, url string) (met, share float64) {
		y := play(t, url, "chats", rate)
		share, most := hits(t, urls)
		met = float64(y.met) / float64(y.offered)
		fmt.Fprintf(&rows, "| %g | %s | %.1f %% | %.1f %% | %d of %d | %.1f %% | %.0f %% | %.2f s | %.2f s |\n", rate, name,
			100*met, 100*float64(y.below)/float64(max(y.served, 1)), len(y.failed), y.offered, 100*share, 100*most, y.quantile(0.5), y.quantile(0.99))
		return met, share
	}
	for _, rate := range []float64{8, 14, 18} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			var met, share float64
			t.Run("pacer", func(t *testing.T) {
				urls := fleet(t)
				met, share = row(t, rate, "Pacer", urls, pacer(t, urls, "auto"))
			})
			t.Run("off", func(t *testing.T) {
				urls := fleet(t)
				off, cold := row(t, rate, "Pacer, affinity off", urls, pacer(t, urls, `"off"`))
				if share < cold+0.05 || met < off-0.01 {
					t.Errorf("with affinity %.1f %% met and %.1f %% from a cache, without it %.1f and %.1f", 100*met, 100*share, 100*off, 100*cold)
				}
			})
			for _, o := range others {
				t.Run(o.name, func(t *testing.T) {
					urls := fleet(t)
					if theirs, _ := row(t, rate, o.name+" "+o.version+", cache_aware", urls, o.start(t, urls)); met < theirs-0.02 {
						t.Errorf("Pacer met %.1f %%, %s %.1f", 100*met, o.name, 100*theirs)
					}
				})
			}
		})
	}
	t.Log("\n" + rows.String())
	if *table != "" {
		must.Do(t, os.WriteFile(*table, []byte(rows.String()), 0o644))
	}
}
