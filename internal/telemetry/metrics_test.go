package telemetry

import (
	"flag"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-dev/pacer/internal/must"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// scrape returns what Prometheus would get, without the metrics of the Go
// runtime and the process, which are none of ours.
func scrape(t testing.TB, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("scrape: status %d, want 200: %s", w.Code, w.Body)
	}
	var ours strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		if strings.Contains(line, "pacer_") {
			ours.WriteString(line)
		}
	}
	return ours.String()
}

// series returns the scraped lines that hold every one of the words.
func series(text string, words ...string) []string {
	var out []string
next:
	for line := range strings.Lines(text) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue next
			}
		}
		out = append(out, strings.TrimSpace(line))
	}
	return out
}

func wantSeries(t *testing.T, text, want string) {
	t.Helper()
	name := strings.Fields(want)[0]
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == want {
			return
		}
	}
	t.Errorf("scrape: got %q, want %q", series(text, name), want)
}

func twoRoutes() map[string]string {
	return map[string]string{"chat": "interactive", "nightly": "batch"}
}

func exampleLive() Live {
	return Live{
		Causes:      []LiveCause{{Route: "chat", Kind: "overload"}, {Backend: "h200", Kind: "slower"}},
		Discoveries: []LiveDiscovery{{Backend: "h200", Up: true, Engines: 3, Draining: 1}},
		Backends: []LiveBackend{
			{Name: "h200", Kind: "vllm", Waiting: 3, Decoding: 12, Below: 2, Scale: 0.5, Engine: &LiveEngine{Up: true, ForeignWaiting: 1, ForeignDecoding: 7}},
			{Name: "l40s", Kind: "openai", BreakerState: 2},
		},
		Routes: []LiveRoute{
			{
				Name: "chat", Class: "interactive", Prefer: "headroom", Goal: 0.99, FloorTPS: 30, MaxTTFT: 2 * time.Second,
				Queued: 4, Capacity: map[string]int{"h200": 64, "l40s": 0}, Free: 49, Running: 15,
			},
			{Name: "nightly", Class: "batch", Prefer: "pack", Goal: 0.9, Capacity: map[string]int{"l40s": 0}, Unlimited: true},
		},
		Targets: []LiveTarget{
			{Backend: "h200", Model: "llama", BytesPerToken: 4.5, Points: []LivePoint{{N: 1, TPS: 52, Low: 46.8}, {N: 2, TPS: 50, Low: math.NaN()}}},
			{Backend: "l40s", Model: "llama", Points: []LivePoint{{N: 1, TPS: math.NaN(), Low: math.NaN()}}},
		},
		Build: LiveBuild{Version: "v1.2.3", Revision: "8875d4f", Go: "go1.26"}, CertificateEnds: time.Unix(2e9, 0),
	}
}

func example() Exchange {
	return Exchange{
		Route: "chat", Backend: "h200", Class: "interactive", Outcome: "ok", Counted: true, Result: Met,
		TTFT: 300 * time.Millisecond, TPS: 42, Duration: 9 * time.Second, Waited: 20 * time.Millisecond,
		Overhead: 40 * time.Microsecond, Predicted: 40,
		InputTokens: 1000, CachedTokens: 600, OutputTokens: 400, Source: "usage", CostUSD: 0.25,
	}
}

