// Package tracing tells a collector what became of each request, and gives it metrics
// and log lines, by OpenTelemetry's own library and its standard variables:
// OTEL_EXPORTER_OTLP_ENDPOINT turns it on, and without it there is no Tracer. A nil
// Tracer and a nil Span are valid, do nothing, and cost nothing.
//
// A span is told of as it begins, because its number goes to the backend in
// traceparent, and is ended with the times that the gateway measured. What is
// exported waits in a bounded queue: a collector that is slow or gone loses spans
// and holds nobody up.
package tracing

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Attribute is a fact about a span.
type Attribute = attribute.KeyValue

// The facts that there are, by their type.
var (
	String = attribute.String
	Int    = attribute.Int
	Float  = attribute.Float64
	Bool   = attribute.Bool
)

// Tracer begins the spans of requests. It is safe for concurrent use.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// New returns a Tracer as the environment says; nil where it asks for none. What it
// cannot do is an error, that a collector is not there is none.
func New(ctx context.Context, o Options) (*Tracer, error) {
	protocol, about, err := o.begin(ctx, "TRACES")
	if protocol == off || err != nil {
		return nil, err
	}
	exporter, err := exporterOver(protocol, // endpoint, headers, certificates, timeout by OTEL_EXPORTER_OTLP_…
		func() (sdktrace.SpanExporter, error) { return otlptracehttp.New(ctx) },
		func() (sdktrace.SpanExporter, error) { return otlptracegrpc.New(ctx) })
	if err != nil {
		return nil, err
	}
	provider := sdktrace.NewTracerProvider( // sampler, limits and queue by OTEL_TRACES_SAMPLER, OTEL_SPAN_…, OTEL_BSP_…
		sdktrace.WithBatcher(exporter), sdktrace.WithResource(about),
	)
	return &Tracer{provider, provider.Tracer("github.com/pacer-dev/pacer", trace.WithInstrumentationVersion(o.Version))}, nil
}

// CloseWithin sends what is left, for at most that long: what is not out by then is
// lost.
func (t *Tracer) CloseWithin(limit time.Duration) {
	if t != nil {
		closeWithin(limit, t.provider.Shutdown)
	}
}

// Request begins the span of a request with these headers, as a part of the trace
// that they name.
func (t *Tracer) Request(h http.Header, name string, at time.Time) *Span {
	if t == nil {
		return nil
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(h))
	return t.begin(ctx, name, trace.SpanKindServer, at)
}

func (t *Tracer) begin(ctx context.Context, name string, kind trace.SpanKind, at time.Time) *Span {
	s := &Span{Began: at, tracer: t}
	s.ctx, s.span = t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(at))
	return s
}

// Span is a piece of a request's time. It belongs to one goroutine.
type Span struct {
	Began time.Time

	tracer *Tracer
	ctx    context.Context
	span   trace.Span
}

// Attempt begins the span of one try at a backend.
func (s *Span) Attempt(name string, at time.Time) *Span {
	if s == nil {
		return nil
	}
	return s.tracer.begin(s.ctx, name, trace.SpanKindClient, at)
}

// Phase tells of a part of s that is over.
func (s *Span) Phase(name string, from, to time.Time, facts ...Attribute) {
	if s == nil || from.IsZero() || to.Before(from) {
		return
	}
	_, span := s.tracer.tracer.Start(s.ctx, name, trace.WithTimestamp(from), trace.WithAttributes(facts...))
	span.End(trace.WithTimestamp(to))
}

// Event tells what happened at an instant.
func (s *Span) Event(name string, at time.Time, facts ...Attribute) {
	if s != nil {
		s.span.AddEvent(name, trace.WithTimestamp(at), trace.WithAttributes(facts...))
	}
}

// Set adds facts.
func (s *Span) Set(facts ...Attribute) {
	if s != nil {
		s.span.SetAttributes(facts...)
	}
}

// Rename gives s the name that was not known when it began.
func (s *Span) Rename(name string) {
	if s != nil {
		s.span.SetName(name)
	}
}

// Fail marks s as failed; kind is a word of a closed set.
func (s *Span) Fail(kind string) {
	if s != nil {
		s.span.SetStatus(codes.Error, kind)
		s.span.SetAttributes(String("error.type", kind))
	}
}

// End ends s.
func (s *Span) End(at time.Time) {
	if s != nil {
		s.span.End(trace.WithTimestamp(at))
	}
}

// Inject names s in the headers of a request that is sent because of it.
func (s *Span) Inject(h http.Header) {
	if s != nil {
		propagation.TraceContext{}.Inject(s.ctx, propagation.HeaderCarrier(h))
	}
}

// TraceID is the trace that s is part of, and whether it is recorded; "" of a nil
// Span.
func (s *Span) TraceID() (id string, recorded bool) {
	if s == nil {
		return "", false
	}
	c := s.span.SpanContext()
	return c.TraceID().String(), c.IsSampled()
}
