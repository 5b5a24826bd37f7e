package admin

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// world is an admin port over a real router and a real book.
type world struct {
	handler http.Handler
	options Options
	router  *router.Router
	book    *profiles.Book
	metrics *telemetry.Metrics
	watch   *history.Watch
	busy    []*router.Lease
	errors  map[profiles.Target]LastError
}

var (
	h200 = profiles.Target{Backend: "h200", Model: "meta-llama/Llama-3.1-70B-Instruct"}
	l40s = profiles.Target{Backend: "l40s", Model: "meta-llama/Llama-3.1-8B-Instruct"}
	idle = profiles.Target{Backend: "idle", Model: ""}
)

// newWorld has three backends: h200 has been measured, l40s has a prior, idle
// was never used. The routes: chat with a floor of 30, nightly without, and a
// catch-all.
func newWorld(t testing.TB) *world {
	t.Helper()
	cfg := &config.Config{
		Listen: "0.0.0.0:8080",
		Admin:  config.Admin{Listen: "127.0.0.1:9090"},
		Backends: []config.Backend{
			{Name: "h200", Kind: "vllm", Labels: map[string]string{"gpu": "gpu <b>H200</b>"}, APIKey: "sk-secret"},
			{Name: "l40s", Kind: "vllm"},
			{Name: "idle", Kind: "openai"},
		},
		Routes: []config.Route{
			{Models: []string{"chat"}, SLO: config.SLO{MinTPS: 30, Attainment: 0.99}},
			{Models: []string{"nightly"}},
			{Models: []string{"*"}},
		},
	}
	target := func(t profiles.Target) router.RouteTarget { return router.RouteTarget{Target: t} }
	shed := []router.Step{{Kind: router.Shed}}
	topology := router.Topology{
		Replicas: 1,
		Backends: []router.Backend{{Name: "h200"}, {Name: "l40s"}, {Name: "idle"}},
		Routes: []router.Route{
			{
				Name: "chat", Targets: []router.RouteTarget{target(h200), target(l40s)},
				SLO: router.SLO{MinTPS: 30, MaxTTFT: 2 * time.Second}, Reserve: 1, OnInfeasible: shed, MaxWaiting: 10,
			},
			{Name: "nightly", Class: router.Batch, Targets: []router.RouteTarget{target(l40s)}, Reserve: 1, OnInfeasible: shed, MaxWaiting: 10},
			{Name: "*", Targets: []router.RouteTarget{target(idle)}, Reserve: 1, OnInfeasible: shed, MaxWaiting: 10},
		},
	}
	now := time.Now()
	w := &world{
		router:  router.New(router.Options{Rand: func() float64 { return 0.5 }}),
		book:    profiles.NewBook(profiles.Options{}),
		metrics: telemetry.New(map[string]string{"chat": "interactive", "nightly": "batch", "*": "interactive"}, []string{"h200", "l40s", "idle"}, nil),
	}
	w.book.Ensure(h200, l40s, idle)
	w.book.Prior(l40s, []profiles.PriorPoint{{N: 1, TPS: 70}, {N: 8, TPS: 45}, {N: 32, TPS: 20}}, 0)
	teach(w.book, now.Add(-5*time.Minute), h200)
	w.router.Update(now, router.Configure{Topology: topology})
	w.router.Update(now, router.Curves{ByTarget: map[profiles.Target]*profiles.Curve{
		h200: w.book.Curve(h200), l40s: w.book.Curve(l40s), idle: w.book.Curve(idle),
	}})
	w.watch = history.NewWatch(w.metrics.History())
	w.options = Options{
		Config: inForce(cfg), Router: w.router, Book: w.book, Metrics: w.metrics, Watch: w.watch,
		LastErrors: func() map[profiles.Target]LastError { return w.errors },
		Plan:       playedAlready,
	}
	w.handler = New(w.options)
	return w
}

// truth is the speed of the engine that teach pretends to be, in tokens/s of
// one of n streams.
func truth(n int) float64 { return 1 / (0.018 + 0.0004*float64(n)) }

// firstTokenAfter is its time to the first token.
const firstTokenAfter = 50 * time.Millisecond

// teach lets the book watch an engine that decodes n streams in step, for
// several n, and folds what it saw once a second.
func teach(book *profiles.Book, now time.Time, target profiles.Target) {
	teachAt(book, now, target, 1)
}

// teachAt is teach of an engine that has become so many times as slow.
func teachAt(book *profiles.Book, now time.Time, target profiles.Target, slower float64) {
	folded := now
	for _, n := range []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40} {
		occupancy := profiles.NewOccupancy(now)
		streams := make([]*profiles.Stream, n)
		for i := range streams {
			streams[i] = book.Open(target, profiles.Open{Sent: now, Occupancy: occupancy, PromptTokens: 1, Ahead: profiles.Ahead{Known: true}})
		}
		occupancy.Set(now, n)
		now = now.Add(firstTokenAfter)
		const tokens = 300
		for range tokens {
			for _, s := range streams {
				s.Read(now, 1)
			}
			if now.Sub(folded) >= time.Second {
				book.Fold(now)
				folded = now
			}
			now = now.Add(time.Duration(slower * float64(time.Second) / truth(n)))
		}
		for _, s := range streams {
			s.Usage(profiles.Usage{PromptTokens: 1, CompletionTokens: tokens})
			s.Close(now, true)
		}
		occupancy.Set(now, 0)
		now = now.Add(6 * time.Second)
		book.Fold(now)
		folded = now
	}
	book.Fold(now.Add(time.Second)) // who ended before one counts in the margin at the next
}

// occupy places waiting plus decoding requests of chat on h200.
func (w *world) occupy(t testing.TB, waiting, decoding int) {
	t.Helper()
	now := time.Now()
	for i := range waiting + decoding {
		d := w.router.Place(now, router.Request{
			Route: "chat", Arrived: now, PromptTokens: 10, MaxTokens: 100, Stream: true,
			Exclude: []string{l40s.Backend, idle.Backend},
		})
		if d.Lease == nil {
			t.Fatalf("request %d was not placed: %+v", i, d.Refusal)
		}
		if i >= waiting {
			d.Lease.FirstToken(now)
		}
		w.busy = append(w.busy, d.Lease)
	}
}

// get asks the admin port as a browser on this machine would.
func (w *world) get(path string) *httptest.ResponseRecorder {
	return w.do(http.MethodGet, path, "127.0.0.1:9090")
}

func (w *world) do(method, path, host string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://"+host+path, nil)
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return rec
}

// decode reads a good answer, in which no secret may be. Its names and what may be null
// are held by TestAnswersAreAsOpenAPISays.
func decode[T any](t testing.TB, rec *httptest.ResponseRecorder) (got T) {
	t.Helper()
	if rec.Code != http.StatusOK {
		t.Fatalf("status %d, want 200: %s", rec.Code, rec.Body)
	}
	if got := rec.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q, want application/json", got)
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, rec.Body)
	}
	if strings.Contains(rec.Body.String(), "sk-secret") {
		t.Error("the answer holds a secret")
	}
	return got
}

// near is false of what is not known.
func near[F ~float64](got F, want, share float64) bool {
	return math.Abs(float64(got)/want-1) <= share
}

func configListening(listen string) *config.Config { return &config.Config{Listen: listen} }

// inForce is a configuration that is never replaced.
func inForce(c *config.Config) func() *config.Config { return func() *config.Config { return c } }
