package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/endpoint"
)

const (
	traceID     = "0af7651916cd43dd8448eb211c80319c"
	traceparent = "00-" + traceID + "-b7ad6b7169203331-01"
)

func TestTraceOf(t *testing.T) {
	for header, want := range map[string]trace{
		traceparent:                                                 {traceID, true},
		"00-" + traceID + "-b7ad6b7169203331-00":                    {traceID, false},
		"00-" + traceID + "-b7ad6b7169203331-ff":                    {traceID, true},
		"01-" + traceID + "-b7ad6b7169203331-01-more":               {traceID, true}, // of a later version
		"00-" + traceID + "-b7ad6b7169203331-01-more":               {},
		"01-" + traceID + "-b7ad6b7169203331-01more":                {},
		"ff-" + traceID + "-b7ad6b7169203331-01":                    {},
		"00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01":    {},
		"00-" + traceID + "-0000000000000000-01":                    {},
		"00-" + strings.ToUpper(traceID) + "-b7ad6b7169203331-01":   {},
		"00-" + traceID[:31] + "\n-b7ad6b7169203331-01":             {},
		"00-" + traceID + "-b7ad6b7169203331":                       {},
		"0g-" + traceID + "-b7ad6b7169203331-01":                    {},
		"00_" + traceID + "_b7ad6b7169203331_01":                    {},
		"":                                                          {},
		strings.Repeat("0", 55):                                     {},
		"00-" + traceID + "-b7ad6b7169203331-0x":                    {},
		"00-" + traceID + "-b7ad6b716920333g-01":                    {},
		"00-" + traceID + "-b7ad6b7169203331-01" + "\x00-secret-01": {},
	} {
		if got := traceOf(http.Header{"Traceparent": {header}}); got != want {
			t.Errorf("%q: got %+v, want %+v", header, got, want)
		}
	}
	if got := traceOf(http.Header{"Traceparent": {traceparent, traceparent}}); got != (trace{}) {
		t.Errorf("of two headers: got %+v, want none", got)
	}
}

// Every word for an operation is of an endpoint that there is.
func TestOperationsAreOfEndpoints(t *testing.T) {
	for path := range operations {
		if endpoint.Of(path).Path != path {
			t.Errorf("no endpoint is at %s", path)
		}
	}
}

// The trace of a client goes up as it came, stands in the log line, and, where it
// is recorded, beside the figures of its request.
func TestTheTraceOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := ""
		engine := asker()
		answer := engine.answer
		engine.answer = func(w http.ResponseWriter, r *http.Request) {
			up = r.Header.Get("Traceparent")
			pause(r, time.Second)
			answer(w, r)
		}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		exemplars := func() int {
			r := httptest.NewRequest("GET", "/metrics", nil)
			r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
			w := httptest.NewRecorder()
			h.metrics.Handler().ServeHTTP(w, r)
			return strings.Count(w.Body.String(), `# {trace_id="`+traceID+`"}`)
		}
		for _, c := range []struct {
			header, trace string
			shown         bool
		}{
			{"", "", false},
			{"no-trace", "", false},
			{"00-" + traceID + "-b7ad6b7169203331-00", traceID, false},
			{traceparent, traceID, true},
		} {
			if r := h.post(chat, streamBody, "Traceparent", c.header); r.status != 200 {
				t.Fatalf("status %d, want 200", r.status)
			}
			if up != c.header {
				t.Errorf("the backend got traceparent %q, want %q", up, c.header)
			}
			if line := h.last(); line.Trace != c.trace {
				t.Errorf("log line with trace %q, want %q", line.Trace, c.trace)
			}
			if got := exemplars(); (got > 0) != c.shown {
				t.Errorf("%q: %d exemplars, want some: %v", c.header, got, c.shown)
			}
		}
	})
}

func BenchmarkTraceOf(b *testing.B) {
	h := http.Header{"Traceparent": {traceparent}}
	b.ReportAllocs()
	for b.Loop() {
		traceOf(h)
	}
}
