package h1client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// writeRoom is what head and body are written from: a request that fits goes
	// out in one call, and on a socket without waiting, since no kernel's buffers
	// are smaller. Of a larger one a goroutine of its own writes.
	writeRoom = 32 << 10

	// headRoom is what the head of an answer is read into at first, in bytes.
	headRoom = 4 << 10

	// answerWait is how long an answer is looked for when the request could not
	// be written. A server that refuses by the head (413, 401) answers, closes,
	// and its kernel resets the connection because of the body that nobody read:
	// what it said has arrived by then.
	answerWait = time.Second

	// uploadWait is how long a connection whose answer is whole waits for the
	// goroutine that wrote the request to say so. A server that answers at the
	// last byte is often ahead of it.
	uploadWait = 50 * time.Millisecond
)

var (
	writeRooms = sync.Pool{New: func() any { return new([writeRoom]byte) }}
	headRooms  = sync.Pool{New: func() any { return new([headRoom]byte) }}
)

// conn is one connection. It belongs to the pool, or to the one request that
// took it; but for ending it, which anybody may.
type conn struct {
	net.Conn
	client *Client
	plain  net.Conn        // what Conn encrypts, or Conn
	wire   *wire           // between both; nil = Conn is plain
	raw    syscall.RawConn // of plain; nil = it is no socket
	looked look            // at raw
	ending func()          // end
	since  time.Time       // when it was last put back
	used   bool            // it has served a request
}

func newConn(c *Client, nc net.Conn) *conn {
	n := &conn{Conn: nc, client: c, plain: nc}
	n.ending = n.end
	if s, ok := nc.(syscall.Conn); ok {
		n.raw, _ = s.SyscallConn()
	}
	return n
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// quiet reports whether the server has neither closed the connection nor said
// anything on it since the last answer.
func (n *conn) quiet() bool {
	if n.raw != nil {
		quiet, said := n.looked.quiet(n.raw)
		if said && n.Conn == n.plain { // what TLS says may be its goodbye
			n.client.unasked()
		}
		if !quiet || n.Conn == n.plain {
			return quiet
		}
	}
	// Of TLS the socket does not show what was read from it with the answer.
	if n.Conn.SetReadDeadline(past) != nil {
		return false
	}
	var start [goodbyeLen]byte
	m, err := n.Conn.Read(start[:])
	if m > 0 && !isGoodbye(start[:m]) {
		n.client.unasked()
	}
	return m == 0 && errors.Is(err, os.ErrDeadlineExceeded) && n.Conn.SetReadDeadline(time.Time{}) == nil
}

const goodbyeLen = len("HTTP/1.1 408")

// isGoodbye reports whether b begins what servers say when a connection was kept
// for too long.
func isGoodbye(b []byte) bool {
	return len(b) >= goodbyeLen && string(b[:7]) == "HTTP/1." && string(b[8:goodbyeLen]) == " 408"
}

// end closes the connection, at once also for who waits for it.
func (n *conn) end() {
	if s, ok := n.plain.(interface{ CloseWrite() error }); ok {
		_ = s.CloseWrite() // the socket's own close waits until its reader has let go of it
	}
	_ = n.plain.Close() // not TLS's, whose goodbye would wait for the one who writes
}

// exchange sends r and reads the head of its answer.
func (n *conn) exchange(ctx context.Context, r *Request) (*http.Response, *Error) {
	a := &answer{from: n.Conn, wire: n.wire, conn: n, ctx: ctx}
	a.detach = context.AfterFunc(ctx, n.ending)
	err := a.write(r)
	if err != nil && !isReset(err) {
		a.drop()
		return nil, &Error{Stage: Writing, Reused: n.used, Err: err}
	}
	stage := Waiting
	if err != nil {
		stage = Writing
		_ = n.Conn.SetReadDeadline(time.Now().Add(answerWait))
		a.broken = true
	}
	begun, herr := a.head(r)
	if herr == nil && ctx.Err() != nil {
		herr = context.Cause(ctx) // a server that sees us go may still answer: not the request, our going
	}
	if herr == nil {
		return &a.resp, nil
	}
	a.drop()
	if err == nil {
		if err = a.writeFailed(); err != nil {
			stage = Writing
		}
	}
	if err == nil {
		err = herr
	}
	return nil, &Error{Stage: stage, Reused: n.used && !begun, Err: err}
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// write writes r: all of it if it fits, else what a goroutine does.
func (a *answer) write(r *Request) error {
	if r.Body == nil {
		_, err := a.conn.Conn.Write(r.Head)
		return err
	}
	body, err := r.Body.Open()
	if err != nil {
		return err
	}
	if room := int64(writeRoom - len(r.Head)); room < r.Length || a.conn.raw == nil {
		a.upload = startUpload(a.conn, r, body)
		return nil
	}
	rooms := writeRooms.Get().(*[writeRoom]byte)
	defer writeRooms.Put(rooms)
	n := copy(rooms[:], r.Head)
	m, err := io.ReadFull(body, rooms[n:n+int(r.Length)])
	_ = body.Close()
	if err != nil {
		return err
	}
	_, err = a.conn.Conn.Write(rooms[:n+m])
	return err
}

// upload is a request that is written while its answer is waited for.
type upload struct {
	done chan struct{} // closed when no more is written
	err  error         // why not all was; set before
}

// startUpload writes r in a goroutine, which answer.drop and answer.finish wait
// for.
func startUpload(n *conn, r *Request, body io.ReadCloser) *upload {
	u := &upload{done: make(chan struct{})}
	head, length := append([]byte(nil), r.Head...), r.Length
	go func() {
		defer close(u.done)
		defer body.Close()
		u.err = writeAll(n.Conn, head, body, length)
	}()
	return u
}

func writeAll(to io.Writer, head []byte, body io.Reader, length int64) error {
	rooms := writeRooms.Get().(*[writeRoom]byte)
	defer writeRooms.Put(rooms)
	for len(head) >= writeRoom { // never: heads are bounded far below
		if _, err := to.Write(head); err != nil {
			return err
		}
		head = nil
	}
	n := copy(rooms[:], head)
	for length > 0 || n > 0 {
		m, err := io.ReadFull(body, rooms[n:min(writeRoom, n+int(min(length, writeRoom)))])
		if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
			return err
		}
		if length -= int64(m); err != nil && length > 0 {
			return io.ErrUnexpectedEOF
		}
		if _, err := to.Write(rooms[:n+m]); err != nil {
			return err
		}
		n = 0
	}
	return nil
}

// uploaded reports whether the request was written whole, within the wait.
func (a *answer) uploaded(wait time.Duration) bool {
	if a.upload == nil {
		return !a.broken
	}
	select {
	case <-a.upload.done:
		return a.upload.err == nil
	default:
	}
	if wait == 0 {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-a.upload.done:
		return a.upload.err == nil
	case <-timer.C:
		return false
	}
}

// writeFailed is why the request could not be written, when the connection has
// ended; nil = it was, or it did not fail by itself.
func (a *answer) writeFailed() error {
	if a.upload == nil {
		return nil
	}
	<-a.upload.done
	return a.upload.err
}
