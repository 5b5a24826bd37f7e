package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	mode "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// asked is a picker in this process, and an Envoy that the test plays.
type asked struct {
	t       testing.TB
	program *program
	admin   string
	conn    *grpc.ClientConn
	client  extproc.ExternalProcessorClient
}

// play starts the picker; more stands in its configuration. No backend is there:
// Envoy would be their connection.
func play(t testing.TB, more string) *asked {
	t.Helper()
	fail := "open"
	if strings.Contains(more, "# closed") {
		fail = "closed"
	}
	kind := "openai"
	if strings.Contains(more, "continue: true") {
		kind = "vllm" // of those that can
	}
	cap := ""
	if strings.Contains(more, "# b takes one") {
		cap = ", max_concurrency: 1"
	}
	cfg := parsed(t, strings.ReplaceAll(`picker: { listen: 127.0.0.1:0, fail: `+fail+`, objectives: [ { name: nightly, class: batch } ] }
admin: { listen: 127.0.0.1:0 }
log: { level: error }
backends:
  - { name: a, url: "http://127.0.0.1:1/v1", kind: openai, api_key: sk-up }
  - { name: b, url: "http://127.0.0.1:2/v1", kind: openai, api_key: sk-up`+cap+` }
  - { name: c, url: "http://127.0.0.1:3/v1", kind: openai, api_key: sk-up }
routes:
  - { model: chat, targets: [ { backend: a, model: m }, { backend: b, model: m }, { backend: c, model: m } ], prefer: order }
  - { model: other, targets: [ { backend: b, model: n } ] }
`+more, "kind: openai", "kind: "+kind))
	p, err := wire(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)), options{picker: true})
	must.Do(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	type doors struct{ grpc, admin string }
	ready := make(chan doors, 1)
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.run(ctx, func(at, admin string) { ready <- doors{at, admin} }); err != nil {
			t.Errorf("picker: %v", err)
		}
	})
	at := <-ready
	conn, err := grpc.NewClient(at.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must.Do(t, err)
	t.Cleanup(func() {
		conn.Close()
		cancel()
		running.Wait()
	})
	return &asked{t: t, program: p, admin: at.admin, conn: conn, client: extproc.NewExternalProcessorClient(conn)}
}

// settled waits until no request holds anything.
func (a *asked) settled() {
	a.t.Helper()
	proctest.Until(a.t, "nothing is left of the requests", func() bool {
		for _, l := range a.program.router.Loads() {
			if l.M != 0 || l.N != 0 {
				return false
			}
		}
		return proctest.Sum(string(proctest.Get(a.t, a.admin+"/metrics")), "pacer_inflight{") == 0
	})
}

const (
	fullDuplex = mode.ProcessingMode_FULL_DUPLEX_STREAMED
	buffered   = mode.ProcessingMode_BUFFERED
	streamed   = mode.ProcessingMode_STREAMED
	notShown   = mode.ProcessingMode_NONE
)

// heads is a list of headers as Envoy sends it: names and values in turn.
func heads(pairs ...string) *core.HeaderMap {
	m := &core.HeaderMap{}
	for i := 0; i < len(pairs); i += 2 {
		m.Headers = append(m.Headers, &core.HeaderValue{Key: pairs[i], RawValue: []byte(pairs[i+1])})
	}
	return m
}

// askHead is the first message of a chat completion.
func askHead(up, down mode.ProcessingMode_BodySendMode, more ...string) *extproc.ProcessingRequest {
	pairs := append([]string{
		":method", "POST", ":path", "/v1/chat/completions", ":authority", "127.0.0.1", ":scheme", "http",
		"content-type", "application/json",
	}, more...)
	return &extproc.ProcessingRequest{
		Request:        &extproc.ProcessingRequest_RequestHeaders{RequestHeaders: &extproc.HttpHeaders{Headers: heads(pairs...)}},
		ProtocolConfig: &extproc.ProtocolConfiguration{RequestBodyMode: up, ResponseBodyMode: down},
	}
}

func askBody(text string, end bool) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestBody{RequestBody: &extproc.HttpBody{Body: []byte(text), EndOfStream: end}}}
}