// Every name and label set of the documentation: at 0 before the first request,
// or, for a route on a backend, since one that brought nothing.
func TestEverythingExistsFromTheStart(t *testing.T) {
	m := New(twoRoutes(), []string{"h200", "l40s"}, exampleLive)
	m.Observe(Exchange{Route: "chat", Backend: "h200", Class: "interactive", Outcome: "rejected"})
	got := scrape(t, m)
	file := filepath.Join("testdata", "start.txt")
	if *update {
		must.Do(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want := must.Get(os.ReadFile(file))(t)
	if got == string(want) {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("%s:%d: got %q, want %q; go test -update rewrites it", file, i+1, g[i], w[i])
		}
	}
	t.Fatalf("%s: got %d lines, want %d; go test -update rewrites it", file, len(g), len(w))
}

// What is of a route on a backend exists from its first use: of many routes and
// backends few pairs are ever used. All outcomes come together, so that those
// that follow start at 0.
func TestPairsExistFromTheirFirstUse(t *testing.T) {
	m := New(twoRoutes(), []string{"h200", "l40s"}, exampleLive)
	isPair := func(line string) bool {
		return strings.Contains(line, `route="`) && strings.Contains(line, `backend="`) && !strings.Contains(line, `backend=""`) && !strings.HasPrefix(line, "pacer_capacity_streams{")
	}
	for line := range strings.Lines(scrape(t, m)) {
		if isPair(line) {
			t.Errorf("before the first request: %s", line)
		}
	}
	m.Observe(example())
	text := scrape(t, m)
	wantSeries(t, text, `pacer_requests_total{backend="h200",class="interactive",outcome="ok",route="chat"} 1`)
	wantSeries(t, text, `pacer_requests_total{backend="h200",class="interactive",outcome="cut",route="chat"} 0`)
	for line := range strings.Lines(text) {
		if isPair(line) && (!strings.Contains(line, `backend="h200"`) || !strings.Contains(line, `route="chat"`)) {
			t.Errorf("never used: %s", line)
		}
	}
}

func TestObserve(t *testing.T) {
	m := New(twoRoutes(), []string{"h200", "l40s"}, exampleLive)
	hedged := example()
	hedged.Hedge = HedgeWon
	m.Observe(hedged)
	text := scrape(t, m)
	for _, want := range []string{
		`pacer_requests_total{backend="h200",class="interactive",outcome="ok",route="chat"} 1`,
		`pacer_slo_total{result="met",route="chat"} 1`,
		`pacer_hedges_total{result="won",route="chat"} 1`,
		`pacer_hedges_total{result="lost",route="chat"} 0`,
		`pacer_ttft_seconds_bucket{backend="h200",class="interactive",route="chat",le="0.2"} 0`,
		`pacer_ttft_seconds_bucket{backend="h200",class="interactive",route="chat",le="0.5"} 1`,
		`pacer_decode_tps_bucket{backend="h200",class="interactive",route="chat",le="40"} 0`,
		`pacer_decode_tps_bucket{backend="h200",class="interactive",route="chat",le="50"} 1`,
		`pacer_stream_duration_seconds_sum{backend="h200",class="interactive",route="chat"} 9`,
		`pacer_queue_wait_seconds_count{route="chat"} 1`,
		`pacer_prediction_ratio_sum{backend="h200"} 1.05`,
		`pacer_overhead_seconds_count 1`,
		`pacer_tokens_total{backend="h200",direction="input",route="chat",source="usage"} 1000`,
		`pacer_tokens_total{backend="h200",direction="input_cached",route="chat",source="usage"} 600`,
		`pacer_tokens_total{backend="h200",direction="output",route="chat",source="usage"} 400`,
		`pacer_cost_usd_total{backend="h200",route="chat"} 0.25`,
	} {
		wantSeries(t, text, want)
	}

	x := example()
	x.Source = "chunks" // then nobody has said how long the prompt was
	m.Observe(x)
	m.Observe(Exchange{Route: "chat", Class: "interactive", Outcome: "shed", Counted: true, Result: Shed, ShedReason: "queue_full", Waited: time.Second})
	m.Observe(Exchange{Route: "nightly", Outcome: "shed", Counted: true, Result: Shed, ShedReason: "no_backend"})
	text = scrape(t, m)
	for _, want := range []string{
		`pacer_tokens_total{backend="h200",direction="output",route="chat",source="chunks"} 400`,
		`pacer_tokens_total{backend="h200",direction="input",route="chat",source="estimate"} 1000`,
		`pacer_requests_total{backend="",class="interactive",outcome="shed",route="chat"} 1`,
		`pacer_requests_total{backend="",class="batch",outcome="shed",route="nightly"} 1`, // the class of the route
		`pacer_slo_total{result="shed",route="chat"} 1`,
		`pacer_slo_total{result="shed",route="nightly"} 1`,
		`pacer_shed_total{reason="queue_full",route="chat"} 1`,
		`pacer_ttft_seconds_count{backend="h200",class="interactive",route="chat"} 2`, // not of the refused
	} {
		wantSeries(t, text, want)
	}
}

// A request that counts for no SLO is a request all the same.
func TestNotCountedForTheSLO(t *testing.T) {
	m := New(twoRoutes(), []string{"h200"}, nil)
	m.Observe(Exchange{Route: "chat", Class: "interactive", Outcome: "rejected"})
	text := scrape(t, m)
	wantSeries(t, text, `pacer_requests_total{backend="",class="interactive",outcome="rejected",route="chat"} 1`)
	wantSeries(t, text, `pacer_slo_total{result="met",route="chat"} 0`)
	if s := m.Route("chat"); s.Offered != 0 {
		t.Errorf("offered %d, want 0", s.Offered)
	}
}

func TestLabelsAreClosed(t *testing.T) {
	m := New(twoRoutes(), []string{"h200"}, nil)
	for range 3 {
		m.Observe(Exchange{Route: "sk-secret", Backend: "evil", Class: "vip", Outcome: "rejected"})
	}
	x := example()
	x.Backend, x.Class, x.Outcome, x.ShedReason = "evil", "vip", "exploded", "mood"
	m.Observe(x)
	text := scrape(t, m)
	wantSeries(t, text, `pacer_requests_total{backend="",class="interactive",outcome="rejected",route="unknown"} 3`)
	wantSeries(t, text, `pacer_requests_total{backend="",class="interactive",outcome="upstream_error",route="chat"} 1`)
	for _, made := range []string{"sk-secret", "evil", "vip", "exploded", "mood"} {
		if got := series(text, made); len(got) > 0 {
			t.Errorf("a made-up label value is exported: %q", got)
		}
	}
}

// A stream without figures must not enter them as zeros or NaN.
func TestUnmeasuredIsNoFigure(t *testing.T) {
	m := New(twoRoutes(), []string{"h200"}, nil)
	for _, tps := range []float64{0, math.NaN(), -1} {
		m.Observe(Exchange{Route: "chat", Backend: "h200", Outcome: "ok", Counted: true, Result: Unmeasured, TPS: tps, Predicted: 30})
	}
	text := scrape(t, m)
	for _, name := range []string{"pacer_ttft_seconds", "pacer_decode_tps", "pacer_stream_duration_seconds"} {
		wantSeries(t, text, name+`_count{backend="h200",class="interactive",route="chat"} 0`)
	}
	wantSeries(t, text, `pacer_prediction_ratio_count{backend="h200"} 0`)
	wantSeries(t, text, `pacer_slo_total{result="unmeasured",route="chat"} 3`)
}

// What the router no longer knows is gone from the next scrape.
func TestLiveIsNeverStale(t *testing.T) {
	l := exampleLive()
	m := New(twoRoutes(), []string{"h200", "l40s"}, func() Live { return l })
	if text := scrape(t, m); len(series(text, "pacer_inflight", "l40s")) != 2 || len(series(text, "pacer_curve_tps", "h200")) == 0 {
		t.Fatalf("the load of l40s or the curve of h200 is missing in\n%s", text)
	}
	l = Live{Backends: l.Backends[:1]}
	text := scrape(t, m)
	for _, words := range [][]string{{"pacer_inflight", "l40s"}, {"pacer_curve_tps{"}, {"pacer_queue_depth{"}, {"pacer_capacity_streams{"}} {
		if got := series(text, words...); len(got) > 0 {
			t.Errorf("still exported: %q", got)
		}
	}
	wantSeries(t, text, `pacer_inflight{backend="h200",phase="decoding"} 12`)
}

// Those that stay keep what they counted.
func TestConfigureAdds(t *testing.T) {
	m := New(twoRoutes(), []string{"h200"}, nil)
	m.Observe(example())
	m.Configure(map[string]string{"chat": "interactive", "code": "interactive"}, []string{"h200", "b300"})
	text := scrape(t, m)
	wantSeries(t, text, `pacer_requests_total{backend="",class="interactive",outcome="ok",route="code"} 0`)
	wantSeries(t, text, `pacer_prediction_ratio_count{backend="b300"} 0`)
	wantSeries(t, text, `pacer_requests_total{backend="h200",class="interactive",outcome="ok",route="chat"} 1`)
	if s := m.Route("chat"); s.Offered != 1 {
		t.Errorf("after a reload chat was offered %d, want 1", s.Offered)
	}
}

// Names that are gone take everything with them, and what ends under them later
// brings nothing back.
func TestConfigureForgets(t *testing.T) {
	m := New(map[string]string{"chat": "interactive", "unknown": "interactive"}, []string{"stays"}, nil)
	stays := example()
	stays.Backend = "stays"
	m.Observe(stays)
	fresh := scrape(t, m)
	for i := range 100 {
		m.Configure(map[string]string{"chat": "interactive", "unknown": "interactive", fmt.Sprintf("route-%d", i): "batch"}, []string{"stays", fmt.Sprintf("pod-%d", i)})
		for late := range 2 { // of this configuration, and of the one before
			x := example()
			x.Route, x.Backend, x.Overhead = fmt.Sprintf("route-%d", i-late), fmt.Sprintf("pod-%d", i-late), 0
			m.Observe(x)
			x.Route, x.Class, x.Outcome = "chat", "batch", "shed"
			m.Observe(x)
		}
	}
	m.Configure(map[string]string{"chat": "interactive"}, []string{"stays"})
	m.Observe(Exchange{Route: "route-99", Backend: "stays", Outcome: "cut"})
	m.Observe(Exchange{Route: "chat", Backend: "pod-99", Outcome: "cut"})
	m.newPair(pairKey{"chat", "pod-99", "batch"}) // as by one that looked just before
	m.newPair(pairKey{"route-99", "stays", "batch"})
	text := scrape(t, m)
	for _, gone := range []string{"route-", "pod-"} {
		if got := series(text, `"`+gone); len(got) > 0 {
			t.Errorf("%d series of names that are gone, as %q", len(got), got[0])
		}
	}
	wantSeries(t, text, `pacer_requests_total{backend="",class="interactive",outcome="cut",route="chat"} 1`)
	wantSeries(t, text, `pacer_requests_total{backend="",class="interactive",outcome="cut",route="unknown"} 1`)
	wantSeries(t, text, `pacer_requests_total{backend="stays",class="interactive",outcome="ok",route="chat"} 1`)
	// What was added is of the other class, without a backend.
	if got, had := len(strings.Split(text, "\n")), len(strings.Split(fresh, "\n")); got > had+2*len(outcomes) {
		t.Errorf("%d lines, %d before a hundred names came and went", got, had)
	}
	b := m.bound.Load()
	if len(b.pairs) > 8 || len(b.routes) != 1 || len(b.backends) != 1 {
		t.Errorf("%d pairs, %d routes, %d backends are held", len(b.pairs), len(b.routes), len(b.backends))
	}
	if s := m.Route("route-99"); s.Offered != 0 {
		t.Errorf("a route that is gone was offered %d", s.Offered)
	}
}

func TestStore(t *testing.T) {
	m := New(nil, nil, nil)
	wantSeries(t, scrape(t, m), "pacer_store_up 0")
	m.StoreUp(true)
	m.StoreLag(2500 * time.Millisecond)
	wantSeries(t, scrape(t, m), "pacer_store_up 1")
	wantSeries(t, scrape(t, m), "pacer_store_lag_seconds 2.5")
	m.StoreUp(false)
	wantSeries(t, scrape(t, m), "pacer_store_up 0")
}

func TestConcurrentUse(t *testing.T) {
	m := New(twoRoutes(), []string{"h200"}, exampleLive)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 200 {
				x := example()
				if (i+j)%2 == 0 {
					x.Class = "batch" // a series that does not exist from the start
				}
				m.Observe(x)
				if j%50 == 0 {
					scrape(t, m)
					m.Route("chat")
					m.Configure(map[string]string{"chat": "interactive", fmt.Sprint(j): "batch"}, []string{"h200", fmt.Sprint(i)})
				}
			}
		})
	}
	wg.Wait()
	if s := m.Route("chat"); s.Offered != 800 || s.TPSCount != 800 {
		t.Errorf("offered %d with %d measured, want 800 and 800", s.Offered, s.TPSCount)
	}
}

