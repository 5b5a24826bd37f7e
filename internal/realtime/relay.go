package realtime

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Why Relay ended a session that its two sides had not closed.
var (
	ErrIdle        = errors.New("realtime: no byte from either side for too long")
	ErrClientGone  = errors.New("realtime: the client left without closing the session")
	ErrBackendGone = errors.New("realtime: the backend left without closing the session")
)

// EndError ends a session for a reason that the client is told in its close frame.
type EndError struct {
	Code   uint16 // of RFC 6455
	Reason string // at most 123 bytes
	Err    error
}

// Error is what Err says.
func (e *EndError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *EndError) Unwrap() error { return e.Err }

// RefusedError reports a frame that is not passed on.
type RefusedError struct {
	ByClient bool // else the backend sent it
	Err      error
}

// Error says whose frame it was, and what is wrong with it.
func (e *RefusedError) Error() string {
	if e.ByClient {
		return e.Err.Error() + ", of the client"
	}
	return e.Err.Error() + ", of the backend"
}

// Unwrap returns what is wrong.
func (e *RefusedError) Unwrap() error { return e.Err }

// Options of a Relay. Idle, Message and Buffer are required.
type Options struct {
	Idle    time.Duration // without a byte from either side
	Message int64         // bytes of one message
	Buffer  int           // bytes that are read at once, either way; at least 512

	// Event is shown each whole text message of the backend that has at most
	// MaxEvent bytes. It must not keep it, and is called by the goroutine that
	// called Relay's. nil = nobody.
	Event    func(text []byte)
	MaxEvent int

	// Room asks for room to keep more bytes of an event; negative gives it back.
	// nil = there always is.
	Room func(bytes int) bool
}

// goodbye is how long a side has to take the close frame, and to answer one.
const goodbye = 2 * time.Second

// Relay passes frames on until both sides have closed the session, one of them
// leaves, or ctx ends, and closes both. It returns nil for a session that was
// closed as it should be, and the cause of ctx if that ended it.
func Relay(ctx context.Context, client, backend io.ReadWriteCloser, o Options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &session{o: o, cancel: cancel, began: time.Now()}
	up := &way{s: s, from: client, to: backend, frames: framer{masked: true, most: o.Message}, byClient: true, writes: make(chan struct{}, 1)}
	down := &way{s: s, from: backend, to: client, frames: framer{most: o.Message}, writes: make(chan struct{}, 1)}
	if o.Event != nil {
		e := &event{o: o}
		defer e.drop()
		down.frames.see = e.add
	}
	idle := time.AfterFunc(o.Idle, func() { s.lookIdle() })
	s.idle.Store(idle)
	defer func() { s.idle.Swap(nil).Stop() }()
	ended := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(ended)
		s.ending.Store(true)
		var both sync.WaitGroup
		both.Go(func() { up.end(context.Cause(ctx)) })
		down.end(context.Cause(ctx))
		both.Wait()
	})
	var running sync.WaitGroup
	running.Go(up.run)
	down.run()
	running.Wait()
	<-ended // neither direction ends before ctx does
	if cause := context.Cause(ctx); !errors.Is(cause, errOver) {
		return cause
	}
	return nil
}

// errOver is the cause of a session that was closed as it should be.
var errOver = errors.New("realtime: the session is over")

// session is what both directions share.
type session struct {
	o      Options
	cancel context.CancelCauseFunc
	began  time.Time
	last   atomic.Int64 // when a byte came, since began
	closed atomic.Int32 // sides that have sent a close frame
	ending atomic.Bool  // both sides are about to be told why: nothing more is passed on
	idle   atomic.Pointer[time.Timer]
}

// lookIdle ends a session without a byte for too long. It runs on the timer's
// goroutine.
func (s *session) lookIdle() {
	left := s.o.Idle - (time.Since(s.began) - time.Duration(s.last.Load()))
	if left <= 0 {
		s.cancel(ErrIdle)
		return
	}
	if t := s.idle.Load(); t != nil {
		t.Reset(left)
	}
}

// oneClosed notes a close frame. The other side has a moment to answer it.
func (s *session) oneClosed() {
	if s.closed.Add(1) == 2 {
		s.cancel(errOver)
		return
	}
	time.AfterFunc(goodbye, func() { s.cancel(errOver) })
}

