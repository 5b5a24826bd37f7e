package providers

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	core "github.com/pacer-dev/pacer/internal/breaker"
	"github.com/pacer-dev/pacer/internal/credential"
	"github.com/pacer-dev/pacer/internal/h1client"
	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/internal/upstream"
)

// Options configures a Backend.
type Options struct {
	Name    string      // required
	BaseURL string      // required: scheme, host, and the prefix that ends in /v1; with kind azure a query too
	Kind    string      // a word of package upstream; default: openai
	APIKey  string      // replaces the client's credentials, in the header of the kind; "" sends none
	Keys    []Key       // several credentials, or such as change, in place of APIKey
	Headers http.Header // sent in addition, in place of the client's of the same name
	Usage   string      // inject (default), continuous, or never

	// Address is the host and port that Dial connects to, whatever it is asked for;
	// "" = those of BaseURL.
	Address string

	// Dial replaces the network; nil means TCP. ConnectTimeout bounds it,
	// default 5s. TLS may add roots for https.
	Dial           func(ctx context.Context, network, addr string) (net.Conn, error)
	ConnectTimeout time.Duration
	TLS            *tls.Config

	// Proxy says through which proxy a request goes up; nil = through none. It is
	// used by the transport, as http.Transport.Proxy is.
	Proxy func(*http.Request) (*url.URL, error)

	// Region is that of a cloud whose requests are signed; "" = it is read off the
	// host of BaseURL.
	Region string

	// Client is what speaks HTTP/1.1: ClientOwn (default), or ClientNetHTTP.
	Client string

	// OnHealth is told when the breaker opens, half-opens or closes, in that
	// order even if it happens at once. It is called without locks held and
	// must not block. nil = nobody.
	OnHealth func(Health)

	// OnHung is told when the backend hangs, and when it does no more, as
	// Pulse.Hung says, and when Pulse.Stands says another thing meanwhile; it may be called from where bytes are passed on, and must not
	// block. nil = nobody.
	OnHung func()

	// OnUnasked is told when the backend sent what no request asked for, where the
	// own client speaks to it. The connection is closed. It must not block. nil =
	// nobody.
	OnUnasked func()
}

// What speaks HTTP/1.1 to a backend.
const (
	ClientOwn     = "own"      // package h1client
	ClientNetHTTP = "net/http" // Go's Transport
)

// Health is the breaker's view of a backend. A half-open breaker lets one request
// through as a probe.
type Health = core.State

// The views of a breaker.
const (
	Closed   = core.Closed
	HalfOpen = core.HalfOpen
	Open     = core.Open
)

// Backend is one incarnation of an upstream engine. Safe for concurrent use.
type Backend struct {
	name     string
	kind     upstream.Kind
	base     *url.URL
	endpoint string      // host and port that connections are made to
	deploys  bool        // the model is a part of some endpoints' paths
	headers  http.Header // Options.Headers
	pool     *pool       // credentials
	region   string      // that requests are signed for
	ask      openai.Ask  // what every stream is asked for

	has has

	refusedChat, refusedText atomic.Pointer[refusal] // what of ask is not taken; nil = nothing is known

	own     *h1client.Client // nil = the transports below are used
	host    string           // as Host says it
	prefix  string           // the path of base, as it goes up
	flat    bool             // that and a call's own path are its URL
	kept    *http.Transport  // keeps its connections
	fresh   *http.Transport  // makes one for each request
	breaker *breaker
	pulse   *Pulse
}