// Budget: 2 µs and no allocation.
func BenchmarkObserve(b *testing.B) {
	m := New(twoRoutes(), []string{"h200", "l40s"}, nil)
	x := example()
	m.Observe(x)
	b.ReportAllocs()
	for b.Loop() {
		m.Observe(x)
	}
}

// A page asks for every route once a second.
func BenchmarkRoute(b *testing.B) {
	m := New(twoRoutes(), []string{"h200"}, nil)
	m.Observe(example())
	b.ReportAllocs()
	for b.Loop() {
		m.Route("chat")
	}
}

func TestObserveDoesNotAllocate(t *testing.T) {
	m := New(twoRoutes(), []string{"h200"}, nil)
	x := example()
	m.Observe(x)
	if n := testing.AllocsPerRun(1000, func() { m.Observe(x) }); n > 0 {
		t.Errorf("Observe allocates %.2f times, want 0", n)
	}
}

// Each metric of the list is exported as it says, and no other is.
func TestCatalog(t *testing.T) {
	m := New(twoRoutes(), []string{"h200", "l40s"}, exampleLive)
	m.Observe(example())
	families := must.Get(m.gather())(t)
	var listed, exported []string
	for _, c := range Catalog() {
		labels := slices.Clone(c.Labels)
		slices.Sort(labels)
		listed = append(listed, fmt.Sprintf("%s %s %v", c.Name, []string{"GAUGE", "COUNTER", "HISTOGRAM"}[c.Kind], labels))
	}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "pacer_") {
			continue
		}
		labels := []string{}
		for _, l := range f.Metric[0].Label {
			labels = append(labels, l.GetName())
		}
		exported = append(exported, fmt.Sprintf("%s %s %v", f.GetName(), f.GetType(), labels))
	}
	if diff := cmp.Diff(listed, exported); diff != "" {
		t.Errorf("listed, but not exported (-), and exported, but not listed (+):\n%s", diff)
	}
}

