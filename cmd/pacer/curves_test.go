package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/ask"
	"github.com/pacer-dev/pacer/internal/benchfile"
	"github.com/pacer-dev/pacer/internal/golden"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/profiles"
)

const benchmarks = "../../internal/benchfile/testdata/"

// inBenchmarks makes the names of the files short, and the same everywhere.
func inBenchmarks(t *testing.T, f func()) {
	t.Helper()
	here := must.Get(os.Getwd())(t)
	must.Do(t, os.Chdir(benchmarks))
	defer os.Chdir(here)
	f()
}

func TestCurvesOfFiles(t *testing.T) {
	for name, width := range map[string]string{"curves_files.txt": "100", "curves_files_narrow.txt": "44"} {
		t.Setenv("COLUMNS", width)
		var stdout string
		inBenchmarks(t, func() {
			var code int
			var stderr string
			if code, stdout, stderr = command(t, "curves", "vllm-appended.jsonl", "vllm-concurrency8.json"); code != 0 || stderr != "" {
				t.Errorf("exit code %d, stderr %q; want 0 and nothing", code, stderr)
			}
		})
		golden.Want(t, name, stdout)
		most := must.Get(strconv.Atoi(width))(t)
		drawn, _, _ := strings.Cut(stdout, "\nnot used:") // what is quoted stays on one line
		for line := range strings.Lines(drawn) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > most && !strings.Contains(line, "(vllm bench serve)") {
				t.Errorf("a line of %d columns, want at most %d: %s", n, most, line)
			}
		}
	}
}

// What curves writes can be read back as a prior.
func TestCurvesCanBeReadBack(t *testing.T) {
	want := must.Get(benchfile.Load(benchmarks + "vllm-appended.jsonl"))(t)
	for _, form := range []string{"--csv", "--json"} {
		code, stdout, stderr := command(t, "curves", form, benchmarks+"vllm-appended.jsonl")
		if code != 0 || stderr != "" {
			t.Fatalf("%s: exit code %d, stderr %q; want 0 and nothing", form, code, stderr)
		}
		got, err := benchfile.Parse("f", []byte(stdout))
		if err != nil {
			t.Errorf("%s: %v\n%s", form, err, stdout)
			continue
		}
		if got.Model != want.Model || len(got.Points) != len(want.Points) {
			t.Errorf("%s: %d points of %q, want %d of %q", form, len(got.Points), got.Model, len(want.Points), want.Model)
			continue
		}
		for i, p := range got.Points {
			if w := want.Points[i]; p.N != w.N || math.Abs(p.TPS/w.TPS-1) > 1e-5 {
				t.Errorf("%s: n = %d at %v tokens/s, want n = %d at %v", form, p.N, p.TPS, w.N, w.TPS)
			}
		}
	}
}