func gotHead(status string, end bool) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseHeaders{ResponseHeaders: &extproc.HttpHeaders{
		Headers: heads(":status", status, "content-type", "text/event-stream"), EndOfStream: end,
	}}}
}

func gotBody(text string, end bool) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseBody{ResponseBody: &extproc.HttpBody{Body: []byte(text), EndOfStream: end}}}
}

const (
	streamOf = `{"model":"chat","stream":true,"max_tokens":4,"messages":[{"role":"user","content":"hello"}]}`
	token    = `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n"
	counts   = `data: {"id":"c","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":3,"total_tokens":6}}` + "\n\n"
	lastOf   = "data: [DONE]\n\n"
)

// open opens a stream that ends with the test, or with end.
func (a *asked) open() (s extproc.ExternalProcessor_ProcessClient, end func()) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	a.t.Cleanup(cancel)
	s = must.Get(a.client.Process(ctx))(a.t)
	return s, cancel
}

func (a *asked) send(s extproc.ExternalProcessor_ProcessClient, m ...*extproc.ProcessingRequest) {
	a.t.Helper()
	for _, m := range m {
		must.Do(a.t, s.Send(m))
	}
}

func (a *asked) hear(s extproc.ExternalProcessor_ProcessClient) *extproc.ProcessingResponse {
	a.t.Helper()
	m := must.Get(s.Recv())(a.t)
	return m
}

// changed are the headers that m sets, and those that it removes with "-".
func changed(m *extproc.HeaderMutation) map[string]string {
	out := map[string]string{}
	for _, h := range m.GetSetHeaders() {
		out[h.GetHeader().GetKey()] = string(h.GetHeader().GetRawValue())
	}
	for _, name := range m.GetRemoveHeaders() {
		out[name] = "-"
	}
	return out
}

// The protocol, message by message, in the modes that the Inference Extension asks
// for: the destination in header and metadata alike, with those that come after
// it, the model under its own name, our usage asked for and cut out again.
func TestThePickersProtocol(t *testing.T) {
	a := play(t, "")
	s, _ := a.open()
	a.send(s, askHead(fullDuplex, fullDuplex, "x-request-id", "r-1", "authorization", "Bearer sk-client"), askBody(streamOf[:20], false), askBody(streamOf[20:], true), askBody(streamOf[20:], true))
	head := a.hear(s)
	got := changed(head.GetRequestHeaders().GetResponse().GetHeaderMutation())
	const want = "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"
	if got["x-gateway-destination-endpoint"] != want || got["authorization"] != "Bearer sk-up" {
		t.Errorf("headers %v, want the destination %s and the backend's own key", got, want)
	}
	if to := head.GetDynamicMetadata().GetFields()["envoy.lb"].GetStructValue().GetFields()["x-gateway-destination-endpoint"].GetStringValue(); to != want {
		t.Errorf("metadata %q, want %q as in the header", to, want)
	}
	up := a.hear(s).GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse()
	if body := string(up.GetBody()); !up.GetEndOfStream() || !strings.Contains(body, `"model":"m"`) || !strings.Contains(body, `"include_usage":true`) || got["content-length"] != fmt.Sprint(len(body)) {
		t.Errorf("body %q, end %v, length %s", body, up.GetEndOfStream(), got["content-length"])
	}
	a.send(s, gotHead("200", false), gotBody(token+token, false), gotBody(token+counts+lastOf, false), gotBody("", true))
	if said := changed(a.hear(s).GetResponseHeaders().GetResponse().GetHeaderMutation()); said["x-pacer-backend"] != "a" || said["x-request-id"] != "r-1" {
		t.Errorf("head of the answer: %v, want the backend and the id", said)
	}
	var text strings.Builder
	for end := false; !end; {
		piece := a.hear(s).GetResponseBody().GetResponse().GetBodyMutation().GetStreamedResponse()
		if piece == nil {
			t.Fatal("something else than a piece of the answer")
		}
		text.Write(piece.GetBody())
		end = piece.GetEndOfStream()
	}
	if text.String() != token+token+token+lastOf {
		t.Errorf("the client gets %q, want the tokens and the end, without the usage that it had not asked for", text.String())
	}
	if _, err := s.Recv(); err != io.EOF {
		t.Errorf("%v, want the end of the stream", err)
	}
	a.settled()
}

// What the extension's own test cases ask of a picker, as far as they need no
// cluster: subsets, an empty one, and who answered in the end.
func TestSubsetsAndWhoServed(t *testing.T) {
	a := play(t, "")
	for _, c := range []struct {
		name string
		hint *structpb.Value
		want string // destination; "" = 503
	}{
		{"a list", structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("127.0.0.1:3"), structpb.NewStringValue("127.0.0.1:2")}}), "127.0.0.1:2,127.0.0.1:3"},
		{"a text", structpb.NewStringValue("127.0.0.1:3, 10.0.0.1:80"), "127.0.0.1:3"},
		{"a host", structpb.NewStringValue("127.0.0.1"), "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"},
		{"nobody of ours", structpb.NewStringValue("10.0.0.1:80"), ""},
		{"nobody", structpb.NewListValue(&structpb.ListValue{}), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, end := a.open()
			defer end()
			head := askHead(buffered, fullDuplex)
			head.MetadataContext = &core.Metadata{FilterMetadata: map[string]*structpb.Struct{
				"envoy.lb.subset_hint": {Fields: map[string]*structpb.Value{"x-gateway-destination-endpoint-subset": c.hint}},
			}}
			a.send(s, head)
			a.hear(s)
			a.send(s, askBody(streamOf, true))
			m := a.hear(s)
			if code := int(m.GetImmediateResponse().GetStatus().GetCode()); c.want == "" && code != 503 {
				t.Errorf("status %d, want 503", code)
			}
			if got := changed(m.GetRequestBody().GetResponse().GetHeaderMutation())["x-gateway-destination-endpoint"]; got != c.want {
				t.Errorf("destination %q, want %q", got, c.want)
			}
		})
	}
	a.settled()

	s, end := a.open()
	a.send(s, askHead(fullDuplex, fullDuplex), askBody(streamOf, true))
	a.hear(s)
	a.hear(s)
	loads := func(backend string) int {
		for _, l := range a.program.router.Loads() {
			if l.Backend == backend {
				return l.M
			}
		}
		return -1
	}
	if loads("a") != 1 {
		t.Fatalf("a has %d requests, want the one", loads("a"))
	}
	head := gotHead("200", false)
	head.MetadataContext = &core.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"envoy.lb": {Fields: map[string]*structpb.Value{"x-gateway-destination-endpoint-served": structpb.NewStringValue("127.0.0.1:3")}},
	}}
	a.send(s, head, gotBody(token, false))
	if said := changed(a.hear(s).GetResponseHeaders().GetResponse().GetHeaderMutation()); said["x-pacer-backend"] != "c" {
		t.Errorf("head of the answer: %v, want c, which served it", said)
	}
	if loads("a") != 0 || loads("c") != 1 {
		t.Errorf("a has %d requests and c %d, want 0 and 1: it runs at c", loads("a"), loads("c"))
	}
	end()
	a.settled()
}

// Who finds no place waits in the phase of the request: Envoy hears nothing until there
// is one. Whoever hangs up meanwhile leaves the line.
func TestTheLineHoldsThePhaseOfTheRequest(t *testing.T) {
	a := play(t, "  - { model: slow, targets: [ { backend: b, model: n } ], on_infeasible: [ { queue: 60s }, shed ] } # b takes one\n")
	waiting := func(n float64) {
		t.Helper()
		proctest.Until(t, fmt.Sprintf("%g requests wait", n), func() bool {
			return proctest.Sum(string(proctest.Get(t, a.admin+"/metrics")), "pacer_queue_depth{") == n
		})
	}
	ask := func() (s extproc.ExternalProcessor_ProcessClient, end func()) {
		s, end = a.open()
		a.send(s, askHead(fullDuplex, fullDuplex), askBody(strings.Replace(streamOf, "chat", "slow", 1), true))
		return s, end
	}
	first, endFirst := ask()
	a.hear(first)
	a.hear(first)
	second, endSecond := ask()
	waiting(1)
	_, leave := ask()
	waiting(2)
	leave()
	waiting(1)
	endFirst()
	if got := changed(a.hear(second).GetRequestHeaders().GetResponse().GetHeaderMutation())["x-gateway-destination-endpoint"]; got != "127.0.0.1:2" {
		t.Errorf("destination %q of the one that waited, want 127.0.0.1:2", got)
	}
	endSecond()
	a.settled()
}

// The headers that the extension has, and those of an SLO.
func TestTheHeadersOfTheExtension(t *testing.T) {
	a := play(t, "")
	outcome := func(m *extproc.ProcessingResponse) string {
		if r := m.GetImmediateResponse(); r != nil {
			return fmt.Sprint(r.GetStatus().GetCode().Number(), " ", string(r.GetBody()))
		}
		c := m.GetRequestBody().GetResponse()
		return changed(c.GetHeaderMutation())["x-gateway-destination-endpoint"] + " " + string(c.GetBodyMutation().GetBody())
	}
	for _, c := range []struct {
		name    string
		headers []string
		want    string
	}{
		{"another model", []string{"x-gateway-model-name-rewrite", "other"}, `"model":"n"`},
		{"a model that is none", []string{"x-gateway-model-name-rewrite", "none"}, `404 {"error":{"message":"The model \"none\"`},
		{"an objective of batch, and a floor", []string{"x-gateway-inference-objective", "nightly", "x-slo-tpot-ms", "20"}, "400 "},
		{"an objective that is not listed", []string{"x-gateway-inference-objective", "premium"}, "127.0.0.1:1,"},
		{"no number", []string{"x-slo-ttft-ms", "soon"}, "400 "},
		{"whose turn it is", []string{"x-gateway-inference-fairness-id", "team-7"}, "127.0.0.1:1,"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, end := a.open()
			defer end()
			a.send(s, askHead(buffered, fullDuplex, c.headers...))
			m := a.hear(s)
			if m.GetImmediateResponse() == nil {
				a.send(s, askBody(streamOf, true))
				m = a.hear(s)
			}
			if got := outcome(m); !strings.Contains(got, c.want) {
				t.Errorf("%.300s, want %s", got, c.want)
			}
		})
	}
	a.settled()
}

