package tracing

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	collogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/pacer-dev/pacer/internal/must"
)

// What a collector takes over gRPC, counted.
type (
	spans struct {
		coltrace.UnimplementedTraceServiceServer
	}
	figures struct {
		colmetrics.UnimplementedMetricsServiceServer
	}
	lines struct {
		collogs.UnimplementedLogsServiceServer
	}
)

var took struct{ spans, figures, lines atomic.Int64 }

func (spans) Export(_ context.Context, r *coltrace.ExportTraceServiceRequest) (*coltrace.ExportTraceServiceResponse, error) {
	for _, x := range r.ResourceSpans {
		for _, s := range x.ScopeSpans {
			took.spans.Add(int64(len(s.Spans)))
		}
	}
	return &coltrace.ExportTraceServiceResponse{}, nil
}

func (figures) Export(_ context.Context, r *colmetrics.ExportMetricsServiceRequest) (*colmetrics.ExportMetricsServiceResponse, error) {
	for _, x := range r.ResourceMetrics {
		for _, s := range x.ScopeMetrics {
			took.figures.Add(int64(len(s.Metrics)))
		}
	}
	return &colmetrics.ExportMetricsServiceResponse{}, nil
}

func (lines) Export(_ context.Context, r *collogs.ExportLogsServiceRequest) (*collogs.ExportLogsServiceResponse, error) {
	for _, x := range r.ResourceLogs {
		for _, s := range x.ScopeLogs {
			took.lines.Add(int64(len(s.LogRecords)))
		}
	}
	return &collogs.ExportLogsServiceResponse{}, nil
}

// With OTEL_EXPORTER_OTLP_PROTOCOL=grpc all three signals come to a collector's gRPC
// port, in the protocol's own types.
func TestSignalsOverGRPC(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := grpc.NewServer()
	coltrace.RegisterTraceServiceServer(server, spans{})
	colmetrics.RegisterMetricsServiceServer(server, figures{})
	collogs.RegisterLogsServiceServer(server, lines{})
	go server.Serve(l)
	defer server.Stop()
	for name, value := range map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + l.Addr().String(), "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"} {
		t.Setenv(name, value)
	}
	o := Options{Getenv: func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "set", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}[name]
	}, Version: "v1", Log: slog.New(slog.NewTextHandler(t.Output(), nil))}

	tracer := must.Get(New(t.Context(), o))(t)
	s := tracer.Request(http.Header{}, "chat", time.Now())
	s.End(time.Now())
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "asked_total", Help: "what was asked"})
	counter.Inc()
	registry.MustRegister(counter)
	metrics := must.Get(NewMetrics(t.Context(), o, registry))(t)
	logs := must.Get(NewLogs(t.Context(), o))(t)
	slog.New(logs.Handler()).Info("a line")
	tracer.CloseWithin(time.Minute)
	metrics.CloseWithin(time.Minute)
	logs.CloseWithin(time.Minute)
	if n, m, k := took.spans.Load(), took.figures.Load(), took.lines.Load(); n != 1 || m != 1 || k != 1 {
		t.Errorf("the collector took %d spans, %d metrics and %d lines, want one of each", n, m, k)
	}
}
