package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/providers"
)

const (
	// maxSends is how many backends a request is sent to: the chosen one, and
	// one more. Load that one backend cannot take must not run round the
	// whole fleet.
	maxSends = 2

	// errorStart is how much of an error answer is looked at.
	errorStart = 4 << 10
)

// errTripped is the failure of a backend whose breaker opened after the
// decision.
var errTripped = errors.New("breaker open")

// attempt is one try to have the request served by one backend, until its
// first byte has come.
type attempt struct {
	backend *backend
	name    string
	ctx     context.Context
	cancel  context.CancelCauseFunc
	watch   *watch
	verdict func(error)
	wentUp  bool

	resp  *http.Response
	sse   bool // the answer is a stream of events
	whole bool // the answer is a document, and came whole in the first read
	look  providers.Meter
	buf   *[relayBuffer]byte
	n     int       // bytes of the first read, in buf
	at    time.Time // when it came
	kept  int64     // bytes of a document that the meter keeps, beyond the first read
	rerr  error     // with it, or after it
	pass  []byte    // what of it goes on
	seen  providers.Seen
	ended bool
}

// forward sends the request up until a backend has answered with a first byte.
// Until then the client has seen nothing, so a failure moves on to another
// backend, with a lease of its own.
func (x *exchange) forward() error {
	x.own = time.Since(x.arrived) - x.waited
	for sends := 0; ; {
		err := x.attempt()
		var up *upstreamError
		if !errors.As(err, &up) {
			return err
		}
		failed := x.try.name
		if x.try.wentUp {
			sends++
		}
		x.endAttempt()
		x.giveBack(time.Now(), 0)
		if sends == maxSends || !x.placeAgain(failed) {
			return err
		}
		x.g.log.Warn("moving on to another backend", "request", requestID(x.r.Context()), "failed", failed, "error", err.Error())
	}
}

// attempt sends the request to the backend of its lease and waits for the
// first byte.
func (x *exchange) attempt() error {
	target := x.lease.Target()
	t := &attempt{name: target.Backend, backend: x.plan.backends[target.Backend], verdict: func(error) {}}
	x.try, x.opaque = t, false
	if t.backend == nil { // the configuration changed between decision and here
		return t.failure(http.StatusServiceUnavailable, "is no longer there", nil)
	}
	verdict, ok := t.backend.Begin()
	if !ok {
		return t.failure(http.StatusServiceUnavailable, "is out of service", errTripped)
	}
	t.verdict = verdict

	x.asked = x.stream && t.backend.Injects() && !x.req.IncludeUsage
	body := x.req.Edit(target.Model, x.asked)
	if len(body) != len(x.body) || &body[0] != &x.body[0] {
		x.g.buffered.force(int64(len(body)))
		x.held += int64(len(body))
	}
	t.ctx, t.cancel = context.WithCancelCause(x.r.Context())
	now := time.Now()
	timeouts := x.plan.conf.Timeouts
	t.watch = startWatch(now, x.arrived.Add(timeouts.Total), timeouts.FirstByte, errFirstByte, t.cancel)
	x.sent, t.wentUp = now, true
	resp, err := t.backend.Send(t.ctx, providers.Call{
		Path: x.path, Model: cmp.Or(target.Model, x.req.Model), Header: x.upHeader(), Body: body, RequestID: requestID(x.r.Context()),
	})
	if err != nil {
		return x.sendFailed(err, "did not answer")
	}
	t.resp = resp
	return x.firstByte()
}

// firstByte reads the start of the answer and decides whether it is one.
func (x *exchange) firstByte() error {
	t := x.try
	t.buf = x.g.buffers.Get().(*[relayBuffer]byte)
	status := t.resp.StatusCode
	if !isAnswer(status) {
		return x.sendFailed(errGarbage, "answered with status "+strconv.Itoa(status)+", which answers nothing")
	}
	if status != http.StatusOK {
		t.n, t.rerr = readStart(t.resp.Body, t.buf[:errorStart])
	} else {
		for t.n == 0 && t.rerr == nil {
			t.n, t.rerr = t.resp.Body.Read(t.buf[:])
		}
	}
	t.at = time.Now()
	start := t.buf[:t.n]
	if err := context.Cause(t.ctx); err != nil {
		return x.sendFailed(err, "")
	}
	switch failed, loading := t.backend.Failed(status, start); {
	case loading:
		t.verdict(providers.ErrNoVerdict) // alive, not ready
		return t.refused(http.StatusServiceUnavailable, "is still loading its model")
	case failed:
		t.verdict(t.failure(status, "failed", nil))
		return t.refused(status, "answered "+strconv.Itoa(status))
	case status >= 300 && status < 400:
		t.verdict(nil)
		return t.failure(http.StatusBadGateway, "answered with a redirect", nil)
	case status != http.StatusOK:
		x.opaque = true
		t.verdict(nil) // it is alive; the mistake is the client's or the configuration's
		if x.backendsFault = backendsFault(status, x.lease.Target().Model); x.backendsFault {
			x.lease.Refused()
		}
		if status >= 400 && !t.explains(start) {
			return &backendError{backend: t.name, status: status, text: t.plainText(start), retryAfter: t.resp.Header.Get("Retry-After")}
		}
		return nil
	case t.n == 0 && t.rerr != io.EOF:
		return x.sendFailed(t.rerr, "closed the connection before the first byte")
	case t.n == 0:
		return x.sendFailed(io.ErrUnexpectedEOF, "sent an empty answer")
	}
	return x.recognize(start)
}