// The health service, as the protocol has it.
func TestThePickersHealth(t *testing.T) {
	a := play(t, "")
	h := grpc_health_v1.NewHealthClient(a.conn)
	state := func(service string) string {
		r, err := h.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{Service: service})
		if err != nil {
			return err.Error()
		}
		return r.GetStatus().String()
	}
	services := []string{"", "liveness", "readiness", "envoy.service.ext_proc.v3.ExternalProcessor"}
	for _, service := range services {
		if got := state(service); got != "SERVING" {
			t.Errorf("%q: %s, want SERVING", service, got)
		}
	}
	for _, b := range []string{"a", "b", "c"} {
		a.program.fleet.Drain(b, true)
	}
	for i, want := range []string{"SERVING", "SERVING", "NOT_SERVING", "NOT_SERVING"} {
		if got := state(services[i]); got != want {
			t.Errorf("%q without a backend in service: %s, want %s", services[i], got, want)
		}
	}
	if got := state("none"); !strings.Contains(got, "NotFound") {
		t.Errorf("an unknown service: %s", got)
	}
}

// What takes too long is ended by the same timeouts as without Envoy.
func TestSlowPhasesOfAStream(t *testing.T) {
	a := play(t, "timeouts: { write: 300ms, first_byte: 300ms, silence: 300ms }\n")
	for _, c := range []struct {
		name  string
		sends []*extproc.ProcessingRequest
		want  int // status of the immediate response
	}{
		{"a body that does not come", []*extproc.ProcessingRequest{askHead(fullDuplex, fullDuplex), askBody(streamOf[:9], false)}, 408},
		{"no answer", []*extproc.ProcessingRequest{askHead(fullDuplex, fullDuplex), askBody(streamOf, true)}, 504},
		{"a head and no more", []*extproc.ProcessingRequest{askHead(fullDuplex, fullDuplex), askBody(streamOf, true), gotHead("200", false)}, 504},
		{"a stream that stands still", []*extproc.ProcessingRequest{askHead(fullDuplex, fullDuplex), askBody(streamOf, true), gotHead("200", false), gotBody(token, false)}, 502},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, end := a.open()
			defer end()
			a.send(s, c.sends...)
			for {
				m := a.hear(s)
				if r := m.GetImmediateResponse(); r != nil {
					if got := int(r.GetStatus().GetCode()); got != c.want {
						t.Errorf("status %d, want %d: %s", got, c.want, r.GetBody())
					}
					return
				}
			}
		})
	}
	a.settled()
}

