package gateway

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// attempt is one try to have the request served by one backend, until its
// first byte has come.
//
// It belongs to the goroutine of the exchange, but for send while that is at
// work in a goroutine of its own, which closes done.
type attempt struct {
	backend  *backend
	name     string
	target   router.Target
	decision router.Decision // why it goes there
	lease    *router.Lease   // of decision
	failover bool            // after another one
	stored   bool            // about an answer that the backend keeps

	ctx     context.Context
	cancel  context.CancelCauseFunc
	spare   func() bool // the end of the gateway no longer cancels it
	timer   *upstreamTimer
	verdict func(error)
	path    string // below /v1
	req     *openai.Request
	ask     openai.Ask // what usage the backend is asked for
	unasked bool       // it did not take more
	strip   providers.Strip
	call    providers.Call
	wentUp  bool
	sent    time.Time
	done    chan struct{} // closed when send is over; nil = it has no goroutine of its own

	err      error // of sending
	panicked any   // what send panicked with, in a goroutine of its own
	resp     *http.Response

	events   bool   // the answer is a stream of events
	sse      bool   // and the meter knows its last one
	encoding string // of an answer that is compressed; "" = it is not

	whole bool // the answer is a document, and came whole in the first read
	busy  bool // it is full, or said 500: somebody else may take the request
	says  bool // it failed, and said so in a shape that the client may have
	lost  bool // its connection broke before the first byte
	known bool // its target is known to refuse, or to be full
	look  providers.Meter
	buf   *[relayBuffer]byte
	n     int       // bytes of the first read, in buf
	at    time.Time // when it came
	held  int64     // bytes that the meter keeps, as far as they are counted
	rerr  error     // with it, or after it
	pass  []byte    // what of it goes on
	seen  providers.Seen
	ended bool
}

// send sends the request up and reads the start of the answer. Where a backend
// refuses to be asked for usage, it sends the request again without. It touches
// nothing but t. silence is how long the words of an error may take.
func (t *attempt) send(buffers *sync.Pool, silence time.Duration) {
	for t.sendOnce(buffers, silence) {
		less, ok := providers.RefusesAsk(t.resp.StatusCode, t.buf[:t.n], t.req, t.ask)
		if !ok {
			return
		}
		_ = t.resp.Body.Close()
		t.ask, t.strip, t.unasked = less, t.backend.Strip(t.path, t.req, less), true
		t.call.Body = edited{t.call.Body.(edited).body, t.req.Edit(t.target.Model, less)}
	}
}

// sendOnce sends the request and reads of a good answer its first bytes, of an
// error as much as is looked at. It reports whether there is an answer.
func (t *attempt) sendOnce(buffers *sync.Pool, silence time.Duration) bool {
	t.n, t.rerr = 0, nil
	if t.resp, t.err = t.backend.Send(t.ctx, t.call); t.err != nil || !t.answers() {
		return false
	}
	if t.buf == nil {
		t.buf = buffers.Get().(*[relayBuffer]byte)
	}
	if t.resp.StatusCode < 300 {
		for t.n == 0 && t.rerr == nil {
			t.n, t.rerr = t.resp.Body.Read(t.buf[:])
		}
	} else {
		t.resp.Body = mask(t.resp.Body, t.backend.secrets)
		over := time.AfterFunc(silence, func() { t.cancel(errSilence) })
		t.n, t.rerr = readStart(t.resp.Body, t.buf[:errorStart])
		over.Stop()
	}
	t.at = time.Now()
	return true
}

// launch has send done by a goroutine of its own; end waits for it.
func (t *attempt) launch(buffers *sync.Pool, silence time.Duration) {
	t.done = make(chan struct{})
	go func() {
		defer close(t.done)
		defer func() { t.panicked = recover() }()
		t.send(buffers, silence)
	}()
}

// answers reports whether the status can be that of a completion or of an
// error. 101 would make the client's connection one of another protocol, 204 and
// 205 have no body, which is an answer only where something is deleted, and what
// is below 100 cannot be passed on at all.
func (t *attempt) answers() bool {
	status := t.resp.StatusCode
	if status == http.StatusNoContent || status == http.StatusResetContent {
		return t.stored
	}
	return status >= 200 && status < 600
}

func (t *attempt) failure(status int, problem string, err error) *upstreamError {
	return &upstreamError{backend: t.name, status: status, problem: problem, err: err}
}

// refused is a failure that the backend itself reported, in the words of says.
func (t *attempt) refused(status int, problem string, says openai.Failure) error {
	e := t.failure(status, problem, nil)
	e.says = says
	e.retry = t.retryHeaders()
	return e
}

// end cancels what still runs at the backend and gives everything back that the
// attempt holds. Calls after the first do nothing.
func (t *attempt) end() {
	if t.ended {
		return
	}
	t.ended = true
	t.verdict(providers.ErrNoVerdict) // does nothing if one was given
	if t.timer != nil {
		t.timer.stop()
	}
	if t.cancel != nil {
		if t.spare != nil {
			t.spare()
		}
		t.cancel(context.Canceled)
	}
	if t.done != nil {
		<-t.done // soon: sending and reading end with the context
	}
	if t.resp != nil {
		_ = t.resp.Body.Close()
	}
}

// readStart fills buf as far as the answer goes.
func readStart(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	return n, err
}

// retryHeaders returns what the answer says of trying again, by the headers that
// SDKs read.
func (t *attempt) retryHeaders() http.Header {
	h := http.Header{}
	for _, name := range []string{"Retry-After", "Retry-After-Ms", "X-Should-Retry"} {
		if v := t.resp.Header[name]; v != nil && !t.backend.tells(v) {
			h[name] = v
		}
	}
	return h
}
