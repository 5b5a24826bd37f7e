package e2e

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// Most of these tests wait for processes, and go side by side. Those that give both
// cores work, or measure, do not.
func TestMain(m *testing.M) {
	flag.Parse()
	beside := "6"
	if *long {
		beside = "1"
	}
	_ = flag.Set("test.parallel", beside)
	proctest.Main(m)
}

// Built by the Go tool alone, as by go install, the program says which commit it
// is of.
func TestThePlainBuildKnowsItsCommit(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(proctest.Binary(t), "version").Output()
	if words := strings.Fields(string(out)); err != nil || len(words) < 4 || words[0] != "pacer" {
		t.Errorf("%q (%v), want a version", out, err)
	}
	commit, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err == nil && !strings.Contains(string(out), strings.TrimSpace(string(commit))) {
		t.Errorf("%q, want the commit %s", out, commit)
	}
}

func gatewayConfig(t *testing.T, backendURL, more string) string {
	return proctest.Write(t, fmt.Sprintf(`listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
backends: [ { name: a, url: %q, kind: vllm } ]
routes: [ { model: chat, targets: [ { backend: a, model: llama-3.1-70b } ] } ]
%s`, backendURL+"/v1", more))
}

func client(p *proctest.Process) *loadgen.Client {
	return &loadgen.Client{BaseURL: p.Ready["data"] + "/v1", HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
}

// target is the only one of a gateway.
func target(t *testing.T, p *proctest.Process) api.Target {
	t.Helper()
	targets := proctest.JSON[api.Profiles](t, p.Ready["admin"]+"/api/v1/profiles").Targets
	if len(targets) != 1 {
		t.Fatalf("got %d targets, want the one configured", len(targets))
	}
	return targets[0]
}

// learned is what the curves rest on, in tokens.
func learned(t *testing.T, p *proctest.Process) float64 {
	t.Helper()
	return float64(target(t, p).TokensSeen)
}

// most is what so many streams of load teach at least. On a busy machine tokens
// arrive in lumps and writes block, and what did is no evidence.
func most(streams int) float64 { return 0.5 * float64(streams) * (perStream - 1) }

// perStream is how many tokens a stream of load has.
const perStream = 80

// load streams requests from a few users at once.
func load(t *testing.T, p *proctest.Process, users, each int) {
	t.Helper()
	c := client(p)
	var wg sync.WaitGroup
	for range users {
		wg.Go(func() {
			for range each {
				r := c.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 100, MaxTokens: perStream})
				if r.Outcome != loadgen.Done || r.Tokens != perStream {
					t.Errorf("got %v with %d tokens (%v), want done with %d", r.Outcome, r.Tokens, r.Err, perStream)
				}
			}
		})
	}
	wg.Wait()
}

// The main job by its processes: an engine, a gateway, clients; curves, routes
// and metrics tell what happened; both end with 0 on SIGTERM.
func TestServe(t *testing.T) {
	t.Parallel()
	engine := proctest.Start(t, nil, "sim", "--listen", "127.0.0.1:0", "--preset", "llama-3.1-70b/h200/vllm", "--speed", "5")
	if engine.Ready["model"] != "llama-3.1-70b" {
		t.Errorf("ready line says model=%s, want llama-3.1-70b", engine.Ready["model"])
	}
	gateway := proctest.Start(t, nil, "serve", "-c", gatewayConfig(t, engine.Ready["url"], ""))
	load(t, gateway, 8, 3)

	proctest.Until(t, "the streams learned", func() bool { return learned(t, gateway) >= most(8*3) })
	if !strings.Contains(string(proctest.Get(t, gateway.Ready["admin"]+"/metrics")), `pacer_requests_total{backend="a",class="interactive",outcome="ok",route="chat"} 24`) {
		t.Error("metrics do not count 24 requests on route chat")
	}
	if routes := proctest.JSON[api.Routes](t, gateway.Ready["admin"]+"/api/v1/routes").Routes; len(routes) != 1 || routes[0].Offered != 24 || routes[0].Failed != 0 {
		t.Errorf("routes say %+v, want 24 offered, 0 failed", routes)
	}
	proctest.Get(t, gateway.Ready["data"]+"/readyz")
	if !strings.Contains(string(proctest.Get(t, gateway.Ready["admin"]+"/")), "<html") {
		t.Error("no page on the admin port")
	}
	if code := gateway.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("gateway ended with %d, want 0:\n%s", code, gateway.Log())
	}
	if code := engine.Stop(syscall.SIGINT); code != 0 {
		t.Errorf("engine ended with %d, want 0:\n%s", code, engine.Log())
	}
}

// Without a file, OPENAI_BASE_URL is enough.
func TestServeFromTheEnvironment(t *testing.T) {
	t.Parallel()
	engine := proctest.Start(t, nil, "sim", "--listen", "127.0.0.1:0", "--preset", "llama-3.1-70b/h200/vllm", "--model", "chat", "--speed", "5")
	gateway := proctest.Start(t, []string{"OPENAI_BASE_URL=" + engine.Ready["url"] + "/v1", "OPENAI_API_KEY=sk-none"},
		"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	load(t, gateway, 2, 1)
	if strings.Contains(gateway.Log(), "sk-none") {
		t.Error("the key is in the log")
	}
}

// A stream that runs when SIGTERM comes is finished, not cut.
func TestSIGTERMLetsStreamsFinish(t *testing.T) {
	t.Parallel()
	engine := proctest.Start(t, nil, "sim", "--listen", "127.0.0.1:0", "--preset", "llama-3.1-70b/h200/vllm")
	gateway := proctest.Start(t, nil, "serve", "-c", gatewayConfig(t, engine.Ready["url"], ""))
	resp, err := http.Post(gateway.Ready["data"]+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"chat","stream":true,"max_tokens":100,"messages":[{"role":"user","content":"hello"}]}`))
	must.Do(t, err)
	defer resp.Body.Close()
	answer := bufio.NewReader(resp.Body)
	begun := must.Get(answer.ReadString('\n'))(t) // it runs
	exit := make(chan int)
	go func() { exit <- gateway.Stop(syscall.SIGTERM) }()
	rest, err := io.ReadAll(answer)
	code, tokens := <-exit, strings.Count(begun+string(rest), `"content":"`)
	if err != nil || tokens < 100 || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") || code != 0 {
		t.Errorf("got %d tokens (%v), exit %d; want the whole stream of 100 and 0", tokens, err, code)
	}
}

func TestBadUsageEndsWith2(t *testing.T) {
	t.Parallel()
	bad := proctest.Write(t, "backends: [ { name: a, url: \"ftp://x\" } ]\nroutes: [ { model: chat, targets: [ { backend: b } ] } ]\n")
	for _, args := range [][]string{
		{"serve", "-c", bad},
		{"serve", "-c", "/nowhere.yaml"},
		{"check", bad},
		{"serve", "--nonsense"},
		{"check"},
		{"sim", "--preset", "no-such-model"},
		{"nonsense"},
	} {
		cmd := exec.Command(proctest.Binary(t), args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		err := cmd.Run()
		if cmd.ProcessState.ExitCode() != 2 || stderr.Len() == 0 {
			t.Errorf("pacer %v: %v, stderr %q; want exit code 2 and a message", args, err, stderr.String())
		}
	}
}
