package gateway

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// writeDeadline bounds how long a client may take for what is written to it: one
// that takes nothing must not hold a stream for ever. It belongs to the goroutine
// that writes.
//
// On HTTP/1 a write deadline concerns writes alone, so it is rolled on. On
// HTTP/2 it ends the stream when it is over, whether a write waits or not: there
// a timer runs while one does.
type writeDeadline struct {
	h2    bool
	limit time.Duration

	// On HTTP/2. The timer is not touched by a write: it fires when the last one that
	// it knew of would have to be over, and sleeps on from what it finds.
	until atomic.Int64 // nanoseconds since base: end of the write; 0 = none is
	base  time.Time
	timer *time.Timer // nil before the first write
	mu    sync.Mutex  // guards over, and timer against look
	over  bool        // the handler returns: nothing of it may be touched

	since time.Time // when the deadline was last set; HTTP/1
	rc    *http.ResponseController
}

// start is called once, before any other method.
func (d *writeDeadline) start(rc *http.ResponseController, r *http.Request, limit time.Duration) {
	d.rc, d.limit, d.h2 = rc, limit, r.ProtoMajor >= 2
	if d.h2 {
		_ = rc.SetWriteDeadline(time.Time{}) // what holds for simple answers would end this one while its backend thinks
	}
}

// begin is called before a write at now. On HTTP/1 the deadline is moved in
// steps of an eighth: moving it costs more than the chunk. A connection that is
// gone, or knows no deadlines, says so when it is written to.
func (d *writeDeadline) begin(now time.Time) {
	switch {
	case !d.h2:
		if now.Sub(d.since) >= d.limit/8 {
			d.since = now
			_ = d.rc.SetWriteDeadline(now.Add(d.limit))
		}
	case d.timer == nil:
		d.mu.Lock() // look may be first
		d.base = now
		d.until.Store(int64(d.limit))
		d.timer = time.AfterFunc(d.limit, d.look)
		d.mu.Unlock()
	default:
		d.until.Store(int64(now.Sub(d.base) + d.limit))
	}
}

// end is called behind a write.
func (d *writeDeadline) end() {
	if d.h2 {
		d.until.Store(0)
	}
}

// last is called, in place of begin, before a write that the server may still be
// busy with when the handler has returned.
func (d *writeDeadline) last(now time.Time) { _ = d.rc.SetWriteDeadline(now.Add(d.limit)) }

// look ends a stream whose client takes nothing. It runs on the timer's goroutine.
func (d *writeDeadline) look() {
	d.mu.Lock()
	defer d.mu.Unlock()
	until, now := time.Duration(d.until.Load()), time.Since(d.base)
	switch {
	case d.over:
	case until == 0:
		d.timer.Reset(d.limit) // a write that begins meanwhile may take as long
	case now < until:
		d.timer.Reset(until - now)
	default:
		_ = d.rc.SetWriteDeadline(time.Unix(1, 0))
	}
}

// stop is called before the handler returns.
func (d *writeDeadline) stop() {
	if d.timer == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer.Stop()
	d.over = true
}