// New returns a backend; it starts nothing and connects to nothing.
func New(o Options) (*Backend, error) {
	fail := func(format string, args ...any) (*Backend, error) {
		return nil, fmt.Errorf("providers: backend %q: %w", o.Name, fmt.Errorf(format, args...))
	}
	if o.Name == "" {
		return fail("field Name is missing")
	}
	kind, base, headers, err := o.reach()
	if err != nil {
		return fail("%w", err)
	}
	ask, ok := map[string]openai.Ask{
		"": openai.AskUsage, "inject": openai.AskUsage, "continuous": openai.AskContinuous, "never": openai.AskNothing,
	}[o.Usage]
	if !ok {
		return fail("field Usage %q is unknown; write inject, continuous or never", o.Usage)
	}
	if kind.Usage.Unasked {
		ask = openai.AskNothing
	}
	if o.ConnectTimeout < 0 {
		return fail("field ConnectTimeout %v is negative", o.ConnectTimeout)
	}
	b := &Backend{
		name: o.Name, kind: *kind, base: base, endpoint: cmp.Or(o.Address, hostPort(base)), deploys: kind.Deploys(base.Path), headers: headers, ask: ask,
		pool: newPool(kind, o.keys()), region: cmp.Or(o.Region, upstream.RegionOf(base.Hostname())),
		kept: newTransport(o), fresh: newTransport(o), breaker: newBreaker(o.OnHealth),
	}
	b.fresh.DisableKeepAlives = true
	b.pulse = newPulse(func() {
		if !b.pulse.Hung() {
			b.breaker.heal()
		}
		if o.OnHung != nil {
			o.OnHung()
		}
	})
	b.breaker.hangs = b.pulse.Hung
	switch o.Client {
	case "", ClientOwn:
		if o.direct(base) {
			b.host, b.prefix = base.Host, base.EscapedPath()
			b.flat = base.RawQuery == "" && !b.deploys && len(kind.Paths) == 0
			b.own = b.newOwn(o)
		}
	case ClientNetHTTP:
	default:
		return fail("field Client %q is unknown; write own or net/http", o.Client)
	}
	return b, nil
}

// reach reads where a backend is and what every request to it carries. Its
// errors repeat no URL, which may hold a password.
func (o Options) reach() (kind *upstream.Kind, base *url.URL, headers http.Header, err error) {
	if kind = upstream.Of(o.Kind); kind == nil {
		return nil, nil, nil, fmt.Errorf("field Kind %q is unknown; write one of %s", o.Kind, strings.Join(upstream.Words(), ", "))
	}
	text, wrong := kind.BaseURL(o.BaseURL)
	if wrong != "" {
		return nil, nil, nil, fmt.Errorf("field BaseURL: %s", wrong)
	}
	if base, err = url.Parse(text); err != nil {
		return nil, nil, nil, errors.New("field BaseURL is no URL")
	}
	headers, err = o.ownHeaders()
	return kind.At(text), base, headers, err
}

// keys are the credentials; none = requests go up without.
func (o Options) keys() []Key {
	if o.APIKey != "" {
		return []Key{{Source: credential.Static(o.APIKey)}}
	}
	return o.Keys
}

// Run half-opens the breaker in time although no request asks, and takes a
// probe back whose verdict never came. It returns when ctx ends.
func (b *Backend) Run(ctx context.Context) error { return b.breaker.run(ctx) }

// Begin asks the breaker. ok is false while it is open, and while it is
// half-open and its one probe is out; verdict is nil then. Otherwise verdict
// must be called at least once; calls after the first do nothing. Give it at
// the first content byte (nil), or at the failure. An error that is
// context.Canceled or ErrNoVerdict counts for nothing.
//
// A verdict that never comes is one that counts for nothing, after 3 minutes.
func (b *Backend) Begin() (verdict func(error), ok bool) { return b.breaker.begin() }

// Pulse is whether the backend shows life.
func (b *Backend) Pulse() *Pulse { return b.pulse }

// Lost reports whether who waits there for an answer waits in vain, as far as is known:
// the backend hangs, or its breaker opened and it shows no life either.
func (b *Backend) Lost(now time.Time) bool {
	return b.pulse.Hung() || b.pulse.Quiet(now) && b.breaker.open()
}

// Cut reports an answer that broke off after its verdict was given, and was no
// stream.
func (b *Backend) Cut(err error) { b.breaker.cut(err) }

// StreamEnded reports how a stream ended after its verdict was given: nil when
// it was whole. A stream that its client left says nothing.
func (b *Backend) StreamEnded(err error) { b.breaker.streamEnded(err) }

// Close closes idle connections.
func (b *Backend) Close() {
	if b.own != nil {
		b.own.CloseIdle()
	}
	b.kept.CloseIdleConnections()
	b.fresh.CloseIdleConnections()
}
