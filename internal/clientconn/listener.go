package clientconn

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Options configures a Listener.
type Options struct {
	// Name is what log lines call the port. Required.
	Name string

	// Most is how many connections there are at once. 0 = any number.
	Most int

	// Own returns the whole answer in place of one that net/http gives by itself
	// (to a malformed request, for one), by its client and its status, which is
	// 400 or above. nil leaves them as they are. It is called by many goroutines
	// at once.
	Own func(client net.Addr, status int) []byte

	// Log is told, once a minute, when Most are open. Required.
	Log *slog.Logger
}

// Listener accepts the connections of a port. It is safe for concurrent use.
type Listener struct {
	net.Listener
	o           Options
	connections connections
	returned    returned
	idle        time.Duration // IdleTimeout of the server
}

// Listen wraps l, which s is to serve, directly or behind TLS. It takes
// s.ConnContext and s.ConnState.
//
// Behind TLS Own sees only the answer to a client that speaks no TLS.
func Listen(s *http.Server, l net.Listener, o Options) *Listener {
	own := &Listener{Listener: l, o: o, connections: connections{most: o.Most}, idle: s.IdleTimeout}
	own.returned.bell.L = &own.returned.mu
	s.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		if c := under(nc); c != nil {
			return context.WithValue(ctx, connKey{}, c)
		}
		return ctx
	}
	s.ConnState = func(nc net.Conn, state http.ConnState) {
		if c := under(nc); c != nil {
			c.follow(state)
		}
	}
	return own
}

// under returns the connection of ours that nc is, or that nc encrypts; nil =
// none.
func under(nc net.Conn) *conn {
	if t, _ := Encrypted(nc); t != nil {
		nc = t.NetConn()
	}
	c, _ := nc.(*conn)
	return c
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: nc, listener: l}
		evict, ok, say := l.connections.add(time.Now(), c)
		if say {
			l.o.Log.Warn("as many connections of clients as there may be: those that have shown no key and get no answer make room",
				"port", l.o.Name, "connections", l.o.Most, "made_room", evict != nil)
		}
		if evict != nil {
			_ = evict.end()
		}
		if ok {
			return c, nil
		}
		_ = nc.Close()
	}
}

// End closes what lingers, and returns when all of it is closed. It is called
// when the server has ended.
func (l *Listener) End() {
	for _, c := range l.connections.endLingering() {
		_ = c.end()
	}
	l.connections.discarding.Wait()
}

// conn is a connection of a client. While no handler answers on it, an error
// that is written comes from net/http itself, which writes it at once.
type conn struct {
	net.Conn
	listener *Listener
	ours     atomic.Bool  // from the beginning of a handler to the end of its answer
	linger   atomic.Int64 // bytes to throw away before the end; 0 = none
	once     sync.Once    // of discard
	ahead    []byte       // is read before what comes: the client sent it while it was answered
	by       time.Time    // the first read deadline that is set is no later; zero = any

	standing standing // of connections, under its lock
	place    *list.Element
}

type connKey struct{}

// Known notes that the client of ctx has shown a valid key: from here on its
// connection is the last to make room for others, and does not while a request
// is under way.
func Known(ctx context.Context) {
	if c := of(ctx); c != nil {
		c.listener.connections.update(c, func(s *standing) { s.known = true })
	}
}

// Answering notes that the request of ctx has arrived whole and gets an answer
// that may take long: its connection makes room for nobody until then.
func Answering(ctx context.Context) {
	if c := of(ctx); c != nil {
		c.listener.connections.update(c, func(s *standing) { s.answering = true })
	}
}

// follow is the hook of http.Server: what it says of the connection.
func (c *conn) follow(state http.ConnState) {
	switch state {
	case http.StateActive:
		c.listener.connections.update(c, func(s *standing) { s.active = true })
	case http.StateIdle:
		c.ours.Store(false)
		c.listener.connections.update(c, func(s *standing) { s.active, s.answering = false, false })
	}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.ahead) > 0 {
		n := copy(p, c.ahead)
		c.ahead = c.ahead[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// Unread puts p before what comes: a server has read it that serves it not. The next
// read deadline is by, if that is earlier. It belongs to whoever reads the connection.
func (c *conn) Unread(p []byte, by time.Time) {
	c.ahead, c.by = append(append([]byte(nil), p...), c.ahead...), by
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	if by := c.by; !by.IsZero() {
		if c.by = (time.Time{}); t.IsZero() || t.After(by) {
			t = by
		}
	}
	return c.Conn.SetReadDeadline(t)
}

// SyscallConn implements syscall.Conn, where the connection below does.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if own := c.own(p); own != nil {
		_, err := c.Conn.Write(own)
		return len(p), err
	}
	return c.Conn.Write(p)
}

// own returns the answer in place of net/http's, nil if p is none of those, or
// may stay.
func (c *conn) own(p []byte) []byte {
	if c.ours.Load() || len(p) < len("HTTP/1.1 400 ") || !bytes.HasPrefix(p, []byte("HTTP/1.")) {
		return nil
	}
	status, err := strconv.Atoi(string(p[9:12]))
	if err != nil || status < http.StatusBadRequest {
		return nil
	}
	c.lingers(untold)
	if c.listener.o.Own == nil {
		return nil
	}
	return c.listener.o.Own(c.RemoteAddr(), status)
}
