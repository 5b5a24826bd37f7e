package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

const (
	// maxSends is how many backends a request is sent to: the chosen one, and
	// two more. Load that one backend cannot take must not run round the whole
	// fleet.
	maxSends = 3

	// documentWait is how long the first byte of an answer that is generated, and
	// not streamed, is waited for at least: it comes with the last token. SDKs wait as long.
	documentWait = 10 * time.Minute

	// errorStart is how much of an error answer is looked at.
	errorStart = 4 << 10
)

// errTripped is the failure of a backend whose breaker opened after the
// decision.
var errTripped = errors.New("breaker open")

// forward sends the request up until a backend has answered with a first byte.
// Until then the client has seen nothing, so a failure moves on to another
// backend, with a lease of its own, and so does a backend that is busy. If
// nobody takes the request, the client gets the last busy one's answer if there
// was one, since it says when to come back, and else the last failure.
func (x *exchange) forward() error {
	x.own = time.Since(x.arrived) - x.waited
	x.g.retries.earn()
	for {
		err := x.attempt()
		var up *upstreamError
		if !x.try.busy && !errors.As(err, &up) {
			x.judgeAccused(err)
			return err
		}
		failed := x.try
		x.setAside(err)
		moved, ended := x.moveOn(failed)
		if ended != nil {
			return ended
		}
		if !moved {
			x.judgeAccused(err)
			return x.nobody(err)
		}
		x.movesOn(failed.name, err)
	}
}

// attempt sends the request to the backend of its lease and waits for the
// first byte: its own, or that of a second attempt beside it.
func (x *exchange) attempt() error {
	t := x.newAttempt(x.decision)
	x.try = t // what it takes is given back from here on
	err := x.prepare(t)
	x.adopt(t)
	if err != nil {
		return err
	}
	if wait := x.hedgeAfter(t); wait > 0 {
		return x.race(t, wait)
	}
	t.send(&x.g.buffers, x.plan.conf.Timeouts.Silence)
	return x.firstByte()
}

// newAttempt is an attempt that has the lease of d, and nothing else yet.
func (x *exchange) newAttempt(d router.Decision) *attempt {
	target := d.Lease.Target()
	return &attempt{
		name: target.Backend, backend: x.incarnation(d.Lease), target: target,
		decision: d, lease: d.Lease, failover: x.placing.Again, stored: x.end.Stored,
		path: x.path, req: &x.req,
		verdict: func(error) {},
	}
}

// adopt makes t the attempt that the request is served by.
func (x *exchange) adopt(t *attempt) {
	x.try, x.target, x.decision, x.lease = t, t.target, t.decision, t.lease
	x.opaque, x.backendsFault = false, false
	if t.wentUp {
		x.sent = t.sent
	}
}

// prepare has the breaker's leave given and makes t ready to be sent.
func (x *exchange) prepare(t *attempt) error {
	if t.backend == nil { // the configuration changed twice between decision and here
		return t.failure(http.StatusServiceUnavailable, "is no longer there", nil)
	}
	verdict, ok := t.backend.Begin()
	if !ok {
		return t.failure(http.StatusServiceUnavailable, "is out of service", errTripped)
	}
	t.verdict = verdict

	up := edited{body: x.body}
	if !x.end.Stored {
		t.ask, t.strip = t.backend.Usage(x.path, &x.req)
		up.edits = x.req.Edit(t.target.Model, t.ask)
	}
	t.call = providers.Call{
		Method: x.r.Method, Path: x.upPath(), Model: cmp.Or(t.target.Model, x.req.Model),
		Header: x.upHeader(), Body: up, RequestID: requestID(x.r.Context()),
	}
	t.ctx, t.cancel = context.WithCancelCause(x.r.Context())
	t.spare = context.AfterFunc(x.g.ending, func() { t.cancel(errDraining) })
	timeouts := x.plan.conf.Timeouts
	t.sent = time.Now()
	first := timeouts.FirstByte
	if !x.stream && !x.end.Quick {
		first = max(first, documentWait)
	}
	t.timer = startUpstreamTimer(t.sent, x.arrived.Add(timeouts.Total), first, errFirstByte, t.cancel)
	t.wentUp = true
	x.sends++
	return nil
}