// A request that nobody has room to judge passes as it is, or is refused.
func TestTooManyStreams(t *testing.T) {
	for name, more := range map[string]string{"open": "", "closed": "# closed"} {
		t.Run(name, func(t *testing.T) {
			a := play(t, "limits: { streams: 1 }\n"+more)
			first, end := a.open()
			a.send(first, askHead(fullDuplex, fullDuplex), askBody(streamOf, true))
			a.hear(first)
			second, endSecond := a.open()
			a.send(second, askHead(fullDuplex, fullDuplex))
			m := a.hear(second)
			if name == "closed" {
				if r := m.GetImmediateResponse(); r.GetStatus().GetCode() != 503 || !strings.Contains(string(r.GetBody()), "gateway_overloaded") {
					t.Errorf("%v, want a 503", m)
				}
			} else {
				a.send(second, askBody(streamOf, true), gotHead("200", false), gotBody(token+lastOf, true))
				up, head, down := a.hear(second), a.hear(second), a.hear(second)
				if m.GetRequestHeaders() == nil || string(up.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetBody()) != streamOf ||
					head.GetResponseHeaders() == nil || string(down.GetResponseBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetBody()) != token+lastOf {
					t.Errorf("%v %v %v %v, want what came, unchanged", m, up, head, down)
				}
			}
			end()
			endSecond()
			a.settled()
		})
	}
}

