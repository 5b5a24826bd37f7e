package h1client

import (
	"context"
	"crypto/tls"
	"io"
	"net"
)

// Lent is an answer whose connection somebody else reads, who has it taken out
// of its frames here. It belongs to one goroutine at a time.
type Lent struct{ a *answer }

// Lendable returns the connection of the answer whose body this is, below what
// encrypts it, which stays the answer's; nil = it cannot be lent: something of it was
// read and not taken, its request is still being written, or it is over.
func Lendable(body io.Reader) net.Conn {
	a, ok := body.(*answer)
	if !ok || a.gone || a.err != nil || len(a.rest) > 0 || a.mode == modeNone || !a.uploaded(0) {
		return nil
	}
	return a.conn.plain
}

// Lend gives the connection that Lendable returned out of hand: reading the body,
// and the end of the context, do nothing to it from here on. The caller closes it
// when it has made it its own.
func Lend(body io.Reader) *Lent {
	a := body.(*answer)
	a.detach()
	a.ctx = context.Background()
	a.gone = true
	a.giveRoomBack()
	return &Lent{a}
}

// TLS is what encrypts the connection; nil = nothing does.
func (l *Lent) TLS() *tls.Conn {
	t, _ := l.a.conn.Conn.(*tls.Conn)
	return t
}

// Wire has TLS go by way of nc, in place of the connection that Lendable returned.
func (l *Lent) Wire(nc net.Conn) { l.a.conn.wire.Conn, l.a.conn.wire.raw = nc, nil }

// Take takes p, which was read, out of its frames, and moves what is in them to
// its beginning. n is how much that is. The error is io.EOF when the answer is
// whole.
func (l *Lent) Take(p []byte) (n int, err error) {
	a := l.a
	if a.err != nil {
		return 0, a.err
	}
	if a.mode == modeLength && uint64(len(p)) > a.left {
		a.more = true
		p = p[:a.left]
	}
	n, whole, err := a.take(p)
	if whole {
		err = io.EOF
	}
	a.err = err
	return n, err
}

// Cut is what the end of the connection, which reading it said by err, means to
// the answer; io.EOF = it is whole.
func (l *Lent) Cut(err error) error {
	if l.a.err == nil {
		l.a.err = l.a.cut(err)
	}
	return l.a.err
}

// Reusable reports whether the connection can serve another request: the answer
// has been read to its end, and nothing came behind that.
func (l *Lent) Reusable() bool {
	a := l.a
	if a.err == io.EOF && a.more {
		a.conn.client.unasked()
	}
	return a.err == io.EOF && !a.more && !a.resp.Close
}

// Keep gives the connection back, for the next request.
func (l *Lent) Keep(c net.Conn) {
	before := l.a.conn
	n := newConn(before.client, c)
	n.used = true
	if before.wire != nil {
		before.wire.Conn, before.wire.raw = c, n.raw
		n.Conn, n.wire = before.Conn, before.wire
	}
	n.client.put(n)
}
