package providers

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// Options configures a Backend.
type Options struct {
	Name    string      // required
	BaseURL string      // required: scheme, host, and the prefix that ends in /v1
	Kind    string      // openai (default) or vllm
	APIKey  string      // replaces the client's credentials; "" sends none
	Headers http.Header // sent in addition
	Usage   string      // inject (default) or never

	// Dial replaces the network; nil means TCP. ConnectTimeout bounds it,
	// default 5s. TLS may add roots for https.
	Dial           func(ctx context.Context, network, addr string) (net.Conn, error)
	ConnectTimeout time.Duration
	TLS            *tls.Config

	// OnHealth is told when the breaker opens, half-opens or closes. It is
	// called without locks held and must not block. nil = nobody.
	OnHealth func(Health)
}

// Health is the breaker's view of a backend.
type Health uint8

// A half-open breaker lets one request through as a probe.
const (
	Closed Health = iota
	HalfOpen
	Open
)

// Backend is one incarnation of an upstream engine. Safe for concurrent use.
type Backend struct{}

// New returns a backend; it starts nothing and connects to nothing.
func New(o Options) (*Backend, error) { panic("unwritten") }

// Run half-opens the breaker in time although no request asks. It returns when
// ctx ends.
func (b *Backend) Run(ctx context.Context) error { panic("unwritten") }

// Close closes idle connections.
func (b *Backend) Close() { panic("unwritten") }

// Call is one request as it goes up: Path is below the base URL
// ("/chat/completions"), Body is complete and edited, Header is the client's
// own (credentials, hop-by-hop and accept-encoding are dropped here).
type Call struct {
	Path      string
	Header    http.Header
	Body      []byte
	RequestID string
}

// Send sends c and returns the response when its headers are there. The
// response's body must be closed. Redirects are not followed. An EOF on a kept
// connection before any byte is retried once on a fresh one.
func (b *Backend) Send(ctx context.Context, c Call) (*http.Response, error) { panic("unwritten") }

// Injects reports whether Pacer may ask this backend for usage.
func (b *Backend) Injects() bool { panic("unwritten") }

// Begin asks the breaker. ok is false while it is open. verdict must be called
// at least once; calls after the first do nothing. Give it at the first
// content byte (nil), or at the failure.
func (b *Backend) Begin() (verdict func(error), ok bool) { panic("unwritten") }

// Cut reports a stream that broke after its verdict was given.
func (b *Backend) Cut(err error) { panic("unwritten") }

// Failed says whether an answer's status is a failure of the backend that
// another may not have: 502, 503, 504; loading is true for a 503 that only
// means "not yet" and counts for no breaker. body is the start of the answer.
func (b *Backend) Failed(status int, body []byte) (failed, loading bool) { panic("unwritten") }