// firstByte looks at the start of the answer and decides whether it is one.
func (x *exchange) firstByte() error {
	t := x.try
	if t.panicked != nil {
		panic(t.panicked)
	}
	if t.err != nil {
		return x.sendFailed(t.err, "did not answer")
	}
	status := t.resp.StatusCode
	if !t.answers() {
		return x.sendFailed(errGarbage, "answered with status "+strconv.Itoa(status)+", which answers nothing")
	}
	good := status < 300
	start := t.buf[:t.n]
	if good && t.unasked {
		x.noteRefusal()
	}
	// An error whose words broke off is one all the same.
	if err := context.Cause(t.ctx); err != nil && !errors.Is(err, errSilence) {
		return x.sendFailed(err, "")
	}
	condition := t.backend.Condition(status, start)
	switch {
	case condition == providers.Loading:
		t.verdict(providers.ErrNoVerdict) // alive, not ready
		x.full(t.saying(start))
		return t.refused(http.StatusServiceUnavailable, "is still loading its model", openai.Failure{})
	case condition == providers.Failing:
		t.verdict(t.failure(status, "failed", nil))
		says := t.saying(start)
		t.says = says.Shaped
		x.noteError(says.Message)
		return t.refused(status, "answered "+strconv.Itoa(status), says)
	case status >= 300 && status < 400:
		t.verdict(nil)
		return t.failure(http.StatusBadGateway, "answered with a redirect", nil)
	case !good:
		t.busy = condition == providers.Full
		return x.refusal(start)
	case t.n == 0 && t.rerr != io.EOF:
		return x.sendFailed(t.rerr, "closed the connection before the first byte")
	case t.n == 0 && !x.end.Stored:
		return x.sendFailed(io.ErrUnexpectedEOF, "sent an empty answer")
	}
	return x.recognize(start)
}

// noteRefusal remembers what usage the backend does not want to be asked for: it
// has taken the request without.
func (x *exchange) noteRefusal() {
	t := x.try
	if !t.backend.AskAtMost(x.path, t.ask) {
		return
	}
	refused, instead := "stream_options", "never"
	if t.ask == openai.AskUsage {
		refused, instead = "continuous_usage_stats", "inject"
	}
	x.g.log.Warn("the backend refuses to be asked for usage in this way, and is not for some minutes; configure usage: "+instead+" for it",
		"backend", t.name, "path", x.path, "refused", refused)
}

// refusal takes an error answer that begins with start: of a backend that is
// busy, of one that may be at fault, or about what the client sent, which no
// other backend is asked to better.
func (x *exchange) refusal(start []byte) error {
	t, status := x.try, x.try.resp.StatusCode
	says := t.saying(start)
	x.opaque = true
	switch {
	case t.busy:
		t.verdict(nil)
		x.full(says)
	case x.ownersFault(status, start):
		x.accuse(says)
		if status < 500 {
			return x.sentAway(start, says)
		}
		t.busy = true // whose fault it is shows when another one is asked
	default:
		t.verdict(nil)
		x.acquit(status)
	}
	if !says.Shaped {
		return &backendError{backend: t.name, status: status, says: says, retry: t.retryHeaders()}
	}
	return nil
}

// recognize looks at the first bytes of a good answer: a stream of events, one
// JSON document, or, where nothing is decoded, anything else.
func (x *exchange) recognize(start []byte) error {
	t := x.try
	kind, _, _ := mime.ParseMediaType(t.resp.Header.Get("Content-Type"))
	t.events = kind == "text/event-stream" || x.stream && x.end.Decodes && beginsEvents(start)
	t.sse = t.events && (x.stream && x.end.Decodes || x.end.Events)
	text := bytes.TrimLeft(start, " \t\r\n")
	encoding := t.resp.Header.Get("Content-Encoding")
	switch isObject := len(text) == 0 || text[0] == '{'; {
	case x.end.Stored, encoding != "" && encoding != "identity":
		x.opaque, t.sse = true, false
		x.good()
		if !x.end.Stored {
			x.noteEncoding(encoding)
		}
		return nil
	case !t.sse && t.rerr != nil && t.rerr != io.EOF: // while another backend can still be asked
		return x.sendFailed(t.rerr, "broke off its answer")
	case x.end.Decodes && t.events && !t.sse:
		return x.sendFailed(errGarbage, "answered with a stream of events that was not asked for")
	case x.end.Decodes && !t.sse && !isObject && x.stream:
		return x.sendFailed(errGarbage, "answered with neither a stream of events nor JSON")
	case x.end.Decodes && !t.sse && !isObject:
		return x.sendFailed(errGarbage, "answered with something that is not JSON")
	}
	if x.end.Stores {
		x.noteID(start)
	}
	t.look = t.backend.NewMeter(x.path, t.sse, t.strip)
	x.keepText()
	t.pass, t.seen = x.observe(start)
	if t.whole = !t.sse && (t.rerr == io.EOF || int64(t.n) == t.resp.ContentLength); t.whole && x.end.Decodes {
		if _, end := t.look.End(); end.Bad { // while the client can still be told
			return x.sendFailed(errGarbage, "answered with something that is not JSON")
		}
	}
	if !t.sse {
		x.content = true
		x.good()
	}
	if t.seen.Bad && t.seen.Chunks == 0 && x.end.Decodes {
		return x.sendFailed(errGarbage, "answered with something that is not an event stream")
	}
	if t.sse && x.end.Decodes {
		o := profiles.Open{
			Sent: x.sent, Occupancy: x.lease.Occupancy(), PromptTokens: x.bodyTokens, Sequences: x.req.Sequences,
		}
		if !t.failover { // a herd that moves on together is no usual load
			o.Ahead = x.lease.Ahead()
		}
		x.meter = x.g.book.Open(x.lease.Target(), o)
	}
	return nil
}

