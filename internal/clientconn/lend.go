package clientconn

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// Lent is the connection of a client that a handler has taken from its server,
// and that it gives back.
type Lent struct {
	c   *conn
	tls *tls.Conn // encrypts it; nil = it is plain
}

// Lend returns the connection that r came on, which is HTTP/1.1; nil = it is not one of
// a Listener's, or its server takes none back.
func Lend(r *http.Request) *Lent {
	c := of(r.Context())
	if c == nil || !c.listener.returned.serves() {
		return nil
	}
	return &Lent{c: c}
}

// Encrypted is what encrypts nc, a connection that a server had, and what was read of
// that and not taken; nil = nothing does.
func Encrypted(nc net.Conn) (c *tls.Conn, rest []byte) {
	switch t := nc.(type) {
	case *tls.Conn:
		return t, nil
	case *readAhead:
		return t.Conn, t.ahead
	}
	return nil, nil
}

// Encrypt says that t encrypts the connection, by way of wire in place of the one
// below.
func (l *Lent) Encrypt(t *tls.Conn, wire net.Conn) {
	l.tls = t
	c := &l.c.listener.connections
	c.mu.Lock()
	defer c.mu.Unlock()
	l.c.Conn = wire
}

// readAhead is a connection of which something was read, and which is TLS to a server.
type readAhead struct {
	*tls.Conn
	ahead []byte
}

// Read implements net.Conn.
func (r *readAhead) Read(p []byte) (int, error) {
	if len(r.ahead) == 0 {
		return r.Conn.Read(p)
	}
	n := copy(p, r.ahead)
	r.ahead = r.ahead[n:]
	return n, nil
}

// Under is the connection below ours.
func (l *Lent) Under() net.Conn { return l.c.Conn }

// IdleTimeout is for how long its server lets it wait for a request; 0 = for ever.
func (l *Lent) IdleTimeout() time.Duration { return l.c.listener.idle }

// Park has idle stand for the connection while it waits for the next request,
// which may be for as long as the server's IdleTimeout. idle is closed when it has
// to make room for another one. It reports whether the connection still counts.
func (l *Lent) Park(idle net.Conn) bool {
	l.c.ours.Store(false)
	return l.c.listener.connections.park(l.c, idle)
}

// Back gives the connection, which is nc below, back to its server, where ahead is
// read before what nc has.
func (l *Lent) Back(nc net.Conn, ahead []byte) {
	l.c.ours.Store(false)
	served := net.Conn(l.c)
	if l.tls != nil {
		served = l.tls
		if len(ahead) > 0 {
			served, ahead = &readAhead{Conn: l.tls, ahead: ahead}, nil
		}
	}
	if !l.c.listener.connections.unpark(l.c, nc, ahead) || !l.c.listener.returned.put(served) {
		_ = nc.Close()
		l.End()
	}
}

// End takes the connection off the count. Whatever stands for it is closed.
func (l *Lent) End() { _ = l.c.end() }

// park replaces what is below n by idle, and counts n among those that wait.
func (c *connections) park(n *conn, idle net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n.Conn = idle
	n.standing.active, n.standing.answering = false, false
	c.settle(n, true)
	return n.standing.open
}

// unpark replaces what is below n by nc, and reports whether n still counts.
func (c *connections) unpark(n *conn, nc net.Conn, ahead []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !n.standing.open {
		return false
	}
	n.Conn, n.ahead = nc, ahead
	n.standing.active, n.standing.answering = false, false
	c.settle(n, false)
	return true
}

// Returned is a listener of the connections that handlers give back, to be served
// beside the one that they came from. Closing it ends it.
func (l *Listener) Returned() net.Listener {
	l.returned.mu.Lock()
	defer l.returned.mu.Unlock()
	l.returned.served = true
	return &returnedListener{l}
}

// returned are connections on their way back to their server. The zero value has
// none, and takes none. Lock order: mu is a leaf.
type returned struct {
	mu     sync.Mutex // guards what follows
	bell   sync.Cond
	served bool // somebody serves them
	ended  bool
	all    []net.Conn
}

func (r *returned) serves() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.served && !r.ended
}

// put reports whether somebody will serve c.
func (r *returned) put(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	r.all = append(r.all, c)
	r.bell.Signal()
	return true
}

type returnedListener struct{ *Listener }

// Accept implements net.Listener.
func (l *returnedListener) Accept() (net.Conn, error) {
	r := &l.returned
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.all) == 0 && !r.ended {
		r.bell.Wait()
	}
	if r.ended {
		return nil, net.ErrClosed
	}
	c := r.all[0]
	r.all[0] = nil
	if r.all = r.all[1:]; len(r.all) == 0 {
		r.all = nil
	}
	return c, nil
}

// Close implements net.Listener.
func (l *returnedListener) Close() error {
	r := &l.returned
	r.mu.Lock()
	rest := r.all
	r.ended, r.all = true, nil
	r.bell.Broadcast()
	r.mu.Unlock()
	for _, c := range rest {
		_ = c.Close()
	}
	return nil
}

// of returns the connection that the request of ctx came on; nil = none of
// ours.
func of(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}
