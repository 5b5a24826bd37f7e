package e2e

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/chromium"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

// incident is one thing that goes wrong, and what an operator has to read from
// the page about it.
type incident struct {
	name  string
	fail  func(*theatre)
	mend  func(*theatre)
	kind  string // of the cause
	route string // whose row says it too; "" = no user notices
	cause string // expression for its words
	look  string // backend that is named; "" = none alone
}

var incidents = []incident{
	{
		name: "drift", kind: "slower", route: "chat", look: "fast",
		cause: `^slower than learned ×0\.\d+ since \d\d:\d\d UTC$`,
		fail:  func(th *theatre) { th.set("fast", `{"drift":6}`) },
		mend:  func(th *theatre) { th.set("fast", `{"drift":1}`) },
	},
	{
		name: "dead engine", kind: "backend_down", route: "lone", look: "dead", cause: `^backend down: .*refused.* since \d\d:\d\d UTC$`,
		fail: func(th *theatre) { th.engines["dead"].Stop(syscall.SIGKILL) },
		mend: func(th *theatre) { th.start("dead") },
	},
	{
		name: "wrong model", kind: "upstream_model", route: "typo", look: "misnamed", cause: `^upstream 404: model "llama-9" not found.* since \d\d:\d\d UTC$`,
		fail: func(th *theatre) { th.model = "llama-9"; th.configure() },
		mend: func(th *theatre) { th.model = model; th.configure() },
	},
	{
		name: "wrong key", kind: "upstream_credentials", route: "locked", look: "locked", cause: `^credentials refused: upstream 401.* since \d\d:\d\d UTC$`,
		fail: func(th *theatre) { th.set("locked", `{"status":401}`) },
		mend: func(th *theatre) { th.set("locked", `{"status":0}`) },
	},
	{
		name: "overload", kind: "overload", route: "busy", cause: `^load above capacity.* since \d\d:\d\d UTC$`,
		fail: func(th *theatre) {
			th.crowd, th.calm = context.WithCancel(th.t.Context())
			th.users(th.crowd, "busy", 40)
		},
		mend: func(th *theatre) { th.calm() },
	},
	{
		name: "floor out of reach", kind: "floor_unattainable", route: "greedy", cause: `^floor above what any engine gives alone \((floor 900|[\d.]+ of 900)\) since \d\d:\d\d UTC$`,
		fail: func(th *theatre) { th.floor = 900; th.configure() },
		mend: func(th *theatre) { th.floor = 10; th.configure() },
	},
	{
		name: "store lost", kind: "store_down", cause: `^store down: .* since \d\d:\d\d UTC$`,
		fail: func(th *theatre) { th.redis.Kill() },
		mend: func(th *theatre) { th.redis.Restart() },
	},
}

const (
	model    = "llama-3.1-70b"
	crowding = "deepseek-r1" // its curve is steep: 16 streams at 63 tokens/s
)

// theatre is a gateway with an engine for each thing that can go wrong, and
// users on every route.
type theatre struct {
	t       *testing.T
	gateway *proctest.Process
	redis   *redistest.Server
	engines map[string]*proctest.Process
	ports   map[string]string
	file    string
	store   string // URL of the Redis

	// what the configuration says now
	model string
	floor int

	crowd   context.Context
	calm    context.CancelFunc
	playing sync.WaitGroup
}

// stage is the engines, and the preset of each.
var stage = []struct{ name, preset string }{
	{"fast", "llama-3.1-70b/h200/vllm"},
	{"dead", "llama-3.1-70b/h200/vllm"},
	{"misnamed", "llama-3.1-70b/h200/vllm"},
	{"locked", "llama-3.1-70b/h200/vllm"},
	{"small", "deepseek-r1/h200/sglang"},
}

func newTheatre(t *testing.T) *theatre {
	t.Helper()
	th := &theatre{t: t, redis: redistest.Start(t), engines: map[string]*proctest.Process{}, ports: map[string]string{}, model: model, floor: 10}
	th.store = redisURL(t, th.redis)
	for _, e := range stage {
		th.ports[e.name] = redistest.FreePort(t)
		th.start(e.name)
	}
	th.file = proctest.Write(t, th.yaml())
	th.gateway = proctest.Start(t, nil, "serve", "-c", th.file)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		th.playing.Wait()
	})
	for route, users := range map[string]int{"chat": 8, "lone": 2, "typo": 2, "locked": 2, "busy": 4, "greedy": 2} {
		th.users(ctx, route, users)
	}
	return th
}