// A recorded trace stands beside the figures of its request, where it can be asked
// for; what has none costs nothing.
func TestExemplars(t *testing.T) {
	m := New(twoRoutes(), []string{"h200"}, nil)
	x := example()
	x.TraceID = "0af7651916cd43dd8448eb211c80319c"
	m.Observe(x)
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, r)
	for name, value := range map[string]string{"pacer_ttft_seconds": "0.3", "pacer_decode_tps": "42.0", "pacer_stream_duration_seconds": "9.0"} {
		want := `# {trace_id="` + x.TraceID + `"} ` + value
		if got := series(w.Body.String(), name+"_bucket{", "trace_id"); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s: exemplars %q, want one with %s", name, got, want)
		}
	}
	if strings.Contains(scrape(t, m), "trace_id") {
		t.Error("the text of a scraper that cannot read exemplars has some")
	}
}

// A route on a backend that is used is few series.
func TestAUsedPairIsFewSeries(t *testing.T) {
	m := New(twoRoutes(), []string{"h200", "l40s"}, nil)
	m.Observe(example())
	before := strings.Count(scrape(t, m), "\n")
	x := example()
	x.Backend = "l40s"
	m.Observe(x)
	if more := strings.Count(scrape(t, m), "\n") - before; more > 50 {
		t.Errorf("a route on one more backend is %d series, want at most 50", more)
	}
}
