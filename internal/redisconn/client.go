package redisconn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/pacer-dev/pacer/config"
	core "github.com/pacer-dev/pacer/internal/breaker"
)

// Limits of one exchange with the server. They are short because everything
// that Redis holds is a copy: going on without it is better than waiting.
const (
	dialTimeout  = time.Second
	ioTimeout    = 250 * time.Millisecond
	poolSize     = 16 // the loops ask one thing at a time
	idleConnTime = 5 * time.Minute
)

// Options configures a Client. The zero value of every optional field means
// the default named in its comment.
type Options struct {
	// Store says where Redis is. Required, and not Memory.
	Store config.Store

	// Dial opens the connection to a server. Default: a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// MinBackoff is how long the server is left alone after a first failure,
	// MaxBackoff after many. Default: 1s and 10s.
	MinBackoff, MaxBackoff time.Duration

	// IOTimeout is how long the server may take to read one pipeline, to
	// answer it, and to be done with those of others when all connections are
	// in use. Default: 250ms.
	IOTimeout time.Duration
}

// Client asks one Redis. It is safe for concurrent use.
//
// After a failure it starts over with new connections: the old ones may hold
// half an answer, and the library's pool keeps a count of failed dials that
// would make it dial on its own, once a second.
type Client struct {
	options *redis.UniversalOptions // read only
	prefix  string
	breaker *breaker

	mu     sync.Mutex // guards the fields below; a leaf
	rdb    redis.UniversalClient
	closed bool
}

// New returns a client for s with the default options.
func New(s config.Store) (*Client, error) {
	return Open(Options{Store: s})
}

// Open checks o and returns a client. It connects with the first Do.
func Open(o Options) (*Client, error) {
	switch {
	case o.Store.Memory:
		return nil, errors.New("redisconn: the store is memory, there is no Redis to talk to")
	case len(o.Store.Addrs) == 0:
		return nil, errors.New("redisconn: Store.Addrs is empty")
	}
	if o.MinBackoff <= 0 {
		o.MinBackoff = time.Second
	}
	if o.MaxBackoff <= 0 {
		o.MaxBackoff = 10 * time.Second
	}
	o.MaxBackoff = max(o.MaxBackoff, o.MinBackoff)
	if o.IOTimeout <= 0 {
		o.IOTimeout = ioTimeout
	}
	quietLibrary()
	options, err := universalOptions(o)
	if err != nil {
		return nil, err
	}
	return &Client{
		options: options,
		rdb:     redis.NewUniversalClient(options),
		prefix:  o.Store.Prefix,
		breaker: newBreaker(o.MinBackoff, o.MaxBackoff),
	}, nil
}

// Do asks the server once, through the breaker. ask gets ctx, which the caller
// bounds. While the server is left alone after a failure, ask is not called
// and the error is an *OutError.
//
// A reply that is about the command (a wrong type, a script's own error) is no
// failure of the server, and neither is a ctx that the caller cancelled.
func (c *Client) Do(ctx context.Context, ask func(context.Context, redis.UniversalClient) error) error {
	try, err := c.breaker.enter(time.Now())
	if err != nil {
		return err
	}
	verdict := core.Nothing // stays so only if ask panics
	defer func() {
		if c.breaker.leave(time.Now(), try, verdict, err) {
			c.reconnect()
		}
	}()
	err = ask(ctx, c.client())
	verdict = judge(ctx, err)
	return err
}

// Close closes all connections. A Do that is still running, or comes later,
// gets an error.
func (c *Client) Close() {
	c.mu.Lock()
	old, was := c.rdb, c.closed
	c.closed = true
	c.mu.Unlock()
	if !was {
		_ = old.Close() // nothing is left to be done about connections that do not close
	}
}

func (c *Client) client() redis.UniversalClient {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rdb
}

// reconnect drops all connections; the next Do opens new ones. A call that
// runs on the old ones gets an error.
func (c *Client) reconnect() {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	old := c.rdb
	c.rdb = redis.NewUniversalClient(c.options)
	c.mu.Unlock()
	_ = old.Close() // as in Close
}

