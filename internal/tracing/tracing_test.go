package tracing

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Which variables turn tracing on, and which words are refused with what to write.
func TestWhatTurnsItOn(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		on   bool
		says string // of the error
	}{
		{nil, false, ""},
		{map[string]string{"OTEL_SERVICE_NAME": "x"}, false, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, true, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, true, ""},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true, ""},
		{map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, false, ""},
		{map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}, false, ""},
		{map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, false, "write otlp, or none"},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, false, "write http/protobuf (port 4318) or grpc (port 4317)"},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, true, ""},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, true, ""},
	} {
		tracer, err := New(context.Background(), Options{
			Getenv: func(name string) string { return c.env[name] }, Version: "v1", Log: slog.New(slog.DiscardHandler),
		})
		if (tracer != nil) != c.on || (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: a tracer %v (%v), want %v %q", c.env, tracer != nil, err, c.on, c.says)
		}
		tracer.CloseWithin(time.Nanosecond)
	}
}

// Where nobody follows, everything does nothing and costs nothing.
func TestOffCostsNothing(t *testing.T) {
	var tracer *Tracer
	h := http.Header{}
	if n := testing.AllocsPerRun(1000, func() { follow(tracer, h) }); n > 0 {
		t.Errorf("without a tracer a request allocates %.1f times, want 0", n)
	}
	if len(h) > 0 {
		t.Errorf("headers were written: %v", h)
	}
}

func follow(tracer *Tracer, h http.Header) {
	s := tracer.Request(h, "chat", time.Time{})
	a := s.Attempt("chat", time.Time{})
	a.Inject(h)
	a.End(time.Time{})
	s.Rename("chat chat")
	s.TraceID()
	s.End(time.Time{})
}

// Budget: 5 ns.
func BenchmarkOff(b *testing.B) {
	var tracer *Tracer
	h := http.Header{}
	b.ReportAllocs()
	for b.Loop() {
		follow(tracer, h)
	}
}

// Metrics and log lines follow the same words, each signal its own.
func TestSignalsAreTurnedOnOneByOne(t *testing.T) {
	for _, c := range []struct {
		env           map[string]string
		metrics, logs bool
		says          string
	}{
		{nil, false, false, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, true, true, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_METRICS_EXPORTER": "none"}, false, true, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_METRICS_EXPORTER": "prometheus", "OTEL_LOGS_EXPORTER": "none"}, false, false, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, false, false, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://127.0.0.1:4318/v1/logs"}, false, true, ""},
		{map[string]string{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_LOGS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, false, false, "write http/protobuf"},
		{map[string]string{"OTEL_METRICS_EXPORTER": "console", "OTEL_LOGS_EXPORTER": "console"}, false, false, "write otlp, or none"},
	} {
		o := Options{Getenv: func(name string) string { return c.env[name] }, Version: "v1", Log: slog.New(slog.DiscardHandler)}
		metrics, err1 := NewMetrics(context.Background(), o, prometheus.NewRegistry())
		logs, err2 := NewLogs(context.Background(), o)
		for _, err := range []error{err1, err2} {
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v: %v, want %q", c.env, err, c.says)
			}
		}
		if (metrics != nil) != c.metrics || (logs != nil) != c.logs {
			t.Errorf("%v: metrics %v, logs %v, want %v and %v", c.env, metrics != nil, logs != nil, c.metrics, c.logs)
		}
		metrics.CloseWithin(time.Nanosecond)
		logs.CloseWithin(time.Nanosecond)
	}
}