// recognize looks at the first bytes of a good answer: a stream of events, one
// JSON document, or neither.
func (x *exchange) recognize(start []byte) error {
	t := x.try
	if enc := t.resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		x.opaque = true // it was not asked for, and cannot be measured
		t.verdict(nil)
		return nil
	}
	kind, _, _ := mime.ParseMediaType(t.resp.Header.Get("Content-Type"))
	t.sse = x.stream && kind == "text/event-stream"
	if text := bytes.TrimLeft(start, " \t\r\n"); !t.sse && len(text) > 0 && text[0] != '{' {
		return x.sendFailed(errGarbage, "answered with something that is not JSON")
	}
	t.look = t.backend.NewMeter(x.path, t.sse, t.sse && x.asked)
	t.pass, t.seen = t.look.Read(start)
	if t.whole = !t.sse && (t.rerr == io.EOF || int64(t.n) == t.resp.ContentLength); t.whole {
		if _, end := t.look.End(); end.Bad { // while the client can still be told
			return x.sendFailed(errGarbage, "answered with something that is not JSON")
		}
	}
	if !t.sse {
		x.content = true
		t.verdict(nil)
	}
	if t.seen.Bad && t.seen.Chunks == 0 {
		return x.sendFailed(errGarbage, "answered with something that is not an event stream")
	}
	if t.sse {
		x.meter = x.g.book.Open(x.lease.Target(), profiles.Open{
			Sent: x.sent, Occupancy: x.lease.Occupancy(), PromptTokens: x.bodyTokens, Sequences: x.req.Sequences,
		})
	}
	return nil
}

var errGarbage = errors.New("not an answer")

// backendsFault reports whether an error answer is for the backend's owner to
// mend, rather than for the client: its key is wrong, it lacks the model that
// the configuration names, it is out of quota, or it broke. With no configured
// model the client's own name went up, and a 404 is about that.
func backendsFault(status int, model string) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return true
	case http.StatusNotFound:
		return model != ""
	}
	return status >= 500
}

// isAnswer reports whether status can be that of a completion or of an error.
// 101 would make the client's connection one of another protocol, 204 and 205
// have no body, and what is below 100 cannot be passed on at all.
func isAnswer(status int) bool {
	return status >= 200 && status < 600 && status != http.StatusNoContent && status != http.StatusResetContent
}

// explains reports whether an error answer that begins with start may go to
// the client as it is: it is an object, as SDKs expect, and does not repeat the
// key that the backend was shown.
func (t *attempt) explains(start []byte) bool {
	text := bytes.TrimLeft(start, " \t\r\n")
	return len(text) > 0 && text[0] == '{' && !t.tellsKey(start)
}

// plainText returns what an error answer that begins with start says in plain
// words, as of axum and uvicorn; "" if it says nothing, or says it as a page.
func (t *attempt) plainText(start []byte) string {
	const longest = 300 // bytes
	kind, _, _ := mime.ParseMediaType(t.resp.Header.Get("Content-Type"))
	if kind != "text/plain" || !utf8.Valid(start) || t.tellsKey(start) {
		return ""
	}
	text := strings.Join(strings.Fields(string(start)), " ")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}

func (t *attempt) tellsKey(start []byte) bool {
	key := t.backend.key
	return key != "" && bytes.Contains(start, []byte(key))
}

// sendFailed says why the attempt failed: the client left, the request took
// too long, or the backend is to blame.
func (x *exchange) sendFailed(err error, problem string) error {
	t := x.try
	if gone := x.r.Context().Err(); gone != nil {
		t.verdict(context.Canceled)
		return &goneError{err: gone}
	}
	switch cause := context.Cause(t.ctx); {
	case errors.Is(cause, errTotal):
		t.verdict(providers.ErrNoVerdict)
		return errTotal
	case errors.Is(cause, errFirstByte):
		t.verdict(errFirstByte)
		return t.failure(http.StatusGatewayTimeout, "sent no first byte in time", errFirstByte)
	}
	t.verdict(err)
	var send *providers.SendError
	if errors.As(err, &send) {
		problem = send.Reason()
	}
	return t.failure(http.StatusBadGateway, problem, err)
}

func (t *attempt) failure(status int, problem string, err error) *upstreamError {
	return &upstreamError{backend: t.name, status: status, problem: problem, err: err}
}

// refused is a failure that the backend itself reported.
func (t *attempt) refused(status int, problem string) error {
	e := t.failure(status, problem, nil)
	e.retryAfter = t.resp.Header.Get("Retry-After")
	return e
}

// endAttempt ends the attempt and keeps its buffer for the next one.
func (x *exchange) endAttempt() {
	x.try.end()
	if x.try.buf != nil {
		x.g.buffers.Put(x.try.buf)
		x.try.buf = nil
	}
}

// end cancels what still runs at the backend and gives everything back that the
// attempt holds. Calls after the first do nothing.
func (t *attempt) end() {
	if t.ended {
		return
	}
	t.ended = true
	t.verdict(providers.ErrNoVerdict) // does nothing if one was given
	if t.watch != nil {
		t.watch.stop()
	}
	if t.cancel != nil {
		t.cancel(context.Canceled)
	}
	if t.resp != nil {
		_ = t.resp.Body.Close()
	}
}

// readStart fills buf as far as the answer goes. EOF is reported only by the
// next read, unless nothing came at all.
func readStart(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	return n, err
}
