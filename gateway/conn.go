package gateway

import (
	"bytes"
	"container/list"
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/pacer-dev/pacer/internal/openai"
)

// Listen wraps l, which s is to serve, so that what net/http answers by itself
// (to a malformed request, for one) has OpenAI's shape and a request id like
// any other answer. It has most connections at once at most; at the bound the
// one that has idled for longest makes room. 0 = no bound. It takes
// s.ConnContext and s.ConnState.
//
// Behind TLS only the answer to a client that speaks no TLS can be seen here.
func (g *Gateway) Listen(s *http.Server, l net.Listener, most int) net.Listener {
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, c)
	}
	g.clients = most
	own := &listener{Listener: l, gateway: g, connections: connections{most: most}}
	s.ConnState = own.connections.follow
	return own
}

type listener struct {
	net.Listener
	gateway     *Gateway
	connections connections
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		n := &conn{Conn: c, listener: l}
		evict, ok, say := l.connections.add(time.Now(), n)
		if say {
			l.gateway.log.Warn("as many connections of clients as there may be: those that idle make room", "connections", l.connections.most, "idle_left", evict != nil)
		}
		if evict != nil {
			_ = evict.Close()
		}
		if ok {
			return n, nil
		}
		_ = c.Close()
	}
}

// conn is a connection of a client. While no handler answers on it, an error
// that is written comes from net/http itself, which writes it at once.
type conn struct {
	net.Conn
	listener *listener
	ours     atomic.Bool // from the beginning of a handler to the end of its answer

	// Of connections, under its lock.
	place   *list.Element // among the idle ones; nil = it is none
	counted bool
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.listener.connections.closed(c)
	return c.Conn.Close()
}

type connKey struct{}

// handled notes that a handler has the request of ctx.
func handled(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.ours.Store(true)
	}
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if !c.ours.Load() && bytes.HasPrefix(p, []byte("HTTP/1.")) {
		if own := c.own(p); own != nil {
			_, err := c.Conn.Write(own)
			return len(p), err
		}
	}
	return c.Conn.Write(p)
}

// CloseWrite is what net/http does before it waits for a client whose request
// it gave up to read the answer.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// own returns the answer in place of net/http's, nil if p is none of those.
func (c *conn) own(p []byte) []byte {
	if len(p) < len("HTTP/1.1 400 ") {
		return nil
	}
	status, err := strconv.Atoi(string(p[9:12]))
	if err != nil || status < 400 {
		return nil
	}
	a := answerForServer(status)
	id := "req-" + rand.Text()
	body := openai.ErrorBody(a.message, a.typ, "", a.code)
	head := "HTTP/1.1 " + strconv.Itoa(status) + " " + http.StatusText(status) +
		"\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) +
		"\r\nX-Request-Id: " + id + "\r\nConnection: close\r\n\r\n"
	c.listener.gateway.access.Info("request", "request", id, "client", c.client(), "status", status, "error", "gateway: refused by the HTTP server: "+a.code)
	return append([]byte(head), body...)
}

// client is the address of whoever is connected, without its port.
func (c *conn) client() string {
	at := c.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(at); err == nil {
		return host
	}
	return at
}

// answerForServer says in OpenAI's words what net/http refuses by itself.
func answerForServer(status int) answer {
	a := answer{status: status, typ: "invalid_request_error"}
	switch status {
	case http.StatusRequestHeaderFieldsTooLarge:
		a.code, a.message = "headers_too_large", "The request's headers are too large."
	case http.StatusExpectationFailed:
		a.code, a.message = "expectation_failed", "The Expect header may say 100-continue alone."
	case http.StatusNotImplemented:
		a.code, a.message = "unsupported_transfer_encoding", "The Transfer-Encoding may be chunked alone."
	case http.StatusHTTPVersionNotSupported:
		a.code, a.message = "unsupported_http_version", "This port speaks HTTP/1.1, and HTTP/2 over TLS."
	default:
		a.code, a.message = "malformed_request", "The request is not well-formed HTTP, or it is plain HTTP on a port for HTTPS."
	}
	return a
}
