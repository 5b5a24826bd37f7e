package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
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

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/benchfile"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/internal/redistest"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/redisstore"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// wantGolden compares text with a file in testdata.
func wantGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant (go test -update rewrites it):\n%s", path, got, want)
	}
}

// curves runs pacer curves and returns its exit code and output.
func curves(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(t.Context(), append([]string{"curves"}, args...), &out, &errOut)
	return code, out.String(), errOut.String()
}

const benchmarks = "../../internal/benchfile/testdata/"

// inBenchmarks makes the names of the files short, and the same everywhere.
func inBenchmarks(t *testing.T, f func()) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chdir(benchmarks); err != nil {
		t.Fatal(err)
	}
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
			if code, stdout, stderr = curves(t, "vllm-appended.jsonl", "vllm-concurrency8.json"); code != 0 || stderr != "" {
				t.Errorf("exit code %d, stderr %q; want 0 and nothing", code, stderr)
			}
		})
		wantGolden(t, name, stdout)
		most, err := strconv.Atoi(width)
		if err != nil {
			t.Fatal(err)
		}
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
	want, err := benchfile.Load(benchmarks + "vllm-appended.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"--csv", "--json"} {
		code, stdout, stderr := curves(t, form, benchmarks+"vllm-appended.jsonl")
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

// lesson is one level that teach plays.
type lesson struct {
	n    int
	tpot time.Duration
	take time.Duration
}

// teach plays lessons to the book: n streams at once, each a token every tpot,
// after prompts of 40 tokens.
func teach(book *profiles.Book, target profiles.Target, now time.Time, lessons ...lesson) time.Time {
	occupancy := profiles.NewOccupancy(now)
	for _, l := range lessons {
		var streams []*profiles.Stream
		for range l.n {
			streams = append(streams, book.Open(target, profiles.Open{Sent: now, Occupancy: occupancy, PromptTokens: 40}))
		}
		now = now.Add(50 * time.Millisecond)
		occupancy.Set(now, l.n)
		tokens := 0
		for end := now.Add(l.take); now.Before(end); now = now.Add(l.tpot) {
			tokens++
			for _, s := range streams {
				s.Read(now, 1)
			}
		}
		occupancy.Set(now, 0)
		for _, s := range streams {
			s.Usage(profiles.Usage{PromptTokens: 40, CompletionTokens: tokens})
			s.Close(now, true)
		}
		now = now.Add(time.Second)
	}
	return now.Add(10 * time.Second)
}

// stairs is an engine with a knee after 4 and a wall after 16.
var stairs = []lesson{
	{1, 16 * time.Millisecond, 8 * time.Second},
	{2, 16 * time.Millisecond, 8 * time.Second},
	{4, 17 * time.Millisecond, 12 * time.Second},
	{6, 21 * time.Millisecond, 12 * time.Second},
	{16, 26 * time.Millisecond, 20 * time.Second},
	{24, 38 * time.Millisecond, 6 * time.Second},
}

func TestCurvesOfALearnedTarget(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	big, cold := profiles.Target{Backend: "big", Model: "llama-70b"}, profiles.Target{Backend: "cold"}
	book := profiles.NewBook(profiles.Options{})
	now := teach(book, big, start, stairs...)
	book.Fold(now)

	for name, o := range map[string]curvesOptions{
		"curves_learned.txt":       {rho: math.NaN(), promptTokens: math.NaN()},
		"curves_prompt_tokens.txt": {rho: math.NaN(), promptTokens: 4000, levels: []int{1, 3, 16, 48, 400}},
	} {
		target := o.describe(big, book.Curve(big), now.Add(3*time.Minute))
		target.Kind, target.Health, target.InFlight = "vllm", "up", &curvesInFlight{Decoding: 5, N: 11, M: 12}
		target.Floors = []curvesFloor{{Route: "chat", MinTPS: 30}, {Route: "a-long-name-of-a-route", MinTPS: 50}, {Route: "batch-like", MinTPS: 1}, {Route: "dream", MinTPS: 500}}
		target.measure()
		unknown := o.describe(cold, book.Curve(cold), now)
		unknown.Kind, unknown.Health = "openai", "down"
		answer := curvesAnswer{From: "http://127.0.0.1:9090", Targets: []curvesTarget{target, unknown}}
		var out bytes.Buffer
		if err := answer.print(&out, 92); err != nil {
			t.Fatal(err)
		}
		wantGolden(t, name, out.String())
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
		warmUp(h, 30, time.Minute)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				h.client.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 50, MaxTokens: 600})
			})
		}
		sleep(3 * time.Second)
		defer wg.Wait()

		ask := func(o curvesOptions) (*curvesAnswer, error) {
			o.admin, o.dial = "127.0.0.1:9090", h.network.Dial
			return o.gather(t.Context())
		}
		nan := math.NaN()
		for name, o := range map[string]curvesOptions{
			"learned load":  {rho: nan, promptTokens: nan},
			"levels":        {rho: nan, promptTokens: nan, levels: []int{7, 1, 300}},
			"rho":           {rho: 20, promptTokens: nan},
			"prompt tokens": {rho: nan, promptTokens: 3000, backend: "a"},
		} {
			answer, err := ask(o)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			a, c := answer.Targets[0], h.curve("a")
			want := o.describe(profiles.Target{Backend: "a", Model: "m"}, c, time.Now())
			want.Floors = []curvesFloor{{Route: "chat", MinTPS: 30}}
			want.measure()
			if len(a.Points) != len(want.Points) || len(a.Points) < 3 || len(a.line) != len(want.line) || len(a.line) < 20 {
				t.Fatalf("%s: %d points and a line of %d, want %d and %d", name, len(a.Points), len(a.line), len(want.Points), len(want.line))
			}
			for i := range want.Points {
				if a.Points[i] != want.Points[i] && !(a.Points[i].AgeS != a.Points[i].AgeS) {
					t.Errorf("%s: point %+v, want %+v", name, a.Points[i], want.Points[i])
				}
			}
			for i := range want.line {
				if a.line[i].N != want.line[i].N || a.line[i].TPS != want.line[i].TPS || a.line[i].Low != want.line[i].Low {
					t.Errorf("%s: line %+v, want %+v", name, a.line[i], want.line[i])
				}
			}
			if len(a.Floors) != 1 || a.Floors[0] != want.Floors[0] || a.Floors[0].Holds == 0 {
				t.Errorf("%s: floors %+v, want %+v, above n = 0", name, a.Floors, want.Floors)
			}
			if a.InFlight == nil || a.InFlight.N != 3 || a.load != want.load || a.Health != "up" || a.Kind != "vllm" {
				t.Errorf("%s: in flight %+v, %q, %s %s; want n = 3, %q, up vllm", name, a.InFlight, a.load, a.Health, a.Kind, want.load)
			}
			if a.Scale != want.Scale || (a.OutputTokens != nil) != (name == "prompt tokens") || a.OutputTokens != nil && *a.OutputTokens != *want.OutputTokens {
				t.Errorf("%s: scale %v, output tokens %v; want %v and %v", name, a.Scale, a.OutputTokens, want.Scale, want.OutputTokens)
			}
			if name == "learned load" && a.Floors[0].Holds != c.MaxConcurrency(30) {
				t.Errorf("the floor holds to n = %d, want %d", a.Floors[0].Holds, c.MaxConcurrency(30))
			}
			if wantTargets := map[bool]int{true: 2, false: 1}[o.backend == ""]; len(answer.Targets) != wantTargets {
				t.Errorf("%s: %d targets, want %d", name, len(answer.Targets), wantTargets)
			}
			var out bytes.Buffer
			if err := answer.print(&out, 100); err != nil || !strings.Contains(out.String(), "▲") || !strings.Contains(out.String(), "chat 30") {
				t.Errorf("%s: %v, no live n or no floor in:\n%s", name, err, out.String())
			}
			if o.backend == "" && !strings.Contains(out.String(), "b · m (vllm, up)") {
				t.Errorf("%s: no target b in:\n%s", name, out.String())
			}
		}
		if _, err := ask(curvesOptions{rho: nan, promptTokens: nan, backend: "c"}); err == nil || err.Error() != `no backend "c"; known are a, b` {
			t.Errorf("unknown backend: %v", err)
		}
		o := curvesOptions{rho: nan, promptTokens: nan, admin: "http://127.0.0.1:8080", dial: h.network.Dial}
		if _, err := o.gather(t.Context()); err == nil || !strings.Contains(err.Error(), "answers 404 Not Found, but not as the admin port of a gateway does") {
			t.Errorf("the data port: %v", err)
		}
		wg.Wait()
		h.stop()
		if _, err := ask(curvesOptions{rho: nan, promptTokens: nan}); err == nil || !strings.HasPrefix(err.Error(), "no gateway at http://127.0.0.1:9090: ") {
			t.Errorf("no gateway: %v", err)
		}
	})
}

