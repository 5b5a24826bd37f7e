package gateway

import (
	"net/http"
	"sync"
	"time"
)

// patience is how long a client may take for what is written to it. It belongs
// to the goroutine that writes.
//
// On HTTP/1 a write deadline concerns writes alone, so it is rolled on. On
// HTTP/2 it ends the stream when it is over, whether a write waits or not: there
// a timer runs while one does.
type patience struct {
	rc    *http.ResponseController
	limit time.Duration
	h2    bool
	since time.Time // when the deadline was last set; HTTP/1

	timer *time.Timer // nil before the first write; HTTP/2
	mu    sync.Mutex  // guards over
	over  bool        // the handler returns: nothing of it may be touched
}

// start is called once, before any other method.
func (p *patience) start(rc *http.ResponseController, r *http.Request, limit time.Duration) {
	p.rc, p.limit, p.h2 = rc, limit, r.ProtoMajor >= 2
	if p.h2 {
		_ = rc.SetWriteDeadline(time.Time{}) // what holds for simple answers would end this one while its backend thinks
	}
}

// begin is called before a write at now. On HTTP/1 the deadline is moved in
// steps of an eighth: moving it costs more than the chunk. A connection that is
// gone, or knows no deadlines, says so when it is written to.
func (p *patience) begin(now time.Time) {
	switch {
	case !p.h2:
		if now.Sub(p.since) >= p.limit/8 {
			p.since = now
			_ = p.rc.SetWriteDeadline(now.Add(p.limit))
		}
	case p.timer == nil:
		p.timer = time.AfterFunc(p.limit, p.lose)
	default:
		p.timer.Reset(p.limit)
	}
}

// end is called behind a write.
func (p *patience) end() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

// last is called, in place of begin, before a write that the server may still be
// busy with when the handler has returned.
func (p *patience) last(now time.Time) { _ = p.rc.SetWriteDeadline(now.Add(p.limit)) }

// lose ends a stream whose client takes nothing. It runs on the timer's
// goroutine.
func (p *patience) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		_ = p.rc.SetWriteDeadline(time.Unix(1, 0))
	}
}

// stop is called before the handler returns.
func (p *patience) stop() {
	if p.timer == nil {
		return
	}
	p.timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}