// A client can not have itself passed on unjudged, by an address that nobody can
// read or by a body between Envoy's bound and ours.
func TestHostileRequestsAreAnswered(t *testing.T) {
	a := play(t, "limits: { body: 4096 }\n")
	s, _ := a.open()
	a.send(s, &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestHeaders{RequestHeaders: &extproc.HttpHeaders{
		Headers: heads(":method", "POST", ":path", "/v1/chat/completions%zz", ":authority", "x"),
	}}})
	if got := a.hear(s).GetImmediateResponse().GetStatus().GetCode(); got != 400 {
		t.Errorf("status %d for an address that is none, want 400", got)
	}
	s, _ = a.open()
	a.send(s, askHead(buffered, fullDuplex))
	a.hear(s)
	a.send(s, askBody(strings.Repeat(" ", 4096+3<<20), true))
	if got := a.hear(s).GetImmediateResponse().GetStatus().GetCode(); got != 413 {
		t.Errorf("status %d for a body that is too large, want 413", got)
	}
	a.settled()
}

// Where Envoy waits for an answer to each message, it gets one to trailers, too.
func TestTrailersOfAnAnswerAreAnswered(t *testing.T) {
	a := play(t, "")
	for _, down := range []mode.ProcessingMode_BodySendMode{streamed, notShown} {
		s, end := a.open()
		a.send(s, askHead(buffered, down))
		a.hear(s)
		a.send(s, askBody(streamOf, true))
		a.hear(s)
		a.send(s, gotHead("200", false))
		a.hear(s)
		if down != notShown {
			a.send(s, gotBody(token+counts+lastOf, false))
			a.hear(s)
		}
		a.send(s, &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseTrailers{ResponseTrailers: &extproc.HttpTrailers{}}})
		if m := a.hear(s); m.GetResponseTrailers() == nil {
			t.Errorf("%v: %v, want an answer to the trailers", down, m)
		}
		end()
	}
	a.settled()
}