func TestCurvesOfAStore(t *testing.T) {
	server := redistest.Start(t)
	path := writeConfig(t, `backends:
  - { name: big, url: "http://big:8000/v1", kind: vllm }
  - { name: believed, url: "http://b:8000/v1", prior: { 1: 52, 8: 47 } }
routes:
  - { model: chat, targets: [ { backend: big, model: llama-70b }, { backend: believed } ], slo: { min_tps: 30 } }
`)
	cfg, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Store = config.Store{Addrs: []string{server.Addr}, Prefix: "pacer"}
	big := profiles.Target{Backend: "big", Model: "llama-70b"}
	book := profiles.NewBook(profiles.Options{})
	deltas := book.Fold(teach(book, big, time.Now().Add(-time.Hour), stairs...))
	client, err := redisconn.New(cfg.Store, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := redisstore.New(client).Push(t.Context(), "r", 1, deltas); err != nil {
		t.Fatal(err)
	}

	o := curvesOptions{config: path, rho: math.NaN(), promptTokens: math.NaN()}
	answer, err := o.askStore(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Targets) != 2 {
		t.Fatalf("%d targets, want 2", len(answer.Targets))
	}
	believed, learned := answer.Targets[0], answer.Targets[1]
	want := book.Curve(big)
	if learned.Backend != "big" || len(learned.Points) != 6 || len(learned.line) != 48 || learned.InFlight != nil {
		t.Fatalf("%+v, want 6 points of big, a line to 48, and nobody who counts", learned)
	}
	for _, p := range learned.Points {
		if w := want.At(p.N); math.Abs(float64(p.TPS)/w.TPS-1) > 1e-9 || p.Source != "learned" || p.Steps == 0 {
			t.Errorf("point %+v, want %v tokens/s", p, w.TPS)
		}
	}
	if f := learned.Floors; len(f) != 1 || f[0].Route != "chat" || f[0].Holds != want.MaxConcurrency(30) {
		t.Errorf("floors %+v, want chat up to n = %d", f, want.MaxConcurrency(30))
	}
	if len(believed.Points) != 2 || believed.Points[1].Source != "prior" || math.Abs(float64(believed.Points[1].TPS)-47) > 1e-9 {
		t.Errorf("points of the prior %+v, want 8: 47", believed.Points)
	}
	server.Kill()
	if _, err := o.askStore(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "does not answer") || !strings.Contains(err.Error(), "--store redis://HOST:6379/0") {
		t.Errorf("a dead store: %v", err)
	}
}

func TestCurvesRefuses(t *testing.T) {
	memory := writeConfig(t, "backends: [ { name: gpu, url: \"http://gpu/v1\" } ]\nroutes: [ { model: chat, targets: [ { backend: gpu } ] } ]\n")
	broken := writeConfig(t, "backends: []\n")
	bad := filepath.Join(t.TempDir(), "bad.csv")
	if err := os.WriteFile(bad, []byte("n,tps\n1,fast\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
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
	} {
		code, stdout, stderr := curves(t, tt.args...)
		if code != 2 || stdout != "" || !strings.HasPrefix(stderr, tt.want) || strings.Contains(stderr, "s3cret") {
			t.Errorf("curves %q: exit code %d, stdout %q, stderr\n%swant 2, nothing, and\n%s", tt.args, code, stdout, stderr, tt.want)
		}
	}
}

func TestCurvesWhereNoGatewayIs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	code, _, stderr := curves(t, "--admin", addr)
	if code != 1 || !strings.HasPrefix(stderr, "pacer: no gateway at http://"+addr+": ") || !strings.Contains(stderr, "pacer serve") {
		t.Errorf("exit code %d, stderr %q; want 1 and what to do", code, stderr)
	}
	for name, answer := range map[string]http.HandlerFunc{
		"a page":          func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>hello</html>")) },
		"a redirect":      func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) },
		"another service": http.NotFound,
	} {
		s := httptest.NewServer(answer)
		code, _, stderr := curves(t, "--admin", s.URL+"/")
		s.Close()
		if code != 1 || !strings.Contains(stderr, "but not as the admin port of a gateway does") {
			t.Errorf("%s: exit code %d, stderr %q", name, code, stderr)
		}
	}
}

