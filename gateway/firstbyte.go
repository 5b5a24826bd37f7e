package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/pacer-dev/pacer/internal/httpfield"
	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/providers"
)

var errGarbage = errors.New("not an answer")

// firstByte looks at the start of t's answer and decides whether it is one.
func (x *exchange) firstByte(t *attempt) error {
	u := &t.up
	if u.panicked != nil {
		panic(u.panicked)
	}
	if u.err != nil {
		return t.sendFailed(u.err, "did not answer")
	}
	t.up.noteLimits()
	status := u.resp.StatusCode
	if !u.answers() {
		return t.sendFailed(errGarbage, "answered with status "+strconv.Itoa(status)+", which answers nothing")
	}
	good := status < 300
	start := u.first.bytes()
	if good && u.relaxed {
		t.up.noteRelaxed()
	}
	t.up.noteLack(status)
	if err := t.cannotCarry(); err != nil {
		return err
	}
	// An error whose words broke off is one all the same.
	if err := context.Cause(u.ctx); err != nil && !errors.Is(err, errSilence) {
		return t.sendFailed(err, "")
	}
	condition := t.backend.Condition(status, start)
	switch {
	case status == http.StatusSwitchingProtocols:
		t.kind = answerGood
		t.good()
		return nil
	case good && x.request.end.Socket:
		return t.sendFailed(errGarbage, "did not open a session")
	case condition == providers.Loading:
		t.verdict(providers.ErrNoVerdict) // alive, not ready
		t.full(u.readError(start))
		return u.failsSaying(http.StatusServiceUnavailable, "is still loading its model", openai.Failure{})
	case condition == providers.Failing:
		t.verdict(t.fails(status, "failed", nil))
		t.phase.judge()
		says := u.readError(start)
		if says.Shaped && t.up.translation == nil {
			t.kind = answerFailed
		}
		u.noteError(says.Message)
		return u.failsSaying(status, "answered "+strconv.Itoa(status), says)
	case status >= 300 && status < 400:
		t.verdict(nil)
		return t.fails(http.StatusBadGateway, "answered with a redirect", nil)
	case !good:
		return x.refusal(t, start, condition == providers.Full)
	case u.blindRead():
		return t.unseen()
	case u.first.n == 0 && u.first.err != io.EOF:
		return t.sendFailed(u.first.err, "closed the connection before the first byte")
	case u.first.n == 0 && !x.request.end.Stored:
		return t.sendFailed(io.ErrUnexpectedEOF, "sent an empty answer")
	}
	return t.recognize(start)
}

// noteRelaxed remembers what usage the backend does not want to be asked for: it
// has taken the request without.
func (u *roundTrip) noteRelaxed() {
	path, _ := u.asked()
	if !u.backend.AskAtMost(path, u.ask) {
		return
	}
	refused, instead := "stream_options", "never"
	if u.ask == openai.AskUsage {
		refused, instead = "continuous_usage_stats", "inject"
	}
	u.g.log.Warn("the backend refuses to be asked for usage in this way, and is not for some minutes; configure usage: "+instead+" for it",
		"backend", u.name(), "path", path, "refused", refused)
}

// refusal takes an error answer that begins with start: of a backend that is
// full, of one that may be at fault, or about what the client sent, which no
// other backend is asked to better.
func (x *exchange) refusal(t *attempt, start []byte, full bool) error {
	status, says := t.up.resp.StatusCode, t.up.readError(start)
	switch {
	case full:
		t.kind = answerBusy
		t.verdict(nil)
		t.full(says)
	case t.up.mayBeOwners(start, says):
		x.openFault(t, says)
		if status < 500 {
			return t.up.sentAway(start, says)
		}
		t.kind = answerBusy // whose fault it is shows when another one is asked
	case x.placement.elsewhere == "" && len(x.onward.from) == 0 && x.route.conf.ContextFallback != "" && !x.request.end.Stored && x.owner == "" && providers.TooLong(status, says):
		t.kind = answerTooLong
		t.verdict(nil)
		x.toLongContext(t)
	default:
		t.kind = answerRefused
		t.verdict(nil)
		x.failover.faults.clientsOwn(status)
	}
	t.phase.judge()
	if !says.Shaped || t.up.translation != nil {
		return &backendError{backend: t.name(), status: status, says: says, retry: t.up.retryHeaders()}
	}
	return nil
}

// recognize looks at the first bytes of a good answer: a stream of events, one
// JSON document, or, where nothing is decoded, anything else.
func (t *attempt) recognize(start []byte) error {
	if t.up.translation != nil {
		return t.recognizeTranslated(start)
	}
	u, a, end := &t.up, &t.answer, t.request.end
	kind := mediaType(httpfield.First(u.resp.Header, "Content-Type"))
	streams := t.request.streams()
	a.events = kind == "text/event-stream" || streams && beginsEvents(start)
	known := a.events && (streams || end.Events) // the meter knows its last event
	text := bytes.TrimLeft(start, " \t\r\n")
	encoding := httpfield.First(u.resp.Header, "Content-Encoding")
	switch isObject := len(text) == 0 || text[0] == '{'; {
	case end.Stored, encoding != "" && encoding != "identity":
		t.kind = answerGood
		t.good()
		if !end.Stored {
			t.noteEncoding(encoding)
		}
		return nil
	case !known && u.first.err != nil && u.first.err != io.EOF: // while another backend can still be asked
		return t.sendFailed(u.first.err, "broke off its answer")
	case end.Decodes && a.events && !known:
		return t.sendFailed(errGarbage, "answered with a stream of events that was not asked for")
	case end.Decodes && !known && !isObject && t.request.parsed.Stream:
		return t.sendFailed(errGarbage, "answered with neither a stream of events nor JSON")
	case end.Decodes && !known && !isObject, end.Documented() && kind == "text/html": // vectors may be bytes, but no page
		return t.sendFailed(errGarbage, "answered with something that is not JSON")
	}
	if a.form = formDocument; known {
		a.form = formEvents
	}
	return t.readFirst(start)
}

