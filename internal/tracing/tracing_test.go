package tracing

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
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
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false, "write http/protobuf"},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, true, ""},
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