func TestCurvesPassesAClosedPipeOn(t *testing.T) {
	answer := curvesAnswer{From: "x"}
	if err := answer.print(brokenPipe{}, 80); !errors.Is(err, os.ErrClosed) {
		t.Errorf("print returned %v, want the error of the writer", err)
	}
}

func TestCurvesPrintsNoControlCharacters(t *testing.T) {
	answer := curvesAnswer{From: "a\x1b[2Jfile", Targets: []curvesTarget{{Backend: "gpu\x07", Model: "m\r\u009b1m"}}, Notes: []string{"\x1b]0;x"}}
	var out bytes.Buffer
	if err := answer.print(&out, 80); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.ContainsAny(text, "\x1b\x07\r\u009b") || !strings.Contains(text, "gpu? · m??1m") {
		t.Errorf("a control character reaches the terminal: %q", text)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestFigure(t *testing.T) {
	var got struct{ A, B figure }
	if err := json.Unmarshal([]byte(`{"A":null,"B":1.5}`), &got); err != nil || got.A.known() || got.B != 1.5 {
		t.Errorf("%+v, %v; want unknown and 1.5", got, err)
	}
	if text, err := json.Marshal(got); err != nil || string(text) != `{"A":null,"B":1.5}` {
		t.Errorf("%s, %v", text, err)
	}
	if got.A.text(1) != "–" || got.B.text(2) != "1.50" {
		t.Errorf("as text %s and %s", got.A.text(1), got.B.text(2))
	}
}

func TestLineLevels(t *testing.T) {
	if got := lineLevels(5); len(got) != 5 || got[4] != 5 {
		t.Errorf("to 5: %v", got)
	}
	got := lineLevels(8000)
	if len(got) > 512 || got[0] != 1 || got[len(got)-1] != 8000 {
		t.Errorf("to 8000: %d levels from %d to %d", len(got), got[0], got[len(got)-1])
	}
	for i := 1; i < len(got); i++ {
		if got[i] <= got[i-1] {
			t.Fatalf("level %d after %d", got[i], got[i-1])
		}
	}
}
