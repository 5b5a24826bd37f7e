package telemetry

import (
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/promtest"
)

// Names, types, units and help are as Prometheus wants them, by its own tool.
func TestPromtoolFindsNothing(t *testing.T) {
	m := New(twoRoutes(), []string{"h200", "l40s"}, exampleLive)
	m.Observe(example())
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if said, ok := promtool(t, w.Body.String()); !ok || said != "" {
		t.Errorf("promtool check metrics: %s", said)
	}
	if said, ok := promtool(t, "# TYPE pacer_wrong counter\npacer_wrong 1\n"); ok || said == "" {
		t.Error("promtool finds nothing wrong with a counter that is not named so: it checks nothing")
	}
}

func promtool(t *testing.T, text string) (said string, ok bool) {
	return promtest.Tool(t, ".", text, "check", "metrics")
}

// A real Prometheus reads our histograms as native ones, with their traces.
func TestPrometheusReadsNativeHistograms(t *testing.T) {
	m := New(twoRoutes(), []string{"h200", "l40s"}, exampleLive)
	x := example()
	x.TraceID = "0af7651916cd43dd8448eb211c80319c"
	for range 100 {
		m.Observe(x)
	}
	server := httptest.NewServer(m.Handler())
	defer server.Close()
	p := promtest.Scrape(t, server.URL+"/metrics")

	// The median of 100 streams at 42 tokens/s: of the classic bucket (40, 50] it
	// would be 45; a native bucket is 9 % wide.
	quantile := url.Values{"query": {`histogram_quantile(0.5, pacer_decode_tps{route="chat"})`}}
	p.Query("query", quantile, func(data json.RawMessage) bool {
		var answer struct {
			Result []struct{ Value []json.RawMessage }
		}
		if json.Unmarshal(data, &answer) != nil || len(answer.Result) != 1 {
			return false
		}
		var text string
		var value float64
		if json.Unmarshal(answer.Result[0].Value[1], &text) != nil || json.Unmarshal([]byte(text), &value) != nil {
			return false
		}
		return value > 42/1.1 && value < 42*1.05
	})
	now := time.Now()
	exemplars := url.Values{
		"query": {`{__name__=~"pacer_decode_tps.*"}`}, // as a native one, or as a classic one
		"start": {now.Add(-time.Hour).Format(time.RFC3339)}, "end": {now.Add(time.Hour).Format(time.RFC3339)},
	}
	p.Query("query_exemplars", exemplars, func(data json.RawMessage) bool { return strings.Contains(string(data), x.TraceID) })
}
