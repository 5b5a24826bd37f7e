package otel

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/proctest"
)

func TestMain(m *testing.M) { proctest.Main(m) }

// collector starts the receiver of a real collector and returns where it listens,
// and what it has taken.
func collector(t *testing.T) (url string, taken *consumertest.TracesSink) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the receiver does not say which port it got
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	factory := otlpreceiver.NewFactory()
	conf := factory.CreateDefaultConfig()
	wanted := confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": address}}})
	if err := wanted.Unmarshal(conf); err != nil {
		t.Fatal(err)
	}
	taken = new(consumertest.TracesSink)
	receiver, err := factory.CreateTraces(context.Background(), receivertest.NewNopSettings(factory.Type()), conf, taken)
	if err != nil {
		t.Fatal(err)
	}
	if err := receiver.Start(context.Background(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = receiver.Shutdown(context.Background()) })
	return "http://" + address, taken
}

// Ten streams are ten traces of the collector's, each with its request, its attempt
// and its phases.
func TestTheCollectorTakesOurTraces(t *testing.T) {
	url, taken := collector(t)
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "10")
	gateway := proctest.Start(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + url, "OTEL_SERVICE_NAME=pacer-test"}, "serve", "-c", proctest.Write(t, fmt.Sprintf(`
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
}