// The terminal shows what the book of the running gateway knows, at every
// level and load, and what runs there at that moment.
func TestCurvesOfAGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []gpu{{name: "a", model: carries38, seed: 3}, {name: "b", model: carries64, seed: 4}}, `routes:
  - { model: chat, targets: [ { backend: a, model: m } ], slo: { min_tps: 30 } }
  - { model: nightly, class: batch, targets: [ { backend: a, model: m }, { backend: b, model: m } ] }
`, options{})
		warmUp(h, 20, 20*time.Second)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				h.client.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 50, MaxTokens: 600})
			})
		}
		sleep(3 * time.Second)
		defer wg.Wait()

		asked := func(q ask.CurvesQuestion) (*ask.Curves, error) {
			q.Admin, q.Dial = "127.0.0.1:9090", h.network.Dial
			return q.Ask(t.Context())
		}
		nan := math.NaN()
		for name, q := range map[string]ask.CurvesQuestion{
			"learned load":  {PointsQuery: api.PointsQuery{Rho: nan, PromptTokens: nan}},
			"levels":        {PointsQuery: api.PointsQuery{Rho: nan, PromptTokens: nan, Levels: []int{7, 1, 300}}},
			"rho":           {PointsQuery: api.PointsQuery{Rho: 20, PromptTokens: nan}},
			"prompt tokens": {PointsQuery: api.PointsQuery{Rho: nan, PromptTokens: 3000}, Backend: "a"},
		} {
			answer, err := asked(q)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			a, c := answer.Targets[0], h.curve("a")
			want := q.Describe(profiles.Target{Backend: "a", Model: "m"}, c, []ask.Floor{{Route: "chat", MinTPS: 30}}, time.Now())
			if len(a.Points) != len(want.Points) || len(a.Points) < 3 || len(a.Line) != len(want.Line) || len(a.Line) < 20 {
				t.Fatalf("%s: %d points and a line of %d, want %d and %d", name, len(a.Points), len(a.Line), len(want.Points), len(want.Line))
			}
			for i := range want.Points {
				if !samePoint(a.Points[i], want.Points[i]) && a.Points[i].AgeS.Known() {
					t.Errorf("%s: point %+v, want %+v", name, a.Points[i], want.Points[i])
				}
			}
			for i := range want.Line {
				if a.Line[i].N != want.Line[i].N || a.Line[i].TPS != want.Line[i].TPS || a.Line[i].Low != want.Line[i].Low {
					t.Errorf("%s: line %+v, want %+v", name, a.Line[i], want.Line[i])
				}
			}
			if f := a.Floors; len(f) != 1 || f[0].Route != "chat" || f[0].MinTPS != 30 || f[0].Holds != want.Floors[0].Holds || f[0].Holds == 0 {
				t.Errorf("%s: floors %+v, want %+v, above n = 0", name, a.Floors, want.Floors)
			}
			// What the terminal says of the floor is what the router does.
			room := h.program.router.Routes(time.Now())[0].Targets[0]
			if f := a.Floors[0]; f.Capacity == nil || *f.Capacity != room.Capacity || f.Admits == nil || *f.Admits != room.Admits || room.Capacity == 0 {
				t.Errorf("%s: floors %+v, and the router says %+v", name, a.Floors, room)
			}
			if a.State == nil || a.InFlight.N != 3 || a.Load != want.Load || a.Health != "up" || a.Kind != "vllm" {
				t.Errorf("%s: in flight %+v, %q, %s %s; want n = 3, %q, up vllm", name, a.InFlight, a.Load, a.Health, a.Kind, want.Load)
			}
			if a.Scale != want.Scale || (a.OutputTokens != nil) != (name == "prompt tokens") || a.OutputTokens != nil && *a.OutputTokens != *want.OutputTokens {
				t.Errorf("%s: scale %v, output tokens %v; want %v and %v", name, a.Scale, a.OutputTokens, want.Scale, want.OutputTokens)
			}
			if name == "learned load" && a.Floors[0].Holds != c.MaxConcurrency(30) {
				t.Errorf("the floor holds to n = %d, want %d", a.Floors[0].Holds, c.MaxConcurrency(30))
			}
			if wantTargets := map[bool]int{true: 2, false: 1}[q.Backend == ""]; len(answer.Targets) != wantTargets {
				t.Errorf("%s: %d targets, want %d", name, len(answer.Targets), wantTargets)
			}
			var out bytes.Buffer
			if err := answer.Print(&out, 100); err != nil || !strings.Contains(out.String(), "▲") || !strings.Contains(out.String(), "chat 30") {
				t.Errorf("%s: %v, no live n or no floor in:\n%s", name, err, out.String())
			}
			if q.Backend == "" && !strings.Contains(out.String(), "b · m (vllm, up)") {
				t.Errorf("%s: no target b in:\n%s", name, out.String())
			}
		}
		everyField(t, h, asked)
		if _, err := asked(ask.CurvesQuestion{PointsQuery: api.PointsQuery{Rho: nan, PromptTokens: nan}, Backend: "c"}); err == nil || err.Error() != `no backend "c"; known are a, b` {
			t.Errorf("unknown backend: %v", err)
		}
		q := ask.CurvesQuestion{PointsQuery: api.PointsQuery{Rho: nan, PromptTokens: nan}, Admin: "http://127.0.0.1:8080", Dial: h.network.Dial}
		if _, err := q.Ask(t.Context()); err == nil || !strings.Contains(err.Error(), "answers 404 Not Found, but not as the admin port of a gateway does") {
			t.Errorf("the data port: %v", err)
		}
		wg.Wait()
		h.stop()
		if _, err := asked(ask.CurvesQuestion{PointsQuery: api.PointsQuery{Rho: nan, PromptTokens: nan}}); err == nil || !strings.HasPrefix(err.Error(), "no gateway at http://127.0.0.1:9090: ") {
			t.Errorf("no gateway: %v", err)
		}
	})
}