// way is one direction of a session.
type way struct {
	s        *session
	from, to io.ReadWriteCloser
	frames   framer
	byClient bool

	writes chan struct{} // holds a token while to is written to; guards what follows
	over   bool          // nothing more is written
	mid    bool          // what was written ends within a frame
}

// run passes on what comes until that ends.
func (w *way) run() {
	buf := make([]byte, w.s.o.Buffer)
	kept := 0
	for {
		n, err := w.from.Read(buf[kept:])
		if n > 0 {
			w.s.last.Store(int64(time.Since(w.s.began)))
			closed := w.frames.closed
			pass, refused := w.frames.take(buf[:kept+n])
			if !w.write(buf[:pass]) {
				return
			}
			kept = copy(buf, buf[pass:kept+n])
			if refused != nil {
				w.s.cancel(&RefusedError{w.byClient, refused})
				return
			}
			if w.frames.closed && !closed {
				w.s.oneClosed()
			}
		}
		if err != nil {
			w.left()
			return
		}
	}
}

// left notes that nothing comes from this side any more.
func (w *way) left() {
	switch {
	case w.s.closed.Load() > 0:
		w.s.cancel(errOver)
	case w.byClient:
		w.s.cancel(ErrClientGone)
	default:
		w.s.cancel(ErrBackendGone)
	}
}

// write passes p on. false = the other side takes nothing any more.
func (w *way) write(p []byte) bool {
	w.writes <- struct{}{}
	defer func() { <-w.writes }()
	if w.over || w.s.ending.Load() {
		return false
	}
	if len(p) == 0 {
		return true
	}
	w.mid = !w.frames.between()
	if _, err := w.to.Write(p); err != nil {
		w.over = true
		other := way{s: w.s, byClient: !w.byClient}
		other.left()
		return false
	}
	return true
}

// end tells the side that w writes to why the session is over, between two frames
// if there is such a moment, and closes its connection.
func (w *way) end(cause error) {
	code, reason := w.says(cause)
	if code == 0 {
		_ = w.to.Close()
		return
	}
	last := time.AfterFunc(goodbye, func() { _ = w.to.Close() })
	w.writes <- struct{}{} // a write that blocks ends with the connection
	if !w.over && !w.mid {
		var mask []byte
		if w.byClient {
			mask = make([]byte, 4)
			_, _ = rand.Read(mask)
		}
		_, _ = w.to.Write(closing(code, reason, mask))
	}
	w.over = true
	<-w.writes
	last.Stop()
	_ = w.to.Close()
}

// says is what the side that w writes to is told; 0 = nothing.
func (w *way) says(cause error) (code uint16, reason string) {
	var refused *RefusedError
	var end *EndError
	switch {
	case errors.Is(cause, errOver):
		return 0, ""
	case errors.As(cause, &end) && !w.byClient:
		return end.Code, end.Reason
	case errors.As(cause, &refused):
		switch {
		case refused.ByClient == w.byClient: // the side that did not send it
			return 1001, "the other side sent a frame that cannot be passed on"
		case errors.Is(cause, errTooLong):
			return 1009, "the message is too long"
		}
		return 1002, "the frame cannot be read"
	case errors.Is(cause, ErrIdle):
		return 1001, "nothing was sent for too long"
	case errors.Is(cause, ErrBackendGone):
		if w.byClient {
			return 0, ""
		}
		return 1011, "the backend broke off the session"
	case errors.Is(cause, ErrClientGone):
		if w.byClient {
			return 1001, "the client left"
		}
		return 0, ""
	}
	return 1001, "the gateway ends the session"
}

// event gathers a text message.
type event struct {
	o    Options
	text []byte
	long bool // it is not kept
}

// add takes the next part of a message.
func (e *event) add(part []byte, whole bool) {
	if !e.long && len(part) > 0 {
		e.long = len(e.text)+len(part) > e.o.MaxEvent || e.o.Room != nil && !e.o.Room(len(part))
		if !e.long {
			e.text = append(e.text, part...)
		}
	}
	if !whole {
		return
	}
	if !e.long {
		e.o.Event(e.text)
	}
	e.drop()
}

// drop gives the room back.
func (e *event) drop() {
	if e.o.Room != nil && len(e.text) > 0 {
		e.o.Room(-len(e.text))
	}
	if e.text, e.long = e.text[:0], false; cap(e.text) > 64<<10 {
		e.text = nil
	}
}
