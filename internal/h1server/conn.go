package h1server

import (
	"context"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// headRoom is how much of a connection is read at once, in bytes, while it waits for
// a request. A head that is longer is not ours.
const headRoom = 4 << 10

var headRooms = sync.Pool{New: func() any { return new([headRoom]byte) }}

// conn is one connection. But for what says otherwise it belongs to one goroutine,
// which serves one request after the other.
type conn struct {
	server *Front
	nc     net.Conn
	ctx    context.Context // of all its requests; never ends
	remote string
	since  time.Time
	phase  atomic.Int32 // see the constants; changed by whoever closes those that wait

	room *[headRoom]byte // in lies in it; nil = in is empty, or lies elsewhere
	in   []byte          // was read and belongs to no request yet, or to the body of this one

	wanted, applied time.Time // the read deadline, as it is to be and as the socket knows it
	writeBy         time.Time // the write deadline, as the socket knows it
	post            bool      // the last request was a POST
	taken           bool      // by a handler
	served          bool      // a request

	hangup hangup
}

// What a connection does, as Shutdown has to know.
const (
	phaseNew  int32 = iota // it waits for its first request
	phaseIdle              // it waits for another one
	phaseBusy
	phaseClosed // by Shutdown
)

// serve serves the connection until it ends, or somebody else has it.
func (c *conn) serve() {
	defer func() {
		p := recover()
		if p != nil && p != http.ErrAbortHandler {
			c.server.logf("http: panic serving %v: %v\n%s", c.remote, p, debug.Stack())
		}
		if p != nil && !c.taken {
			c.end()
		}
	}()
	for {
		if !c.await() {
			c.end()
			return
		}
		var h head
		n := h.parse(c.in)
		if n == 0 {
			c.server.handOn(c)
			return
		}
		c.in, c.served = c.in[n:], true
		c.server.state(c.nc, http.StateActive)
		switch c.answer(&h) {
		case over:
			c.end()
			return
		case hijacked:
			return
		}
		if c.phase.Store(phaseIdle); c.server.ending.Load() {
			c.end()
			return
		}
		c.server.state(c.nc, http.StateIdle)
	}
}

// await returns when something of the next request is there; false = the connection
// has ended, or waited for too long.
func (c *conn) await() bool {
	c.skipEnds()
	if len(c.in) == 0 {
		now := time.Now()
		switch d := c.server.idle(); {
		case c.phase.Load() == phaseNew:
			c.readBy(until(now, c.server.http.ReadHeaderTimeout))
		case d <= 0:
			c.readBy(time.Time{})
		case c.applied.Before(now.Add(d-d/8)) || c.applied.After(now.Add(d)): // moving it costs as much as a read
			c.readBy(now.Add(d))
		}
		if c.room == nil {
			c.room = headRooms.Get().(*[headRoom]byte)
		}
		n, err := c.nc.Read(c.room[:])
		if c.in = c.room[:n]; n == 0 && err != nil {
			return false
		}
		c.skipEnds()
	}
	was := c.phase.Load()
	return was != phaseClosed && c.phase.CompareAndSwap(was, phaseBusy)
}

// skipEnds takes line ends off that old clients send behind the body of a POST.
func (c *conn) skipEnds() {
	for i := 0; c.post && i < 4 && len(c.in) > 0 && (c.in[0] == '\r' || c.in[0] == '\n'); i++ {
		c.in = c.in[1:]
	}
}

// until is when d is over; zero = never.
func until(now time.Time, d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return now.Add(d)
}

// readBy sets the deadline of what is read from here on.
func (c *conn) readBy(t time.Time) {
	c.wanted = t
	if !c.applied.Equal(t) {
		c.applied = t
		_ = c.nc.SetReadDeadline(t) // a connection without deadlines has none
	}
}

// write writes p, which the client has to take until then; zero = whenever it does.
func (c *conn) write(p []byte, by time.Time) (int, error) {
	if !c.writeBy.Equal(by) {
		c.writeBy = by
		_ = c.nc.SetWriteDeadline(by)
	}
	return c.nc.Write(p)
}

// outcome is what becomes of a connection behind an answer.
type outcome uint8

const (
	again    outcome = iota // it serves the next request
	over                    // it ends
	hijacked                // it is the handler's
)

// answer has the handler answer one request.
func (c *conn) answer(h *head) outcome {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	t := &serving{conn: c, cancel: cancel, header: make(http.Header, 8), length: -1, closing: h.close, left: h.length}
	t.req = (&http.Request{
		Method: h.method, URL: h.url, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h.header, Host: h.host,
		ContentLength: h.length, Close: h.close, RemoteAddr: c.remote, RequestURI: h.target, Body: http.NoBody,
	}).WithContext(ctx)
	c.post = h.method == http.MethodPost
	c.wanted = time.Time{}
	if t.left > 0 {
		t.req.Body = (*servingBody)(t)
	} else {
		c.arm(cancel)
	}
	whole := false
	defer func() {
		if !whole { // the handler panics
			t.giveBack()
			c.disarm()
		}
	}()
	c.letGo()
	c.server.http.Handler.ServeHTTP(t, t.req)
	whole = true
	if c.taken {
		return hijacked
	}
	t.finish()
	c.disarm()
	if t.closing || t.left > 0 || t.err != nil {
		return over
	}
	return again
}

// letGo gives the buffer back while it holds nothing.
func (c *conn) letGo() {
	if len(c.in) == 0 && c.room != nil {
		headRooms.Put(c.room)
		c.room, c.in = nil, nil
	}
}

// take adds p to what was read and belongs to nobody yet.
func (c *conn) take(p []byte) {
	c.in = append(append(make([]byte, 0, len(c.in)+len(p)), c.in...), p...)
}

// leave takes the connection away from whoever looks after it.
func (c *conn) leave() {
	if c.hangup.watched {
		c.hangup.watched = false
		c.server.hangups.forget(c)
	}
	c.server.remove(c)
}

// end closes the connection.
func (c *conn) end() {
	c.leave()
	c.in = nil
	c.letGo()
	_ = c.nc.Close()
	c.server.state(c.nc, http.StateClosed)
}
