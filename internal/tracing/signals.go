package tracing

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/contrib/bridges/otelslog"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// Metrics sends to a collector what a scrape of /metrics would show, each minute or as
// OTEL_METRIC_EXPORT_INTERVAL says. nil is one that sends nothing.
type Metrics struct{ provider *sdkmetric.MeterProvider }

// NewMetrics returns Metrics of what all gathers, as the environment says; nil where it
// asks for none.
func NewMetrics(ctx context.Context, o Options, all prometheus.Gatherer) (*Metrics, error) {
	protocol, about, err := o.begin(ctx, "METRICS")
	if protocol == off || err != nil {
		return nil, err
	}
	exporter, err := exporterOver(protocol,
		func() (sdkmetric.Exporter, error) { return otlpmetrichttp.New(ctx) },
		func() (sdkmetric.Exporter, error) { return otlpmetricgrpc.New(ctx) })
	if err != nil {
		return nil, err
	}
	reader := sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(all))))
	return &Metrics{sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(about))}, nil
}

// CloseWithin sends the last figures, for at most that long.
func (m *Metrics) CloseWithin(limit time.Duration) {
	if m != nil {
		closeWithin(limit, m.provider.Shutdown)
	}
}

// Logs sends log lines to a collector. They wait in a bounded queue, and who logs never
// waits. nil is one that sends nothing.
type Logs struct{ provider *sdklog.LoggerProvider }

// NewLogs returns Logs as the environment says; nil where it asks for none.
func NewLogs(ctx context.Context, o Options) (*Logs, error) {
	protocol, about, err := o.begin(ctx, "LOGS")
	if protocol == off || err != nil {
		return nil, err
	}
	exporter, err := exporterOver(protocol,
		func() (sdklog.Exporter, error) { return otlploghttp.New(ctx) },
		func() (sdklog.Exporter, error) { return otlploggrpc.New(ctx) })
	if err != nil {
		return nil, err
	}
	return &Logs{sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)), sdklog.WithResource(about))}, nil
}

// Handler takes the lines.
func (l *Logs) Handler() slog.Handler {
	return otelslog.NewHandler("github.com/pacer-dev/pacer", otelslog.WithLoggerProvider(l.provider))
}

// CloseWithin sends what is left, for at most that long.
func (l *Logs) CloseWithin(limit time.Duration) {
	if l != nil {
		closeWithin(limit, l.provider.Shutdown)
	}
}
