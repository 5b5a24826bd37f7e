package providers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/openai"
)

func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		says string
		o    Options
	}{
		{"field Name is missing", Options{BaseURL: "http://h"}},
		{"field BaseURL: the url must start with http", Options{Name: "b"}},
		{"field BaseURL: the url must start with http", Options{Name: "b", BaseURL: "h:8000/v1"}},
		{"field BaseURL: the url must start with http", Options{Name: "b", BaseURL: "ftp://h/v1"}},
		{"field BaseURL: the url has no valid host", Options{Name: "b", BaseURL: "http:///v1"}},
		{"field BaseURL: the url has no valid host", Options{Name: "b", BaseURL: "http://:80/v1"}},
		{"field BaseURL: the url holds a user", Options{Name: "b", BaseURL: "http://u:secret@h/v1"}},
		{"field BaseURL: the url cannot be read", Options{Name: "b", BaseURL: "http://u:secret@h:port/v1"}},
		{"field BaseURL: the url has a query", Options{Name: "b", BaseURL: "http://h/v1?key=secret"}},
		{"field BaseURL: the url has a query", Options{Name: "b", BaseURL: "http://h/v1#secret", Kind: "azure"}},
		{`field Kind "gopher" is unknown`, Options{Name: "b", BaseURL: "http://h", Kind: "gopher"}},
		{`field Usage "yes" is unknown`, Options{Name: "b", BaseURL: "http://h", Usage: "yes"}},
		{"field APIKey holds a control character", Options{Name: "b", BaseURL: "http://h", APIKey: "secret\n"}},
		{"field Headers: X-A holds a control character", Options{Name: "b", BaseURL: "http://h", Headers: http.Header{"x-a": {"secret\r\nX: y"}}}},
		{`field Headers: "X A" is no header name`, Options{Name: "b", BaseURL: "http://h", Headers: http.Header{"X A": {"secret"}}}},
		{"field Headers: Content-Length cannot be set", Options{Name: "b", BaseURL: "http://h", Headers: http.Header{"content-length": {"1"}}}},
		{"field ConnectTimeout -1s is negative", Options{Name: "b", BaseURL: "http://h", ConnectTimeout: -time.Second}},
	} {
		_, err := New(tt.o)
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("got %v, want %q", err, tt.says)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%v tells a secret", err)
		}
	}
}

func TestWhatIsAskedForAndTakenOut(t *testing.T) {
	none, usage, continuous := openai.Request{Stream: true}, openai.Request{Stream: true, IncludeUsage: true}, openai.Request{Stream: true, ContinuousUsage: true}
	all := openai.Request{Stream: true, IncludeUsage: true, ContinuousUsage: true}
	for _, tt := range []struct {
		usage string
		r     openai.Request
		ask   openai.Ask
		strip Strip
	}{
		{"", none, openai.AskUsage, StripEvent | StripNull | MovePrint},
		{"inject", none, openai.AskUsage, StripEvent | StripNull | MovePrint},
		{"inject", usage, openai.AskUsage, 0},
		{"inject", openai.Request{}, openai.AskNothing, 0},
		{"never", none, openai.AskNothing, 0},
		{"never", usage, openai.AskNothing, 0},
		{"continuous", none, openai.AskContinuous, StripEvent | StripRunning | StripNull | MovePrint},
		{"continuous", usage, openai.AskContinuous, StripRunning},
		{"continuous", continuous, openai.AskContinuous, StripEvent | StripNull | MovePrint},
		{"continuous", all, openai.AskContinuous, 0},
		{"continuous", openai.Request{}, openai.AskNothing, 0},
	} {
		b := must.Get(New(Options{Name: "b", BaseURL: "https://h/v1", Usage: tt.usage, Kind: "vllm"}))(t)
		if ask, strip := b.Usage("/responses", &tt.r); ask != openai.AskNothing || strip != 0 {
			t.Errorf("usage %q, request %+v to /responses: asks %d and takes out %d, want nothing", tt.usage, tt.r, ask, strip)
		}
		if ask, strip := b.Usage("/chat/completions", &tt.r); ask != tt.ask || strip != tt.strip {
			t.Errorf("usage %q, request %+v: asks %d and takes out %d, want %d and %d", tt.usage, tt.r, ask, strip, tt.ask, tt.strip)
		}
	}
}

// "usage":null is taken out where it is there because usage was asked for, and
// nowhere else.
func TestWhoseNullsAreTakenOut(t *testing.T) {
	for kind, want := range map[string]bool{
		"openai": true, "azure": true, "vllm": true, "sglang": false, "tgi": false, "llamacpp": false, "ollama": false,
	} {
		b := newKind(t, Options{Kind: kind, BaseURL: "https://h/v1"})
		for _, path := range []string{"/chat/completions", "/completions"} {
			_, strip := b.Usage(path, &openai.Request{Stream: true})
			if (strip&StripNull != 0) != want {
				t.Errorf("kind %s, %s: takes out %d, want StripNull: %v", kind, path, strip, want)
			}
			if _, strip = b.Usage(path, &openai.Request{Stream: true, IncludeUsage: true}); strip != 0 {
				t.Errorf("kind %s, %s: takes out %d of what the client asked for", kind, path, strip)
			}
		}
	}
}