// Key returns the key prefix:{tag}:part:part…. Keys with one tag live in one
// slot of a cluster, so a script may use several. Characters that mean
// something in a key (braces, colons) or are odd in one (spaces, control
// characters, bytes beyond ASCII) are written as %XX, so different arguments
// never give the same key.
func (c *Client) Key(tag string, parts ...string) string {
	var b strings.Builder
	b.WriteString(c.Prefix())
	b.WriteString(":{")
	if tag == "" {
		b.WriteByte('%') // an empty tag would be none: the server would hash the whole key
	}
	escape(&b, tag)
	b.WriteByte('}')
	for _, p := range parts {
		b.WriteByte(':')
		escape(&b, p)
	}
	return b.String()
}

// Prefix is what all keys begin with, up to the colon before the brace.
func (c *Client) Prefix() string {
	var b strings.Builder
	// No tag is in a prefix, so colons in it do no harm, and an ACL can be
	// written as it stands.
	for i, part := range strings.Split(c.prefix, ":") {
		if i > 0 {
			b.WriteByte(':')
		}
		escape(&b, part)
	}
	return b.String()
}

func escape(b *strings.Builder, s string) {
	for i := range len(s) {
		ch := s[i]
		switch {
		case 'a' <= ch && ch <= 'z', 'A' <= ch && ch <= 'Z', '0' <= ch && ch <= '9', strings.IndexByte("-_./@+", ch) >= 0:
			b.WriteByte(ch)
		default:
			fmt.Fprintf(b, "%%%02X", ch)
		}
	}
}

func universalOptions(o Options) (*redis.UniversalOptions, error) {
	u := &redis.UniversalOptions{
		Addrs:      o.Store.Addrs,
		MasterName: o.Store.Master,
		DB:         o.Store.DB,
		Username:   o.Store.Username,
		Password:   o.Store.Password.Reveal(),

		SentinelUsername: o.Store.Sentinel.Username,
		SentinelPassword: o.Store.Sentinel.Password.Reveal(),

		DialTimeout:   dialTimeout,
		DialerRetries: 1, // the breaker decides when to try again
		ReadTimeout:   o.IOTimeout,
		WriteTimeout:  o.IOTimeout,
		PoolTimeout:   o.IOTimeout,
		MaxRetries:    1,
		// By default a deadline of ctx does not interrupt a read.
		ContextTimeoutEnabled: true,

		PoolSize:         poolSize,
		PipelinePoolSize: -1, // pipelines use the one pool
		ConnMaxIdleTime:  idleConnTime,

		// Both send commands that many servers answer with an error, which
		// shows in the server's own statistics.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if o.Store.TLS {
		roots, err := rootsOf(o.Store.CAFile)
		if err != nil {
			return nil, err
		}
		u.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	}
	if o.Dial != nil {
		u.Dialer = dialWith(o.Dial, u.TLSConfig)
	}
	return u, nil
}

// rootsOf returns the system's authorities and those in file; nil = the
// system's alone.
func rootsOf(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("redisconn: store.tls.ca_file: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("redisconn: store.tls.ca_file %s holds no PEM certificate", file)
	}
	return roots, nil
}

// dialWith adds TLS to dial, which the library leaves to a dialer that is not
// its own.
func dialWith(dial func(context.Context, string, string) (net.Conn, error), base *tls.Config) func(context.Context, string, string) (net.Conn, error) {
	if base == nil {
		return dial
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		raw, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		cfg := base.Clone()
		if cfg.ServerName, _, err = net.SplitHostPort(addr); err != nil {
			cfg.ServerName = addr
		}
		conn := tls.Client(raw, cfg)
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, err
		}
		return conn, nil
	}
}

// quietLibrary stops the library from writing its own lines to stderr: what
// they say comes back as the error of Do. Its logger is one for the process.
var quietLibrary = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
