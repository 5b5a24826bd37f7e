package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

// trouble is what goes wrong in TestCausesOfAProcess, each on a route and a
// backend of its own.
type trouble struct {
	of, name   string // whose cause it is
	kind, says string
}

var troubles = []trouble{
	{"backend", "drifts", "slower", `^slower than learned ×0\.\d+ since`},
	{"backend", "dead", "backend_down", `^backend down: connection refused since`},
	{"route", "dead", "backend_down", `^backend down: connection refused since`},
	{"backend", "model", "upstream_model", `^upstream 404: model "nope" not found since`},
	{"backend", "key", "upstream_credentials", `^credentials refused: upstream 401 since`},
	{"route", "full", "overload", `^load above capacity`},
	{"route", "high", "floor_unattainable", `^floor above what any engine gives alone \([0-9.]+ of 5000\) since`},
	{"gateway", "", "store_down", `^store down: .* since`},
}

// standing is every cause there is, by whose it is.
func standing(t *testing.T, gateway *proctest.Process) map[string]api.Standing {
	t.Helper()
	out := map[string]api.Standing{}
	for _, c := range proctest.JSON[api.Routes](t, gateway.Ready["admin"]+"/api/v1/routes?window=5m").Verdict.Causes {
		out[c.Of+" "+c.Name] = c
	}
	return out
}

func setFault(t *testing.T, engine *proctest.Process, body string) {
	t.Helper()
	resp := must.Get(http.Post(engine.Ready["url"]+"/sim/set", "application/json", strings.NewReader(body)))(t)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("set %s: %s", body, resp.Status)
	}
}

// The built program before engines that all go wrong at once, each in its own way,
// and Redis with them: every cause is told, with since when, in the API, in the log
// with two lines, and on the timeline; and all of it is over when it was mended. A
// restart knows the timeline.
func TestCausesOfAProcess(t *testing.T) {
	t.Parallel()
	const preset = "llama-3.1-70b/h200/vllm"
	port, deadPort := redistest.FreePort(t), redistest.FreePort(t)
	redis := redistest.Start(t, "--bind", "127.0.0.1", "--port", port)
	engines := map[string]*proctest.Process{}
	for _, name := range []string{"drifts", "model", "key", "full"} {
		engines[name] = proctest.Engine(t, "--preset", preset)
	}
	startDead := func() *proctest.Process {
		return proctest.Start(t, nil, "sim", "--listen", "127.0.0.1:"+deadPort, "--preset", preset)
	}
	dead := startDead()
	file, state := proctest.Write(t, ""), filepath.Join(t.TempDir(), "state")
	put := func(model, high, full string) {
		var b strings.Builder
		fmt.Fprintf(&b, "listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nlog: { format: text }\nstate_dir: %s\nstore: redis://127.0.0.1:%s/0\nbackends:\n", state, port)
		for name, engine := range engines {
			fmt.Fprintf(&b, "  - { name: %s, url: %q, kind: vllm, prior: %s }\n", name, engine.Ready["url"]+"/v1", preset)
		}
		fmt.Fprintf(&b, "  - { name: dead, url: \"http://127.0.0.1:%s/v1\", kind: vllm, prior: %s }\nroutes:\n", deadPort, preset)
		for _, r := range []struct{ name, backend, model, floor string }{
			{"drifts", "drifts", "llama-3.1-70b", "5"},
			{"dead", "dead", "llama-3.1-70b", "5"},
			{"model", "model", model, "5"},
			{"key", "key", "llama-3.1-70b", "5"},
			{"full", "full", "llama-3.1-70b", full},
			{"high", "model", "llama-3.1-70b", high},
		} {
			fmt.Fprintf(&b, "  - { model: %s, slo: { min_tps: %s }, on_infeasible: [ shed ], targets: [ { backend: %s, model: %s } ] }\n", r.name, r.floor, r.backend, r.model)
		}
		must.Do(t, os.WriteFile(file, []byte(b.String()), 0o600))
	}
	put("llama-3.1-70b", "5", "5")
	gateway := proctest.Start(t, nil, "serve", "-c", file)
	crowd := func(model string, users int) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		c := client(gateway)
		for range users {
			all.Go(func() {
				for ctx.Err() == nil {
					if r := c.Stream(ctx, loadgen.Request{Model: model, PromptTokens: 20, MaxTokens: 60}); r.Outcome != loadgen.Done {
						select {
						case <-time.After(300 * time.Millisecond):
						case <-ctx.Done():
						}
					}
				}
			})
		}
		return func() { cancel(); all.Wait() }
	}
	var leave []func()
	for name, users := range map[string]int{"drifts": 6, "dead": 2, "model": 2, "key": 2, "full": 2} {
		leave = append(leave, sync.OnceFunc(crowd(name, users)))
	}
	defer func() {
		for _, stop := range leave {
			stop()
		}
	}()
	proctest.Until(t, "streams on every route, and none of the causes", func() bool {
		routes := proctest.JSON[api.Routes](t, gateway.Ready["admin"]+"/api/v1/routes?window=5m")
		served := 0
		for _, r := range routes.Routes {
			if r.Met >= 4 {
				served++
			}
		}
		return served == 5 && routes.Verdict.State == "ok"
	})

	setFault(t, engines["drifts"], `{"drift":2.5}`)
	setFault(t, engines["key"], `{"status":401}`)
	dead.Stop(syscall.SIGKILL)
	redis.Kill()
	put("nope", "5000", "50")
	endBurst, endHigh := crowd("full", 150), crowd("high", 1)
	for _, x := range troubles {
		var c api.Standing
		proctest.Until(t, x.of+" "+x.name+" has a cause of kind "+x.kind, func() bool {
			found, ok := standing(t, gateway)[x.of+" "+x.name]
			c = found
			return ok && *c.Kind == x.kind
		})
		if series := fmt.Sprintf("pacer_%s_cause{", x.of); x.of != "gateway" {
			page := string(proctest.Get(t, gateway.Ready["admin"]+"/metrics"))
			if proctest.Sum(page, series) < 1 || !strings.Contains(page, fmt.Sprintf(`cause=%q`, x.kind)) {
				t.Errorf("the metrics have no %s of kind %s", series, x.kind)
			}
		}
		if !regexp.MustCompile(x.says).MatchString(*c.Cause.Cause) || c.Since == nil || c.Advice == nil {
			t.Errorf("%s %s: %q, want %s", x.of, x.name, *c.Cause.Cause, x.says)
		}
	}
	endBurst()
	endHigh()
	setFault(t, engines["drifts"], `{"drift":1}`)
	setFault(t, engines["key"], `{"status":0}`)
	startDead()
	redis.Restart()
	put("llama-3.1-70b", "5", "5")
	// On a machine whose cores are taken an engine is slower for a while in truth, and
	// its cause comes and goes once more. So nobody is there when the lines are counted.
	well := func() {
		for end := time.Now().Add(4 * time.Minute); ; <-time.After(200 * time.Millisecond) {
			left := standing(t, gateway)
			if len(left) == 0 {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("what was mended still has causes: %+v", left)
			}
		}
	}
	well()
	for _, stop := range leave {
		stop()
	}
	well()
	for _, x := range troubles {
		if n := linesOf(gateway.Log(), x); n < 2 || n > 6 || n%2 != 0 {
			t.Errorf("%s %s: %d lines say %s, want two:\n%s", x.of, x.name, n, x.kind, regexp.MustCompile(`(?m)^.*cause=.*$`).FindAllString(gateway.Log(), -1))
		}
	}
	read := time.Now()
	marks := timeline(t, gateway)
	for _, m := range marks {
		if m.Ended == nil {
			t.Errorf("a mark is open: %+v", m)
		}
	}

	if code := gateway.Stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("ended with %d:\n%s", code, gateway.Log())
	}
	gateway = proctest.Start(t, nil, "serve", "-c", file)
	sameMarks(t, marks, timeline(t, gateway), read)
	if proctest.JSON[api.Routes](t, gateway.Ready["admin"]+"/api/v1/routes?window=1h").Routes[0].Offered == 0 {
		t.Error("after a restart the last hour has no requests")
	}
}