func TestNoUsageIsAskedForInAWayThatAnthropicDoesNotKnow(t *testing.T) {
	b := newKind(t, Options{Kind: "anthropic", BaseURL: "https://h/v1"})
	if ask, strip := b.Usage("/chat/completions", &openai.Request{Stream: true}); ask != openai.AskNothing || strip != 0 {
		t.Errorf("asks %d and takes out %d, want nothing", ask, strip)
	}
}

func TestCondition(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		want   Condition
	}{
		{200, "", Sound},
		{400, "", Sound},
		{404, "", Sound},
		{429, "", Full},
		{500, `{"error":{"code":500,"message":"[json.exception.parse_error.101]"}}`, Sound},
		{502, "", Failing},
		{502, "Loading model", Failing},
		{503, "", Failing},
		{503, `{"error":{"message":"overloaded"}}`, Failing},
		{503, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`, Loading},
		{503, `{"error":"Model org/m is currently loading","estimated_time":20}`, Loading},
		{503, `{"error":{"message":"server busy, please try again.  maximum pending requests exceeded","type":"api_error","param":null,"code":null}}`, Full},
		{503, `{"object":"error","message":"The request queue is full.","type":"ServiceUnavailable","code":503}`, Full},
		{503, `{"error":{"message":"The engine is currently overloaded, please try again later.","type":"server_error"}}`, Full},
		{503, strings.Repeat(" ", reasonStart) + "request queue is full", Failing},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, Failing},
		{504, "", Failing},
	} {
		if got := (&Backend{}).Condition(tt.status, []byte(tt.body)); got != tt.want {
			t.Errorf("%d %.99s: %v, want %v", tt.status, tt.body, got, tt.want)
		}
	}
}

func TestAboutModel(t *testing.T) {
	for body, want := range map[string]bool{
		`{"object":"error","message":"The model ` + "`x`" + ` does not exist.","type":"NotFoundError","code":404}`: true, // vLLM
		`{"error":{"message":"model \"x\" not found, try pulling it first","type":"not_found_error"}}`:             true, // Ollama
		`{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`: true, // Azure
		`{"error":{"message":"No endpoints found for qwen/qwen3-32b.","code":404}}`:                                true, // OpenRouter
		`{"detail":"Not Found"}`: false, // FastAPI
		`{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}`: false, // llama.cpp
		`404 page not found`: false, // Go
		``:                   false, // axum
		`{"error":{"message":"Invalid URL (POST /v1/rerank)","type":"invalid_request_error","param":null,"code":null}}`: false, // OpenAI
		`{"message":"The model does not support Embeddings API"}`:                                                       false, // vLLM
		`<html><head><title>404 Not Found</title></head></html>`:                                                        false, // nginx
	} {
		if got := AboutModel([]byte(body), "Qwen/Qwen3-32B"); got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
}

func TestSendErrors(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 8000}, Err: syscall.ECONNREFUSED}
	for _, tt := range []struct {
		phase  Phase
		err    error
		reason string
	}{
		{Connect, refused, "refused the connection"},
		{Connect, fmt.Errorf("x: %w", &net.DNSError{Err: "no such host", Name: "10.0.0.7"}), "has a name that does not resolve"},
		{Connect, context.DeadlineExceeded, "did not accept the connection in time"},
		{Connect, x509.UnknownAuthorityError{}, "failed the TLS handshake"},
		{Connect, &tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "10.0.0.7"}}, "failed the TLS handshake"},
		{Connect, tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, "failed the TLS handshake"},
		{Connect, errors.New("10.0.0.7: odd"), "could not be reached"},
		{Write, fmt.Errorf("broken: %w", syscall.EPIPE), "reset the connection"},
		{Headers, fmt.Errorf("read: %w", syscall.ECONNRESET), "reset the connection"},
		{Headers, io.EOF, "closed the connection before it answered"},
		{Headers, io.ErrUnexpectedEOF, "closed the connection before it answered"},
		{Headers, context.DeadlineExceeded, "did not answer in time"},
		{Headers, errors.New("malformed HTTP response from 10.0.0.7"), "did not answer"},
		{Connect, context.Canceled, "was not waited for"},
		{Headers, context.Canceled, "was not waited for"},
	} {
		e := &SendError{Phase: tt.phase, Err: tt.err}
		if e.Reason() != tt.reason {
			t.Errorf("%v: %q, want %q", e, e.Reason(), tt.reason)
		}
		if errors.Unwrap(e) == nil || errors.Unwrap(e).Error() != tt.err.Error() {
			t.Errorf("%v does not unwrap to its cause", e)
		}
		if want := "providers: " + tt.phase.String() + ": "; !strings.HasPrefix(e.Error(), want) {
			t.Errorf("error %q, want it to begin with %q", e, want)
		}
	}
}
