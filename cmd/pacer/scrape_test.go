package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

// The largest fleet that /metrics is made for.
const (
	manyBackends = 100
	manyRoutes   = 30
)

// largeFleet wires a gateway of many routes, each of which has every backend as a
// target, all with a prior and a floor.
func largeFleet(tb testing.TB) *program {
	tb.Helper()
	var yaml strings.Builder
	yaml.WriteString("listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nbackends:\n")
	for b := range manyBackends {
		fmt.Fprintf(&yaml, "  - { name: backend-%d, url: http://10.0.0.%d:8000/v1, prior: { 1: 52, 8: 47, 64: 31, 256: 12 } }\n", b, b)
	}
	yaml.WriteString("routes:\n")
	for r := range manyRoutes {
		fmt.Fprintf(&yaml, "  - { model: route-%d, slo: { min_tps: 30, max_ttft: 2s }, targets: [", r)
		for b := range manyBackends {
			fmt.Fprintf(&yaml, " { backend: backend-%d, model: llama },", b)
		}
		yaml.WriteString(" ] }\n")
	}
	cfg := parsed(tb, yaml.String())
	p := must.Get(wire(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)), options{}))(tb)
	tb.Cleanup(func() {
		for _, c := range p.close {
			c()
		}
	})
	return p
}

// scrape is one request of Prometheus, with the given Accept.
func scrape(tb testing.TB, p *program, accept string) *httptest.ResponseRecorder {
	tb.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9090/metrics", nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	p.admin.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		tb.Fatalf("scrape: status %d, want 200: %.200s", w.Code, w.Body)
	}
	return w
}

// A fleet that is large and idle does not cost Prometheus much: what nobody uses
// has no series.
func TestAScrapeOfALargeFleetIsSmall(t *testing.T) {
	p := largeFleet(t)
	body := scrape(t, p, "text/plain").Body.String()
	count := 0
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "#") {
			count++
		}
	}
	t.Logf("%d series, %d bytes", count, len(body))
	if len(body) > 2e6 || count > 10000 {
		t.Errorf("a scrape is %d bytes in %d series, want at most 2 MB in 10000", len(body), count)
	}
}

// Budget: 200 ms for a scrape of the largest fleet.
func BenchmarkScrapeOfALargeFleet(b *testing.B) {
	p := largeFleet(b)
	b.ReportAllocs()
	for b.Loop() {
		scrape(b, p, "text/plain")
	}
}