func TestCurvesRefuses(t *testing.T) {
	memory := writeConfig(t, "backends: [ { name: gpu, url: \"http://gpu/v1\" } ]\nroutes: [ { model: chat, targets: [ { backend: gpu } ] } ]\n")
	broken := writeConfig(t, "backends: []\n")
	bad := filepath.Join(t.TempDir(), "bad.csv")
	must.Do(t, os.WriteFile(bad, []byte("n,tps\n1,fast\n"), 0o600))
	answered(t, []mistake{
		{[]string{bad}, "pacer: " + bad + `:2: tps is "fast"; expected the tokens/s of one stream, such as 47.1`},
		{[]string{"none.json"}, "pacer: none.json: no such file or directory; expected"},
		{[]string{bad, "--admin", "http://x"}, "pacer: files are given, and a gateway or store; keep one"},
		{[]string{bad, "--rho", "3"}, "pacer: a benchmark was run at one prompt load"},
		{[]string{"--admin", "http://x", "--config", memory}, "pacer: --admin is given, and a store; keep one"},
		{[]string{"--store", "redis://x"}, "pacer: --store needs --config FILE"},
		{[]string{"--rho", "1", "--prompt-tokens", "2"}, "pacer: --rho and --prompt-tokens are given; keep one"},
		{[]string{"--rho", "-1"}, "pacer: --rho is -1; write a number from 0"},
		{[]string{"--prompt-tokens", "NaN"}, "pacer: --prompt-tokens is NaN; write a number from 0"},
		{[]string{"--n", "1,0"}, `pacer: --n: "0" is no level of concurrency`},
		{[]string{"--n", ""}, `pacer: --n: "" is no level of concurrency`},
		{[]string{"--json", "--csv"}, "pacer: --json and --csv are given; keep one"},
		{[]string{"--admin", "ftp://x"}, "pacer: --admin is no address of an admin port"},
		{[]string{"-c", memory}, "pacer: " + memory + " keeps its curves in the memory of the gateway; ask it with --admin"},
		{[]string{"-c", memory, "--store", "redis://:s3cret@h:99999"}, "pacer: --store: the store's URL has no valid host"},
		{[]string{"-c", broken}, broken + ":1:"},
		{[]string{"--nope"}, "pacer: unknown flag"},
	}, "curves")
}

func TestCurvesWhereNoGatewayIs(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	addr := l.Addr().String()
	l.Close()
	code, _, stderr := command(t, "curves", "--admin", addr)
	if code != 1 || !strings.HasPrefix(stderr, "pacer: no gateway at http://"+addr+": ") || !strings.Contains(stderr, "pacer serve") {
		t.Errorf("exit code %d, stderr %q; want 1 and what to do", code, stderr)
	}
	for name, answer := range map[string]http.HandlerFunc{
		"a page":          func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>hello</html>")) },
		"a redirect":      func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) },
		"another service": http.NotFound,
	} {
		s := httptest.NewServer(answer)
		code, _, stderr := command(t, "curves", "--admin", s.URL+"/")
		s.Close()
		if code != 1 || !strings.Contains(stderr, "but not as the admin port of a gateway does") {
			t.Errorf("%s: exit code %d, stderr %q", name, code, stderr)
		}
	}
}

// everyField finds each field of /api/v1/profiles in the JSON of the command.
func everyField(t *testing.T, h *house, asked func(ask.CurvesQuestion) (*ask.Curves, error)) {
	t.Helper()
	fields := func(text []byte, err error) map[string]any {
		t.Helper()
		var all struct{ Targets []map[string]any }
		if err == nil {
			err = json.Unmarshal(text, &all)
		}
		if err != nil || len(all.Targets) == 0 {
			t.Fatalf("%v in %s", err, text)
		}
		return all.Targets[0]
	}
	found := must.Get(asked(ask.CurvesQuestion{PointsQuery: api.PointsQuery{Rho: math.NaN(), PromptTokens: math.NaN()}}))(t)
	command := fields(json.Marshal(found))
	for field := range fields([]byte(h.page("/api/v1/profiles")), nil) {
		if _, there := command[field]; !there {
			t.Errorf("pacer curves --json has no %s, which the admin port says", field)
		}
	}
}

// samePoint compares what the points say.
func samePoint(a, b api.Point) bool {
	source := func(p api.Point) string {
		if p.Source == nil {
			return ""
		}
		return *p.Source
	}
	same := source(a) == source(b)
	a.Source, b.Source = nil, nil
	return same && a == b
}