// What Envoy has sent is not sent again where its engine dies, also on a route that
// has streams go on elsewhere.
func TestACarriedStreamDoesNotGoOn(t *testing.T) {
	a := play(t, "  - { model: long, continue: true, targets: [ { backend: a, model: m }, { backend: b, model: m } ] }\n")
	s, _ := a.open()
	a.send(s, askHead(fullDuplex, fullDuplex), askBody(strings.Replace(streamOf, "chat", "long", 1), true))
	a.hear(s)
	a.hear(s)
	a.send(s, gotHead("200", false), gotBody(token, false), gotBody("", true))
	for {
		m := a.hear(s)
		if m.GetRequestHeaders() != nil || m.GetRequestBody() != nil {
			t.Fatalf("%v: the request was sent again", m)
		}
		if m.GetImmediateResponse() != nil {
			break
		}
	}
	a.settled()
}

// Whatever Envoy sends, and whenever it ends a stream: nothing of the request is
// left, and what is counted is what there was.
func TestNoStreamLeaksALease(t *testing.T) {
	const places = 5
	a := play(t, fmt.Sprintf("keys: [ { name: k, key: sk-client-0123456789, limits: { concurrency: %d } } ]\n", places))
	rapid.Check(t, func(r *rapid.T) {
		modes := rapid.SampledFrom([]mode.ProcessingMode_BodySendMode{fullDuplex, buffered, streamed, notShown})
		script := []*extproc.ProcessingRequest{askHead(modes.Draw(r, "up"), modes.Draw(r, "down"), "authorization", "Bearer sk-client-0123456789")}
		text := rapid.SampledFrom([]string{streamOf, `{"model":"chat","messages":[]}`, `{`, ""}).Draw(r, "request")
		for cut := rapid.IntRange(0, 3).Draw(r, "pieces"); cut > 0 && len(text) > 4; cut-- {
			script = append(script, askBody(text[:4], false))
			text = text[4:]
		}
		script = append(script, askBody(text, true), gotHead(rapid.SampledFrom([]string{"200", "429", "500", "503", "99", "x"}).Draw(r, "status"), rapid.Bool().Draw(r, "bare")))
		for range rapid.IntRange(0, 4).Draw(r, "tokens") {
			script = append(script, gotBody(token, false))
		}
		script = append(script, gotBody(counts+lastOf, false), gotBody("", true), &extproc.ProcessingRequest{
			Request: &extproc.ProcessingRequest_ResponseTrailers{ResponseTrailers: &extproc.HttpTrailers{}},
		})
		for range rapid.IntRange(0, 2).Draw(r, "mistakes") { // something twice, nothing, or in another order
			i, j := rapid.IntRange(0, len(script)-1).Draw(r, "from"), rapid.IntRange(0, len(script)-1).Draw(r, "to")
			switch rapid.IntRange(0, 2).Draw(r, "mistake") {
			case 0:
				script[i] = script[j]
			case 1:
				script[i], script[j] = script[j], script[i]
			case 2:
				script[i] = &extproc.ProcessingRequest{}
			}
		}
		script = script[:rapid.IntRange(0, len(script)).Draw(r, "messages")]
		heard := rapid.IntRange(0, 6).Draw(r, "heard")
		closes := rapid.Bool().Draw(r, "half-closes")

		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s, err := a.client.Process(ctx)
		if err != nil {
			r.Fatal(err)
		}
		answers, over := make(chan struct{}, 100), make(chan struct{})
		go func() {
			defer close(over)
			for {
				if _, err := s.Recv(); err != nil {
					return
				}
				answers <- struct{}{}
			}
		}()
		for i, m := range script {
			if s.Send(m) != nil {
				break // the picker has ended the stream
			}
			if i < heard { // else Envoy is ahead of what the picker says
				select {
				case <-answers:
				case <-over:
				case <-time.After(time.Millisecond): // none is due
				}
			}
		}
		if closes {
			_ = s.CloseSend()
		}
		cancel()
		<-over
	})
	a.settled()
	for range places { // each of the key's is free
		s, _ := a.open()
		a.send(s, askHead(buffered, fullDuplex, "authorization", "Bearer sk-client-0123456789"))
		a.hear(s)
		a.send(s, askBody(streamOf, true))
		if m := a.hear(s); m.GetRequestBody() == nil {
			t.Fatalf("%v, want a destination", m)
		}
	}
}
