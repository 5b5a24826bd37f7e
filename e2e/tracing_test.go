package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// collector takes what is exported to it by OTLP, by the protocol's own types.
type collector struct {
	mu      sync.Mutex
	spans   []*otlp.Span
	service map[string]string // facts about who exported
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request coltrace.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
		http.Error(w, "not OTLP", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		c.service = map[string]string{}
		for _, a := range resource.Resource.Attributes {
			c.service[a.Key] = a.Value.GetStringValue()
		}
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// facts are the attributes of a span as text.
func facts(s *otlp.Span) map[string]string {
	out := map[string]string{}
	for _, a := range s.Attributes {
		switch v := a.Value; {
		case v.GetStringValue() != "":
			out[a.Key] = v.GetStringValue()
		case v.GetDoubleValue() != 0:
			out[a.Key] = fmt.Sprint(v.GetDoubleValue())
		default:
			out[a.Key] = fmt.Sprint(v.GetIntValue())
		}
	}
	return out
}

func events(s *otlp.Span) (names []string) {
	for _, e := range s.Events {
		names = append(names, e.Name)
	}
	return names
}

const (
	clientTrace = "0af7651916cd43dd8448eb211c80319c"
	clientSpan  = "b7ad6b7169203331"
)

// withTrace sends every request as a part of a trace.
type withTrace struct{}

func (withTrace) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Traceparent", "00-"+clientTrace+"-"+clientSpan+"-01")
	return http.DefaultTransport.RoundTrip(r)
}

// A stream whose first backend fails, as a trace: the request with its phases, both
// attempts, what was counted, and the same trace at the engine and in the log line.
func TestTraces(t *testing.T) {
	t.Parallel()
	traces := &collector{}
	receiver := httptest.NewServer(traces)
	defer receiver.Close()
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "10")
	var mu sync.Mutex
	var told []string // traceparent, as it came to the backends
	note := func(r *http.Request) {
		mu.Lock()
		told = append(told, r.Header.Get("Traceparent"))
		mu.Unlock()
	}
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(r)
		http.Error(w, "broken", http.StatusBadGateway)
	}))
	defer broken.Close()
	good := relayTo(t, engine.Ready["url"], note)

	gateway := proctest.Start(t, []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + receiver.URL, "OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=none", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment=test",
	}, "serve", "-c", proctest.Write(t, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
backends:
  - { name: broken, url: %s/v1, health_url: "off", kind: openai }
  - { name: good, url: %s/v1, health_url: "off", kind: vllm }
routes: [ { model: chat, prefer: order, targets: [ { backend: broken, model: llama-3.1-70b }, { backend: good, model: llama-3.1-70b } ] } ]
`, broken.URL, good)))
	client := &loadgen.Client{BaseURL: gateway.Ready["data"] + "/v1", HTTP: &http.Client{Transport: withTrace{}, Timeout: 30 * time.Second}}
	if r := client.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 100, MaxTokens: 40}); r.Outcome != loadgen.Done {
		t.Fatalf("the stream: %v (%v)", r.Outcome, r.Err)
	}
	if code := gateway.Stop(syscall.SIGTERM); code != 0 { // which sends what is left
		t.Fatalf("exit code %d\n%s", code, gateway.Log())
	}

	traces.mu.Lock()
	defer traces.mu.Unlock()
	if traces.service["service.name"] != "pacer" || traces.service["deployment.environment"] != "test" {
		t.Errorf("exported as %v", traces.service)
	}
	byName := map[string]*otlp.Span{}
	var attempts []*otlp.Span
	for _, s := range traces.spans {
		byName[s.Name] = s
		if s.Kind == otlp.Span_SPAN_KIND_CLIENT {
			attempts = append(attempts, s)
		}
		if got := fmt.Sprintf("%x", s.TraceId); got != clientTrace {
			t.Errorf("%s is part of the trace %s, want the client's", s.Name, got)
		}
		if s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("%s ends before it begins", s.Name)
		}
	}
	request := byName["chat chat"]
	if request == nil || len(attempts) != 2 || byName["read"] == nil || byName["stream"] == nil {
		t.Fatalf("spans %v, want the request, two attempts, read and stream", traces.spans)
	}
	wantFacts(t, request, map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.request.model": "chat", "gen_ai.usage.output_tokens": "40",
		"http.response.status_code": "200", "http.route": "/v1/chat/completions", "pacer.outcome": "ok", "pacer.backend": "good", "pacer.attempts": "2",
	})
	if request.Kind != otlp.Span_SPAN_KIND_SERVER || fmt.Sprintf("%x", request.ParentSpanId) != clientSpan || fmt.Sprint(events(request)) != "[failover]" {
		t.Errorf("the request is %v with events %v, below %x", request.Kind, events(request), request.ParentSpanId)
	}
	first, second := attempts[0], attempts[1]
	wantFacts(t, first, map[string]string{"pacer.backend": "broken", "http.response.status_code": "502", "error.type": "not_served"})
	wantFacts(t, second, map[string]string{"pacer.backend": "good", "gen_ai.provider.name": "vllm", "gen_ai.request.model": "llama-3.1-70b", "gen_ai.usage.output_tokens": "40"})
	if fmt.Sprint(events(second)) != "[first token]" || string(byName["stream"].ParentSpanId) != string(second.SpanId) || string(second.ParentSpanId) != string(request.SpanId) {
		t.Errorf("the second attempt has events %v, and is below %x", events(second), second.ParentSpanId)
	}
	mu.Lock()
	defer mu.Unlock()
	for i, s := range []*otlp.Span{first, second} {
		if want := fmt.Sprintf("00-%s-%x-01", clientTrace, s.SpanId); i >= len(told) || told[i] != want {
			t.Errorf("the backends were told %q, want %s as number %d", told, want, i)
		}
	}
	if !strings.Contains(gateway.Log(), `"trace":"`+clientTrace+`"`) {
		t.Errorf("no log line has the trace:\n%s", gateway.Log())
	}
}

func wantFacts(t *testing.T, s *otlp.Span, want map[string]string) {
	t.Helper()
	got := facts(s)
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s: %s is %q, want %q", s.Name, key, got[key], value)
		}
	}
}

// relayTo is a server that notes each request and has url answer it.
func relayTo(t *testing.T, url string, note func(*http.Request)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(r)
		up, err := http.NewRequestWithContext(r.Context(), r.Method, url+r.URL.Path, r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		up.Header = r.Header
		resp, err := http.DefaultTransport.RoundTrip(up)
		if err != nil {
			return // the client left
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		buf := make([]byte, 4096)
		for {
			n, err := resp.Body.Read(buf)
			if _, bad := w.Write(buf[:n]); err != nil || bad != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// A collector that is gone costs spans and nothing else, and is said so.
func TestTracesWithoutACollector(t *testing.T) {
	t.Parallel()
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "10")
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	gateway := proctest.Start(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + gone.URL, "OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_EXPORTER_OTLP_TIMEOUT=200"}, "serve", "-c", proctest.Write(t, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
backends: [ { name: good, url: %s/v1, kind: vllm } ]
routes: [ { model: chat, targets: [ { backend: good, model: llama-3.1-70b } ] } ]
`, engine.Ready["url"])))
	client := &loadgen.Client{BaseURL: gateway.Ready["data"] + "/v1", HTTP: unread}
	for range 3 {
		if r := client.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 100, MaxTokens: 20}); r.Outcome != loadgen.Done {
			t.Fatalf("a stream: %v (%v)", r.Outcome, r.Err)
		}
	}
	if code := gateway.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if n := strings.Count(gateway.Log(), "do not reach their collector"); n != 1 {
		t.Errorf("the log says %d times that traces are lost, want once:\n%s", n, gateway.Log())
	}
}
