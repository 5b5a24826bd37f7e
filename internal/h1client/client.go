package h1client

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options configures a Client.
type Options struct {
	// Dial connects. Required, as is Addr, the "host:port" that it is given.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	Addr string

	// TLS encrypts; nil = plain. ServerName must be set.
	TLS *tls.Config

	// ConnectTimeout bounds connecting, and again the handshake of TLS. Required.
	ConnectTimeout time.Duration

	// IdleTimeout is how long a connection that is not used is kept, and MaxIdle
	// how many are. Required.
	IdleTimeout time.Duration
	MaxIdle     int

	// MaxHead bounds the heads of an answer, those of 1xx among them, in bytes.
	// Required.
	MaxHead int

	// Unasked is told when the server sent what no request asked for: behind an
	// answer, or on a kept connection. It must not block. nil = nobody.
	Unasked func()
}

// Client sends requests to one server. It is safe for concurrent use.
//
// Lock order: mu is a leaf.
type Client struct {
	o Options

	mu     sync.Mutex // guards what follows
	idle   []*conn    // the one that was used last comes last
	sweep  *time.Timer
	sweeps bool // the timer is set
}

// New returns a Client. It starts nothing.
func New(o Options) *Client { return &Client{o: o} }

// Request is one request.
type Request struct {
	// Head is all before the body: the request line, headers, and the empty line.
	// It says Content-Length if there is a Body, and must stay as it is until Do
	// returns.
	Head []byte

	// NoAnswerBody says that the answer has none, whatever its head says: HEAD.
	NoAnswerBody bool

	// Body has Length bytes. nil = there is none.
	Body   Body
	Length int64

	// Fresh asks for a connection that nobody has used.
	Fresh bool
}

// Body is the body of a request. It is opened for each time that the request is
// sent; what was opened is closed when all of it was written, or no more of it
// will be.
type Body interface {
	Open() (io.ReadCloser, error)
}

// Stage is how far a request came.
type Stage uint8

// The stages, in order.
const (
	Connecting Stage = iota // there was no connection yet
	Writing                 // the request was being written
	Waiting                 // it was written, and no answer was there
)

// Error reports a request that got no answer.
type Error struct {
	Stage  Stage
	Reused bool // on a connection that was kept, before any byte of an answer
	Err    error
}

// Error says what went wrong.
func (e *Error) Error() string { return "h1client: " + e.Err.Error() }

// Unwrap returns what went wrong.
func (e *Error) Unwrap() error { return e.Err }

// Do sends r and returns the answer when its head is there; its body must be
// closed. The error is an *Error. A request that failed on a kept connection
// before any byte of an answer is sent once more, on a fresh one: the server had
// closed it, and this request was the first to find out.
func (c *Client) Do(ctx context.Context, r *Request) (*http.Response, error) {
	resp, err := c.once(ctx, r, r.Fresh)
	if err != nil && err.Reused && ctx.Err() == nil {
		resp, err = c.once(ctx, r, true)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err.Err = cause
		}
		return nil, err
	}
	return resp, nil
}

func (c *Client) once(ctx context.Context, r *Request, fresh bool) (*http.Response, *Error) {
	if ctx.Err() != nil {
		return nil, &Error{Stage: Connecting, Err: context.Cause(ctx)}
	}
	var n *conn
	if !fresh {
		n = c.take(time.Now())
	}
	if n == nil {
		var err error
		if n, err = c.connect(ctx); err != nil {
			return nil, &Error{Stage: Connecting, Err: err}
		}
	}
	return n.exchange(ctx, r)
}

// connect makes a connection.
func (c *Client) connect(ctx context.Context) (*conn, error) {
	within, cancel := context.WithTimeout(ctx, c.o.ConnectTimeout)
	defer cancel()
	nc, err := c.o.Dial(within, "tcp", c.o.Addr)
	if err != nil {
		return nil, err
	}
	n := newConn(c, nc)
	if c.o.TLS == nil {
		return n, nil
	}
	n.wire = &wire{Conn: nc, raw: n.raw}
	encrypted := tls.Client(n.wire, c.o.TLS)
	shaking, done := context.WithTimeout(ctx, c.o.ConnectTimeout)
	defer done()
	if err := encrypted.HandshakeContext(shaking); err != nil {
		_ = nc.Close()
		return nil, err
	}
	if p := encrypted.ConnectionState().NegotiatedProtocol; p != "" && p != "http/1.1" {
		_ = encrypted.Close()
		return nil, fmt.Errorf("h1client: the server speaks %q", p)
	}
	n.Conn = encrypted
	return n, nil
}

// take returns a kept connection that the server has not closed; nil = there is
// none.
func (c *Client) take(now time.Time) *conn {
	for {
		c.mu.Lock()
		last := len(c.idle) - 1
		if last < 0 {
			c.mu.Unlock()
			return nil
		}
		n := c.idle[last]
		c.idle[last] = nil
		c.idle = c.idle[:last]
		c.mu.Unlock()
		if now.Sub(n.since) < c.o.IdleTimeout && n.quiet() {
			n.used = true
			return n
		}
		_ = n.Conn.Close()
	}
}

// put keeps n for the next request.
func (c *Client) put(n *conn) {
	n.since = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) >= c.o.MaxIdle {
		_ = n.Conn.Close() // sends a packet at most: its kernel does not wait
		return
	}
	c.idle = append(c.idle, n)
	switch {
	case c.sweeps:
	case c.sweep == nil:
		c.sweeps, c.sweep = true, time.AfterFunc(c.o.IdleTimeout, c.expire)
	default:
		c.sweeps = true
		c.sweep.Reset(c.o.IdleTimeout)
	}
}

// expire closes what was not used for too long. It runs on the timer's
// goroutine.
func (c *Client) expire() {
	c.mu.Lock()
	now := time.Now()
	old := 0
	for old < len(c.idle) && now.Sub(c.idle[old].since) >= c.o.IdleTimeout {
		old++
	}
	over := make([]*conn, old)
	copy(over, c.idle)
	rest := copy(c.idle, c.idle[old:])
	clear(c.idle[rest:])
	c.idle = c.idle[:rest]
	if c.sweeps = rest > 0; c.sweeps {
		c.sweep.Reset(c.o.IdleTimeout - now.Sub(c.idle[0].since))
	}
	c.mu.Unlock()
	for _, n := range over {
		_ = n.Conn.Close()
	}
}

func (c *Client) unasked() {
	if c.o.Unasked != nil {
		c.o.Unasked()
	}
}

// CloseIdle closes what is kept. Requests under way go on.
func (c *Client) CloseIdle() {
	c.mu.Lock()
	over := c.idle
	c.idle = nil
	if c.sweep != nil {
		c.sweep.Stop()
		c.sweeps = false
	}
	c.mu.Unlock()
	for _, n := range over {
		_ = n.Conn.Close()
	}
}
