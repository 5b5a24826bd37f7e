package h1client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// mode is what ends a body.
type mode uint8

const (
	modeNone    mode = iota // there is none
	modeLength              // left bytes
	modeChunked             // the last chunk
	modeEnd                 // the end of the connection
)

// answer is one answer, and the body of its http.Response. It belongs to one
// goroutine, Close included: another one ends it by its context.
//
// What each read touches comes first: while thousands of answers wait it is in no cache.
type answer struct {
	from  net.Conn // conn's
	wire  *wire    // conn's
	err   error    // of all reads to come; io.EOF = it was whole
	rest  []byte   // what came with the head and was not read
	mode  mode
	pause bool // PauseAt was called, and Read has not paused
	more  bool // something came behind the last chunk
	gone  bool // the connection is no longer ours
	chunk chunked
	left  uint64 // of modeLength: bytes that are to come

	conn   *conn
	ctx    context.Context
	detach func() bool     // the end of ctx no longer ends the connection
	upload *upload         // nil = the request was written before
	broken bool            // or not whole
	room   *[headRoom]byte // what rest lies in; nil = elsewhere, or given back
	resp   http.Response
}

var errClosed = errors.New("h1client: the answer was closed")

// ErrPaused is what Read says when the time has come that PauseAt named. The answer
// goes on with the next call.
var ErrPaused = errors.New("h1client: the answer pauses")

// PauseAt has Read of body, the body of an answer, say ErrPaused where it waits at that
// time, once.
func PauseAt(body io.Reader, at time.Time) {
	if a, ok := body.(*answer); ok && !a.gone && !a.broken {
		a.pause = a.conn.Conn.SetReadDeadline(at) == nil
	}
}

// unpause takes back what PauseAt set.
func (a *answer) unpause() {
	if a.pause {
		a.pause = false
		_ = a.conn.Conn.SetReadDeadline(time.Time{})
	}
}

// Read implements io.Reader. Chunks are taken out of their frames where they
// were read to: p.
func (a *answer) Read(p []byte) (int, error) {
	if a.err != nil {
		return 0, a.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	switch a.mode {
	case modeNone:
		return 0, io.EOF
	case modeLength:
		if uint64(len(p)) > a.left {
			p = p[:a.left]
		}
	}
	for {
		n, err := a.next(p)
		if a.pause && err != nil && errors.Is(err, os.ErrDeadlineExceeded) && a.ctx.Err() == nil {
			a.unpause()
			return 0, ErrPaused
		}
		n, whole, bad := a.take(p[:n])
		switch {
		case bad != nil:
			a.fail(bad)
		case whole:
			a.err = io.EOF
			a.finish()
		case err != nil:
			a.fail(a.cut(err))
		case n == 0:
			continue // frames alone
		}
		return n, a.err
	}
}

// next reads what comes, first of all what came with the head.
func (a *answer) next(p []byte) (int, error) {
	if len(a.rest) == 0 {
		n, err := a.from.Read(p)
		if w := a.wire; w != nil && n > 0 && err == nil {
			n += w.rest(a.from, p[n:])
		}
		return n, err
	}
	n := copy(p, a.rest)
	if a.rest = a.rest[n:]; len(a.rest) == 0 {
		a.giveRoomBack()
	}
	return n, nil
}

func (a *answer) giveRoomBack() {
	a.rest = nil
	if a.room != nil {
		headRooms.Put(a.room)
		a.room = nil
	}
}

// take takes p out of its frames, and reports whether the body is whole.
func (a *answer) take(p []byte) (n int, whole bool, err error) {
	switch a.mode {
	case modeLength:
		a.left -= uint64(len(p))
		return len(p), a.left == 0, nil
	case modeChunked:
		n, used, err := a.chunk.take(p)
		if used < len(p) && err == nil {
			a.more = true
		}
		return n, a.chunk.state == chunkDone, err
	}
	return len(p), false, nil
}

// cut is what the end of the connection means to a body that is not whole.
func (a *answer) cut(err error) error {
	switch cause := context.Cause(a.ctx); {
	case cause != nil:
		return cause
	case err != io.EOF:
		return err
	case a.mode == modeEnd:
		return io.EOF
	}
	return io.ErrUnexpectedEOF
}

func (a *answer) fail(err error) {
	a.err = err
	a.drop()
}

// finish puts the connection back where that can serve another request.
func (a *answer) finish() {
	if a.gone {
		return
	}
	more := a.more || len(a.rest) > 0
	if more {
		a.conn.client.unasked()
	}
	if more || a.resp.Close || !a.uploaded(uploadWait) || !a.detach() {
		a.drop()
		return
	}
	a.gone = true
	a.giveRoomBack()
	a.unpause()
	a.conn.client.put(a.conn)
}

// drop ends the connection, and waits until nobody reads the request's body.
func (a *answer) drop() {
	if a.gone {
		return
	}
	a.gone = true
	a.detach()
	a.conn.end()
	a.giveRoomBack()
	if a.upload != nil {
		<-a.upload.done // soon: its connection is closed
	}
}

// Close implements io.Closer. What was not read goes with the connection.
func (a *answer) Close() error {
	if a.err == nil {
		a.err = errClosed
	}
	a.drop()
	return nil
}