// linesOf counts the lines of a log that say that x begins or is over.
func linesOf(log string, x trouble) (n int) {
	subject := " " + x.of + "="
	if x.of == "gateway" {
		subject = ""
	}
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "cause="+x.kind+subject) {
			continue
		}
		names := line[strings.Index(line, "cause="):]
		if names, _, _ = strings.Cut(names, " advice="); strings.Contains(names, x.name) {
			n++
		}
	}
	return n
}

// sameMarks demands of again, the timeline after a restart, each mark of marks
// once, and nothing else from before read, when marks was asked for.
func sameMarks(t *testing.T, marks, again []api.Mark, read time.Time) {
	t.Helper()
	for _, m := range marks {
		n := 0
		for _, k := range again {
			if k.Time.Equal(m.Time) && k.Kind == m.Kind && k.Subject == m.Subject {
				n++
			}
		}
		if n != 1 {
			t.Errorf("after a restart the timeline has %d times %+v", n, m)
		}
	}
	for _, k := range again {
		known := slices.ContainsFunc(marks, func(m api.Mark) bool { return k.Time.Equal(m.Time) && k.Kind == m.Kind && k.Subject == m.Subject })
		if !known && k.Time.Before(read) {
			t.Errorf("after a restart the timeline has a mark that was not there: %+v", k)
		}
	}
	if starts := func(m api.Mark) bool { return m.Kind == "start" && m.Time.After(read) }; !slices.ContainsFunc(again, starts) {
		t.Error("after a restart the timeline does not say that the gateway started")
	}
}

func timeline(t *testing.T, gateway *proctest.Process) []api.Mark {
	t.Helper()
	return proctest.JSON[api.Timeline](t, gateway.Ready["admin"]+"/api/v1/timeline").Marks
}

// Whatever becomes of its directory, a gateway serves, and says what is wrong.
func TestAStateThatIsNoHelp(t *testing.T) {
	t.Parallel()
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "5")
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "history.bin"), []byte("of somebody else"), 0o600))
	blocked := filepath.Join(dir, "a file", "state")
	must.Do(t, os.WriteFile(filepath.Dir(blocked), nil, 0o600))
	for where, says := range map[string]string{dir: "history.bin.unreadable", blocked: "not a directory"} {
		gateway := proctest.Start(t, nil, "serve", "-c", gatewayConfig(t, engine.Ready["url"], fmt.Sprintf("state_dir: %q\n", where)))
		load(t, gateway, 2, 1)
		if code := gateway.Stop(syscall.SIGTERM); code != 0 || !strings.Contains(gateway.Log(), says) {
			t.Errorf("%s: ended with %d, and the log says nothing of %q:\n%s", where, code, says, gateway.Log())
		}
	}
	if kept, err := os.ReadFile(filepath.Join(dir, "history.bin")); err != nil || !strings.HasPrefix(string(kept), "pacer history") {
		t.Errorf("what is kept is %.20q, %v", kept, err)
	}
}