// readFirst has the meter look at the first bytes of a good answer, while another
// backend can still be asked.
func (t *attempt) readFirst(start []byte) error {
	u, a, end := &t.up, &t.answer, t.request.end
	if end.Stores && u.translation == nil {
		t.indexResponse(start)
	}
	a.meter = t.up.onward.meter(t, u.newMeter(t.request.path, a.form == formEvents))
	t.keepText()
	a.pass, a.seen = a.observe(start, &t.memory)
	a.whole = a.form == formDocument && (u.first.err == io.EOF || int64(u.first.n) == u.resp.ContentLength)
	if a.form == formDocument {
		if err := t.hold(start); err != nil {
			return err
		}
	}
	if a.whole && (end.Decodes || end.Documented() && mediaType(httpfield.First(u.resp.Header, "Content-Type")) == "application/json") {
		if _, seen := a.meter.End(); seen.Bad { // while the client can still be told
			a.drop(&t.memory)
			return t.sendFailed(errGarbage, "answered with something that is not JSON")
		}
	}
	if a.seen.Bad && a.seen.Chunks == 0 && end.Decodes {
		return t.sendFailed(errGarbage, "answered with something that is not an event stream")
	}
	t.kind = answerGood
	if a.form == formDocument {
		t.measured.waits.Over() // when its prompt was prefilled, nobody will know
		t.good()
		return nil
	}
	t.phase.answer()
	if end.Decodes {
		t.measured.stream = t.openStream()
	}
	return nil
}

// openStream begins the measurement of a stream.
func (t *attempt) openStream() *profiles.Stream {
	o := profiles.Open{
		Sent: t.up.sent, Occupancy: t.lease().Occupancy(), PromptTokens: t.request.estimate, Sequences: t.request.parsed.Sequences,
		Waiting: t.measured.waits, CachedTokens: t.cached(t.target),
	}
	if !t.unusual() {
		o.Ahead = t.lease().Ahead()
	}
	return t.g.book.Open(t.target, o)
}

// noteEncoding says that an answer is compressed, which was not asked for: it
// goes on as it is, and can be neither measured nor changed. So that no client
// sees a usage that it had not asked for, the next streams are asked for none.
func (t *attempt) noteEncoding(encoding string) {
	t.answer.encoding = encoding[:min(len(encoding), 40)]
	if t.up.strip != 0 {
		t.backend.AskAtMost(t.request.path, openai.AskNothing)
	}
	if t.backend.compresses.due(time.Now()) {
		t.g.log.Warn("the backend compresses its answers although it is asked not to: they are passed on, and not measured", "backend", t.name(), "encoding", t.answer.encoding)
	}
}

// mediaType is what a Content-Type says without its parameters.
func mediaType(said string) string {
	switch said {
	case "application/json", "text/event-stream": // as almost all say it
		return said
	}
	kind, _, _ := mime.ParseMediaType(said)
	return kind
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

// sendFailed says why t failed: the client left, the request took too long, or
// the backend is to blame.
func (t *attempt) sendFailed(err error, problem string) error {
	if gone := t.request.http.Context().Err(); gone != nil {
		t.verdict(context.Canceled)
		return &goneError{err: gone}
	}
	switch cause := context.Cause(t.up.ctx); {
	case errors.Is(cause, errTotal), errors.Is(cause, errDraining): // our doing, not the backend's
		t.verdict(providers.ErrNoVerdict)
		return cause
	case errors.Is(cause, errHung): // which is known
		t.verdict(providers.ErrNoVerdict)
		t.free = true
		return t.fails(http.StatusGatewayTimeout, "takes requests and shows no life", errHung)
	case errors.Is(cause, errFirstByte):
		t.verdict(errFirstByte)
		return t.fails(http.StatusGatewayTimeout, "sent no first byte in time", errFirstByte)
	}
	if ours(err) {
		t.verdict(providers.ErrNoVerdict)
		return errNoRoom
	}
	lost := isLost(err)
	var send *providers.SendError
	if errors.As(err, &send) {
		problem = send.Reason()
		lost = lost || send.Phase == providers.Connect
		if send.CutShort() {
			t.verdict(providers.ErrNoVerdict)
		}
	}
	t.free = lost
	t.verdict(err)
	t.up.noteError("the backend " + problem)
	return t.fails(http.StatusBadGateway, problem, err)
}

// ours reports whether an attempt failed because this machine has no descriptor
// or no port left for another connection.
func ours(err error) bool {
	return isAny(err, syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL)
}

func isAny(err error, of ...error) bool {
	return slices.ContainsFunc(of, func(e error) bool { return errors.Is(err, e) })
}

// isLost reports whether a connection broke, or there was none: whatever the
// backend had begun is gone with it.
func isLost(err error) bool {
	return isAny(err, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed,
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, syscall.EHOSTUNREACH, syscall.ENETUNREACH)
}