// noteEncoding says that an answer is compressed, which was not asked for: it
// goes on as it is, and can be neither measured nor changed. So that no client
// sees a usage that it had not asked for, the next streams are asked for none.
func (x *exchange) noteEncoding(encoding string) {
	t := x.try
	t.encoding = encoding[:min(len(encoding), 40)]
	if t.strip != 0 {
		t.backend.AskAtMost(x.path, openai.AskNothing)
	}
	if t.backend.compresses.due(time.Now()) {
		x.g.log.Warn("the backend compresses its answers although it is asked not to: they are passed on, and not measured", "backend", t.name, "encoding", t.encoding)
	}
}

// beginsEvents reports whether start is the beginning of a stream of events,
// whatever the head says of its type: no JSON begins so, and no page. Some
// servers, and proxies before them, say text/plain or nothing.
func beginsEvents(start []byte) bool {
	text := bytes.TrimLeft(bytes.TrimPrefix(start, []byte("\xEF\xBB\xBF")), "\r\n")
	for _, field := range []string{":", "data:", "event:", "id:", "retry:"} {
		if n := min(len(text), len(field)); n > 0 && string(text[:n]) == field[:n] {
			return true
		}
	}
	return false
}

var errGarbage = errors.New("not an answer")

// sendFailed says why the attempt failed: the client left, the request took
// too long, or the backend is to blame.
func (x *exchange) sendFailed(err error, problem string) error {
	t := x.try
	if gone := x.r.Context().Err(); gone != nil {
		t.verdict(context.Canceled)
		return &goneError{err: gone}
	}
	switch cause := context.Cause(t.ctx); {
	case errors.Is(cause, errTotal), errors.Is(cause, errDraining): // our doing, not the backend's
		t.verdict(providers.ErrNoVerdict)
		return cause
	case errors.Is(cause, errFirstByte):
		t.verdict(errFirstByte)
		return t.failure(http.StatusGatewayTimeout, "sent no first byte in time", errFirstByte)
	}
	if ours(err) {
		t.verdict(providers.ErrNoVerdict)
		return errNoRoom
	}
	t.lost = isLost(err)
	var send *providers.SendError
	if errors.As(err, &send) {
		problem = send.Reason()
		t.lost = t.lost || send.Phase == providers.Connect
		if send.CutShort() {
			t.verdict(providers.ErrNoVerdict)
		}
	}
	t.verdict(err)
	x.noteError("the backend " + problem)
	return t.failure(http.StatusBadGateway, problem, err)
}

// ours reports whether an attempt failed because this machine has no descriptor
// or no port left for another connection.
func ours(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// isLost reports whether a connection broke, or there was none: whatever the
// backend had begun is gone with it.
func isLost(err error) bool {
	for _, e := range []error{
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed,
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// endAttempt ends the attempt and keeps its buffer for the next one.
func (x *exchange) endAttempt() { x.putBack(x.try) }

// putBack ends t and keeps its buffer.
func (x *exchange) putBack(t *attempt) {
	t.end()
	if t.buf != nil {
		x.g.buffers.Put(t.buf)
		t.buf = nil
	}
}
