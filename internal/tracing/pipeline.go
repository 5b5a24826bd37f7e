package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/resource"
)

// Options configures a Tracer, Metrics or Logs; all fields are required.
type Options struct {
	Getenv  func(string) string // of the standard variables
	Version string              // of the program
	Log     *slog.Logger        // is told when the collector does not take spans, and when it does again
}

// How a signal goes to the collector, in the words of OTEL_EXPORTER_OTLP_PROTOCOL.
const (
	off      = ""
	overHTTP = "http/protobuf" // mostly at port 4318
	overGRPC = "grpc"          // mostly at port 4317
)

// begin reads how a signal (TRACES, METRICS or LOGS) is to be sent, off where nobody
// asks for it, and what it says of who sends it.
func (o *Options) begin(ctx context.Context, signal string) (protocol string, about *resource.Resource, err error) {
	protocol, err = wanted(o.Getenv, signal)
	if protocol == off || err != nil {
		return off, nil, err
	}
	about, err = resource.New(ctx,
		resource.WithAttributes(String("service.name", "pacer"), String("service.version", o.Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv(), // OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES
	)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return off, nil, fmt.Errorf("tracing: %w", err)
	}
	otel.SetErrorHandler(&reporter{log: o.Log}) // the library has one for the process
	return protocol, about, nil
}

// wanted reads which variables turn a signal on, and how it is sent then.
func wanted(getenv func(string) string, signal string) (protocol string, err error) {
	if getenv("OTEL_SDK_DISABLED") == "true" {
		return off, nil
	}
	switch exporter := getenv("OTEL_" + signal + "_EXPORTER"); {
	case exporter == "none", exporter == "prometheus" && signal == "METRICS": // those are at /metrics
		return off, nil
	case exporter == "otlp":
	case exporter == "":
		if getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") == "" {
			return off, nil
		}
	default:
		return off, fmt.Errorf("tracing: OTEL_%s_EXPORTER is %q; write otlp, or none", signal, exporter)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch protocol := getenv(name); protocol {
		case "":
			continue
		case overHTTP, overGRPC:
			return protocol, nil
		default:
			return off, fmt.Errorf("tracing: %s is %q; write %s (port 4318) or %s (port 4317)", name, protocol, overHTTP, overGRPC)
		}
	}
	return overHTTP, nil
}

// exporterOver makes the exporter of a protocol. It connects to nobody yet.
func exporterOver[E any](protocol string, http, grpc func() (E, error)) (exporter E, err error) {
	if protocol == overGRPC {
		exporter, err = grpc()
	} else {
		exporter, err = http()
	}
	if err != nil {
		return exporter, fmt.Errorf("tracing: %w", err)
	}
	return exporter, nil
}

// closeWithin ends a pipeline; what is not out by then is lost.
func closeWithin(limit time.Duration, shutdown func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := shutdown(ctx); err != nil {
		otel.Handle(err)
	}
}

// reporter puts the library's complaints into the log: the first at once, then one a
// minute.
type reporter struct {
	log *slog.Logger

	mu   sync.Mutex // guards what follows; a leaf
	said time.Time
}

// Handle implements otel.ErrorHandler.
func (r *reporter) Handle(err error) {
	r.mu.Lock()
	due := time.Since(r.said) >= time.Minute
	if due {
		r.said = time.Now()
	}
	r.mu.Unlock()
	if due {
		r.log.Warn("traces, metrics or log lines do not reach their collector, and are lost", "error", err.Error())
	}
}