func (th *theatre) start(name string) {
	th.t.Helper()
	for _, e := range stage {
		if e.name == name {
			th.engines[name] = proctest.Start(th.t, nil, "sim", "--listen", "127.0.0.1:"+th.ports[name], "--preset", e.preset)
		}
	}
}

func (th *theatre) yaml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0, token: operator-token-for-tests }\nstore: %s\nbackends:\n", th.store)
	for _, e := range stage {
		fmt.Fprintf(&b, "  - { name: %s, url: %q, kind: vllm, usd_per_hour: 3.5, labels: { gpu: H200 } }\n", e.name, "http://127.0.0.1:"+th.ports[e.name]+"/v1")
	}
	fmt.Fprintf(&b, "routes:\n")
	route := func(name, backend, model string, floor int) {
		fmt.Fprintf(&b, "  - { model: %s, targets: [ { backend: %s, model: %s } ], slo: { min_tps: %d, attainment: 0.95 }, on_infeasible: [ shed ] }\n", name, backend, model, floor)
	}
	route("chat", "fast", model, 30)
	route("lone", "dead", model, 10)
	route("typo", "misnamed", th.model, 10)
	route("locked", "locked", model, 10)
	route("busy", "small", crowding, 60)
	route("greedy", "misnamed", model, th.floor)
	return b.String()
}

// configure replaces the gateway's file, as editors do.
func (th *theatre) configure() {
	th.t.Helper()
	must.Do(th.t, os.WriteFile(th.file+".new", []byte(th.yaml()), 0o600))
	must.Do(th.t, os.Rename(th.file+".new", th.file))
}

// set changes what is wrong with an engine.
func (th *theatre) set(engine, fault string) {
	th.t.Helper()
	resp := must.Get(http.Post(th.engines[engine].Ready["url"]+"/sim/set", "application/json", strings.NewReader(fault)))(th.t)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		th.t.Fatalf("/sim/set %s: %s", fault, resp.Status)
	}
}

// users stream from a route until ctx ends; who is refused comes back after a
// while, as clients do.
func (th *theatre) users(ctx context.Context, route string, n int) {
	c := client(th.gateway)
	for range n {
		th.playing.Go(func() {
			for ctx.Err() == nil {
				if r := c.Stream(ctx, loadgen.Request{Model: route, PromptTokens: 50, MaxTokens: 60}); r.Outcome == loadgen.Done {
					continue
				}
				select {
				case <-ctx.Done():
				case <-time.After(300 * time.Millisecond):
				}
			}
		})
	}
}

// said is a cause as the page shows it.
type said struct {
	Cause  string `json:"cause"`
	Advice string `json:"advice"`
	Links  string `json:"links"`
	Row    string `json:"row"`
	Window string `json:"window"`
	Title  string `json:"title"`
	Icon   string `json:"icon"`
	State  string `json:"state"`
}

// TestAnIncidentIsReadFromThePage: for each thing that goes wrong the page says
// what it is, since when, in which window, and what to do; and once it is
// mended, that it is over. With -long it is green again within the window.
func TestAnIncidentIsReadFromThePage(t *testing.T) {
	if racetest.On {
		t.Skip("seven incidents take two minutes, of processes that the race detector does not see; make numbers plays them")
	}
	t.Parallel()
	th := newTheatre(t)
	c := chromium.Start(t)
	c.Open(th.gateway.Ready["admin"]+"/", 1280, 1000, false)
	proctest.Until(t, "every route serves", func() bool {
		page := string(proctest.Get(t, th.gateway.Ready["admin"]+"/metrics"))
		for _, route := range []string{"chat", "lone", "typo", "locked", "busy", "greedy"} {
			if proctest.Sum(page, `pacer_slo_total{result="met",route="`+route+`"}`) < 5 {
				return false
			}
		}
		return true
	})
	const quiet = `document.querySelectorAll("#reasons li").length === 0 && document.getElementById("headline").textContent`
	if !c.Within(50*time.Second, quiet) {
		t.Fatalf("something is wrong before anything was done:\n%s", c.Page())
	}
	for _, in := range incidents {
		t.Run(in.name, func(t *testing.T) { in.play(t, th, c) })
	}
	if !*long {
		return
	}
	began := time.Now()
	const green = `document.getElementById("verdict").dataset.state === "ok" && document.querySelectorAll("#route-table > tbody.bad, #route-table > tbody.warn").length === 0`
	for !c.Within(20*time.Second, green) {
		if time.Since(began) > 6*time.Minute {
			t.Fatalf("not green within the window of 5 minutes:\n%s", c.Page())
		}
	}
	t.Logf("green %v after the last was mended", time.Since(began).Round(time.Second))
	c.Shoot(filepath.Join("..", "bin", "page", "green.png"), false)
}

