package ask

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/golden"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/internal/redistest"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/redisstore"
)

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

	for name, q := range map[string]CurvesQuestion{
		"curves_learned.txt":       {PointsQuery: api.PointsQuery{Rho: math.NaN(), PromptTokens: math.NaN()}},
		"curves_prompt_tokens.txt": {PointsQuery: api.PointsQuery{Rho: math.NaN(), PromptTokens: 4000, Levels: []int{1, 3, 16, 48, 400}}},
	} {
		floors := []Floor{
			{Route: "chat", MinTPS: 30, Capacity: new(21), Admits: new(9)},
			{Route: "a-long-name-of-a-route", MinTPS: 50, Capacity: new(0), Admits: new(0)},
			{Route: "eager", MinTPS: 20, Capacity: new(30), CapacityIsLowerBound: true, Admits: new(18), AdmitsIsLowerBound: true},
			{Route: "batch-like", MinTPS: 1},
			{Route: "dream", MinTPS: 500},
		}
		target := q.Describe(big, book.Curve(big), floors, now.Add(3*time.Minute))
		target.Kind, target.State = "vllm", &api.State{Health: "up", InFlight: api.InFlight{Decoding: 5, N: 11, M: 12}}
		unknown := q.Describe(cold, book.Curve(cold), nil, now)
		unknown.Kind, unknown.State = "openai", &api.State{Health: "down"}
		answer := Curves{From: "http://127.0.0.1:9090", Targets: []Target{target, unknown}}
		var out bytes.Buffer
		must.Do(t, answer.Print(&out, 92))
		golden.Want(t, name, out.String())
	}
}

func TestCurvesOfAStore(t *testing.T) {
	server := redistest.Start(t)
	path := filepath.Join(t.TempDir(), "pacer.yaml")
	err := os.WriteFile(path, []byte(`backends:
  - { name: big, url: "http://big:8000/v1", kind: vllm }
  - { name: believed, url: "http://b:8000/v1", prior: { 1: 52, 8: 47 } }
routes:
  - { model: chat, targets: [ { backend: big, model: llama-70b }, { backend: believed } ], slo: { min_tps: 30 } }
`), 0o600)
	must.Do(t, err)
	cfg, err := config.Load(path)
	must.Do(t, err)
	cfg.Store = config.Store{Addrs: []string{server.Addr}, Prefix: "pacer"}
	big := profiles.Target{Backend: "big", Model: "llama-70b"}
	book := profiles.NewBook(profiles.Options{})
	deltas := book.Fold(teach(book, big, time.Now().Add(-time.Hour), stairs...))
	client, err := redisconn.New(cfg.Store)
	must.Do(t, err)
	defer client.Close()
	must.Do(t, redisstore.New(client).Push(t.Context(), "r", 1, deltas))

	q := CurvesQuestion{Config: path, PointsQuery: api.PointsQuery{Rho: math.NaN(), PromptTokens: math.NaN()}}
	answer, err := q.askStore(t.Context(), cfg)
	must.Do(t, err)
	if len(answer.Targets) != 2 {
		t.Fatalf("%d targets, want 2", len(answer.Targets))
	}
	believed, learned := answer.Targets[0], answer.Targets[1]
	want := book.Curve(big)
	if learned.Backend != "big" || len(learned.Points) != 6 || len(learned.Line) != 48 || learned.State != nil {
		t.Fatalf("%+v, want 6 points of big, a line to 48, and nobody who counts", learned)
	}
	for _, p := range learned.Points {
		if w := want.At(p.N); math.Abs(float64(p.TPS)/w.TPS-1) > 1e-9 || sourceOf(p) != "learned" || p.Steps == 0 {
			t.Errorf("point %+v, want %v tokens/s", p, w.TPS)
		}
	}
	if f := learned.Floors; len(f) != 1 || f[0].Route != "chat" || f[0].Holds != want.MaxConcurrency(30) {
		t.Errorf("floors %+v, want chat up to n = %d", f, want.MaxConcurrency(30))
	}
	if len(believed.Points) != 2 || sourceOf(believed.Points[1]) != "prior" || math.Abs(float64(believed.Points[1].TPS)-47) > 1e-9 {
		t.Errorf("points of the prior %+v, want 8: 47", believed.Points)
	}
	server.Kill()
	if _, err := q.askStore(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "does not answer") || !strings.Contains(err.Error(), "--store redis://HOST:6379/0") {
		t.Errorf("a dead store: %v", err)
	}
}

func TestCurvesPassesAClosedPipeOn(t *testing.T) {
	answer := Curves{From: "x"}
	if err := answer.Print(brokenPipe{}, 80); !errors.Is(err, os.ErrClosed) {
		t.Errorf("print returned %v, want the error of the writer", err)
	}
}

func TestCurvesPrintsNoControlCharacters(t *testing.T) {
	answer := Curves{From: "a\x1b[2Jfile", Targets: []Target{{Identity: api.Identity{Backend: "gpu\x07", Model: "m\r\u009b1m"}}}, Notes: []string{"\x1b]0;x"}}
	var out bytes.Buffer
	must.Do(t, answer.Print(&out, 80))
	if text := out.String(); strings.ContainsAny(text, "\x1b\x07\r\u009b") || !strings.Contains(text, "gpu? · m??1m") {
		t.Errorf("a control character reaches the terminal: %q", text)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, os.ErrClosed }

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
