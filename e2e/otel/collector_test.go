package otel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

func TestMain(m *testing.M) { proctest.Main(m) }

// taken is what a collector has taken.
type taken struct {
	consumertest.TracesSink
	metrics consumertest.MetricsSink
	logs    consumertest.LogsSink
}

// collector starts the receivers of a real collector, which share a port, and returns
// where they listen.
func collector(t *testing.T, protocol string) (url string, sink *taken) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t) // the receiver does not say which port it got
	address := l.Addr().String()
	l.Close()
	factory := otlpreceiver.NewFactory()
	conf := factory.CreateDefaultConfig()
	wanted := confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{protocol: map[string]any{"endpoint": address}}})
	must.Do(t, wanted.Unmarshal(conf))
	sink = &taken{}
	settings := receivertest.NewNopSettings(factory.Type())
	traces, err1 := factory.CreateTraces(context.Background(), settings, conf, &sink.TracesSink)
	metrics, err2 := factory.CreateMetrics(context.Background(), settings, conf, &sink.metrics)
	logs, err3 := factory.CreateLogs(context.Background(), settings, conf, &sink.logs)
	must.Do(t, errors.Join(err1, err2, err3))
	for _, receiver := range []component.Component{traces, metrics, logs} {
		must.Do(t, receiver.Start(context.Background(), componenttest.NewNopHost()))
		t.Cleanup(func() { _ = receiver.Shutdown(context.Background()) })
	}
	return "http://" + address, sink
}

// Ten streams are ten traces of the collector's, each with its request, its attempt
// and its phases. Its metrics count them, and each has a log line.
func TestTheCollectorTakesAllOurSignals(t *testing.T) {
	for protocol, receiver := range map[string]string{"http/protobuf": "http", "grpc": "grpc"} {
		t.Run(receiver, func(t *testing.T) { takesAll(t, protocol, receiver) })
	}
}

func takesAll(t *testing.T, protocol, receiver string) {
	url, taken := collector(t, receiver)
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "10")
	gateway := proctest.Start(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + url, "OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol, "OTEL_SERVICE_NAME=pacer-test"}, "serve", "-c", proctest.Write(t, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
backends: [ { name: gpu, url: %s/v1, kind: vllm } ]
routes: [ { model: chat, targets: [ { backend: gpu, model: llama-3.1-70b } ] } ]
`, engine.Ready["url"])))
	client := &loadgen.Client{BaseURL: gateway.Ready["data"] + "/v1", HTTP: &http.Client{Timeout: 30 * time.Second}}
	const streams = 10
	for range streams {
		if r := client.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 100, MaxTokens: 20}); r.Outcome != loadgen.Done {
			t.Fatalf("a stream: %v (%v)", r.Outcome, r.Err)
		}
	}
	if code := gateway.Stop(syscall.SIGTERM); code != 0 { // which sends what is left
		t.Fatalf("exit code %d\n%s", code, gateway.Log())
	}

	counts, kinds, tokens := map[string]int{}, map[ptrace.SpanKind]int{}, int64(0)
	for _, traces := range taken.AllTraces() {
		for _, resource := range traces.ResourceSpans().All() {
			if name, _ := resource.Resource().Attributes().Get("service.name"); name.Str() != "pacer-test" {
				t.Errorf("service.name is %q, want that of OTEL_SERVICE_NAME", name.Str())
			}
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					counts[span.Name()]++
					kinds[span.Kind()]++
					if out, ok := span.Attributes().Get("gen_ai.usage.output_tokens"); ok && span.Kind() == ptrace.SpanKindClient {
						tokens += out.Int()
					}
				}
			}
		}
	}
	if counts["chat chat"] != streams || counts["read"] != streams || counts["stream"] != streams || kinds[ptrace.SpanKindClient] != streams || tokens != 20*streams {
		t.Errorf("the collector has %v, of kinds %v, and %d tokens", counts, kinds, tokens)
	}
	requests, histogram := 0.0, false
	for _, metrics := range taken.metrics.AllMetrics() {
		for _, resource := range metrics.ResourceMetrics().All() {
			for _, scope := range resource.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					switch m.Name() {
					case "pacer_requests_total":
						requests = 0 // each message has the sums since the start
						for _, point := range m.Sum().DataPoints().All() {
							requests += point.DoubleValue()
						}
					case "pacer_ttft_seconds":
						histogram = m.Type() == pmetric.MetricTypeExponentialHistogram || m.Type() == pmetric.MetricTypeHistogram
					}
				}
			}
		}
	}
	if requests != streams || !histogram {
		t.Errorf("by the metrics %v requests were served, and a histogram of first tokens is there: %v", requests, histogram)
	}
	lines, of := 0, map[string]bool{}
	for _, logs := range taken.logs.AllLogs() {
		for _, resource := range logs.ResourceLogs().All() {
			for _, scope := range resource.ScopeLogs().All() {
				for _, line := range scope.LogRecords().All() {
					if id, is := line.Attributes().Get("request"); is {
						lines++
						of[id.Str()] = true
					}
				}
			}
		}
	}
	if lines != streams || len(of) != streams {
		t.Errorf("%d lines of %d requests came, want one of each of %d", lines, len(of), streams)
	}
}