func (in incident) play(t *testing.T, th *theatre, c *chromium.Browser) {
	began := time.Now()
	in.fail(th)
	// A busy machine has troubles of its own, such as engines that are slow for a
	// while: this one is of the kind, and names the route.
	line := `[...document.querySelectorAll("#reasons li[data-kind=` + in.kind + `]")].find((li) => [...li.querySelectorAll("a, b")].some((a) => a.textContent === "` + cmp.Or(in.route, "gateway") + `"))`
	row := `true`
	if in.route != "" { // the row names the cause with its backend where there are several
		row = `document.querySelector("#route-` + in.route + `.bad .c-cause").textContent.includes("since")`
	}
	if !c.Within(55*time.Second, line+" && "+row) {
		t.Fatalf("no cause of kind %s on the page; it says:\n%s\n%s", in.kind, c.Page(), tail(th.gateway.Log()))
	}
	t.Logf("on the page after %v", time.Since(began).Round(100*time.Millisecond))
	var got said
	var others int
	c.Eval(`document.querySelectorAll("#reasons li").length - 1`, &others)
	c.Eval(`(() => { const li = `+line+`; return {
		cause: li.querySelector(".cause").textContent, advice: li.querySelector(".advice")?.textContent ?? "",
		links: [...li.querySelectorAll("a")].map((a) => a.textContent).join(" "),
		row: document.querySelector("#route-`+in.route+` .c-cause")?.textContent ?? "",
		window: document.getElementById("routes-note").textContent, title: document.title,
		icon: document.getElementById("icon").getAttribute("href"), state: document.getElementById("verdict").dataset.state,
	}; })()`, &got)
	words := regexp.MustCompile(in.cause)
	if !words.MatchString(got.Cause) {
		t.Errorf("the cause is %q, want %s", got.Cause, in.cause)
	}
	if len(got.Advice) < 20 {
		t.Errorf("the advice is %q, want what to do", got.Advice)
	}
	if in.look != "" && !strings.Contains(got.Links, in.look) {
		t.Errorf("the links are %q, want one to %s", got.Links, in.look)
	}
	if !strings.HasPrefix(got.Window, "since ") {
		t.Errorf("the routes are shown %q, want since when", got.Window)
	}
	wantState, wantIcon, wantTitle := "bad", "/favicon-bad.svg", "● "
	if in.route == "" {
		wantState, wantIcon, wantTitle = "warn", "/favicon-warn.svg", "◐ "
	} else if !words.MatchString(got.Row) {
		t.Errorf("the row of %s says %q, want %s", in.route, got.Row, in.cause)
	}
	if in.route == "" && others > 0 {
		t.Logf("the machine has troubles of its own, so the verdict is %s", got.State)
	} else if got.State != wantState || got.Icon != wantIcon || !strings.HasPrefix(got.Title, wantTitle) {
		t.Errorf("state %s, icon %s, title %q; want %s, %s, %s…", got.State, got.Icon, got.Title, wantState, wantIcon, wantTitle)
	}
	c.Shoot(filepath.Join("..", "bin", "page", "incident-"+strings.ReplaceAll(in.name, " ", "-")+".png"), false)
	mended := time.Now()
	in.mend(th)
	if !c.Within(55*time.Second, "!("+line+")") {
		t.Fatalf("still wrong though it was mended; the page says:\n%s\n%s", c.Page(), tail(th.gateway.Log()))
	}
	t.Logf("it is over %v after it was mended", time.Since(mended).Round(100*time.Millisecond))
}

// tail is the end of a log.
func tail(log string) string {
	lines := strings.Split(log, "\n")
	var kept []string
	for _, l := range lines {
		if strings.Contains(l, `"level":"WARN"`) || strings.Contains(l, `"level":"ERROR"`) || strings.Contains(l, `"cause"`) {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept[max(0, len(kept)-15):], "\n") + "\n(" + strconv.Itoa(len(lines)) + " lines)"
}
