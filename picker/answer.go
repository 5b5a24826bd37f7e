package picker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	mode "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

// answer is what goes back to the client: an http.ResponseWriter whose connection
// is Envoy. Where a backend's answer came it is that one, edited; else it is
// Envoy's own, by an immediate response.
type answer struct {
	c      *call
	header http.Header
	status int // 0 = its head was not written

	came      bool                // a backend's answer did
	head      []*core.HeaderValue // of that
	upstream  int                 // its status
	body      downBody            // its body
	immediate bool                // it is not that one
	large     bool                // it has no room in a message

	told    bool   // its head went out
	pending []byte // of its body, not gone out: all of an immediate one, of others what answers the last message
}

// mostImmediate is how large an answer of the gateway itself may be, in bytes: it
// goes out in one message.
const mostImmediate = 8 << 20

var errLarge = errors.New("picker: an answer of the gateway itself that is larger than a message")

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status != 0 {
		return
	}
	a.status = status
	if !a.came || status != a.upstream { // the gateway speaks, in place of the backend
		a.immediate = true
	}
	if a.immediate {
		return
	}
	c := a.c
	if c.owes == owesAnswerHead && c.down != mode.ProcessingMode_BUFFERED {
		c.owes = owesNothing
		a.told = true
		_ = c.send(answerHead(&extproc.CommonResponse{HeaderMutation: a.edits()})) // the next write fails too
	}
}

// edits are what of the head is another for the client than it was from the
// backend.
func (a *answer) edits() *extproc.HeaderMutation {
	e := &extproc.HeaderMutation{}
	blind := a.c.down == mode.ProcessingMode_NONE
	had := valuesOf(a.head)
	for name, values := range a.header {
		name = strings.ToLower(name)
		was := had[name]
		delete(had, name)
		switch {
		case len(values) == 0, slices.Equal(was, values), ofConnection(name):
		case blind && !strings.HasPrefix(name, "x-"): // the body stays what it is, and so does what is said of it
		default:
			set(e, name, values...)
		}
	}
	if blind {
		return e
	}
	for name := range had {
		if !strings.HasPrefix(name, ":") && !ofConnection(name) {
			e.RemoveHeaders = append(e.RemoveHeaders, name)
		}
	}
	return e
}

// ofConnection reports whether a header of an answer is Envoy's to say.
func ofConnection(name string) bool {
	switch name {
	case "connection", "transfer-encoding", "keep-alive", "upgrade", "date", "server":
		return true
	}
	return strings.HasPrefix(name, "x-envoy-")
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	c := a.c
	switch {
	case a.immediate:
		if len(a.pending)+len(p) > mostImmediate {
			a.large = true
			return 0, errLarge
		}
		a.pending = append(a.pending, p...)
	case duplex(c.down):
		if err := context.Cause(c.ctx); err != nil {
			return 0, err
		}
		if err := pieces(p, false, func(piece *extproc.CommonResponse) error { return c.send(answerBody(piece)) }); err != nil {
			return 0, err
		}
	case c.down == mode.ProcessingMode_NONE: // nobody can put another body in its place
	default:
		a.pending = append(a.pending, p...) // no more than came with the message that it answers, and an error
	}
	return len(p), nil
}

// FlushError is what http.ResponseController calls. What can go out has gone.
func (a *answer) FlushError() error { return nil }

// SetReadDeadline is what http.ResponseController calls, for the body of the
// request.
func (a *answer) SetReadDeadline(t time.Time) error {
	a.c.deadline = t
	return nil
}

// SetWriteDeadline is what http.ResponseController calls. One that is over ends
// the stream, whatever write it hangs in.
func (a *answer) SetWriteDeadline(t time.Time) error {
	if !t.IsZero() && !t.After(time.Now()) {
		a.c.lose()
	}
	return nil
}

// acknowledge answers the message of the answer that Envoy waits for an answer to,
// in the modes in which it does.
func (a *answer) acknowledge() error {
	c := a.c
	owed := c.owes
	if duplex(c.down) {
		return nil // the head goes out with WriteHeader, and bodies need no answer
	}
	c.owes = owesNothing
	switch owed {
	case owesAnswerHead: // what follows may become another, and its length is not known then
		return c.send(answerHead(&extproc.CommonResponse{HeaderMutation: &extproc.HeaderMutation{RemoveHeaders: []string{"content-length"}}}))
	case owesAnswerBody:
		change := &extproc.CommonResponse{BodyMutation: &extproc.BodyMutation{Mutation: &extproc.BodyMutation_Body{Body: a.pending}}}
		if len(a.pending) == 0 {
			change.BodyMutation.Mutation = &extproc.BodyMutation_ClearBody{ClearBody: true}
		}
		if c.down == mode.ProcessingMode_BUFFERED {
			change.HeaderMutation = a.edits()
		}
		a.pending = nil
		return c.send(answerBody(change))
	}
	return nil
}

// lingers is how long the end of an answer is waited for that the handler has done
// with.
const lingers = time.Second

// finish ends an answer that the handler has written.
func (a *answer) finish() error {
	c := a.c
	a.WriteHeader(http.StatusOK)
	switch {
	case a.large:
		return a.breakOff()
	case a.immediate:
		return a.sayAtOnce()
	case !duplex(c.down):
		err := a.acknowledge()
		if err == nil && a.body.trailers {
			err = c.send(answerTrailers())
		}
		if err != nil {
			return err
		}
		return c.tail()
	}
	ctx, cancel := context.WithTimeout(c.ctx, lingers)
	defer cancel()
	for !a.body.over {
		if err := a.body.next(ctx); err != nil {
			return a.breakOff()
		}
	}
	if a.body.trailers {
		return c.send(answerTrailers())
	}
	return pieces(nil, true, func(piece *extproc.CommonResponse) error { return c.send(answerBody(piece)) })
}

// sayAtOnce sends an answer of the gateway's own.
func (a *answer) sayAtOnce() error {
	e := &extproc.HeaderMutation{}
	for name, values := range a.header {
		if name = strings.ToLower(name); len(values) > 0 && name != "content-length" && !ofConnection(name) {
			set(e, name, values...)
		}
	}
	return a.c.send(immediate(a.status, e, a.pending, "pacer"))
}

// breakOff ends an answer so that nobody takes it for whole: Envoy resets what has
// begun.
func (a *answer) breakOff() error {
	return a.c.send(immediate(http.StatusBadGateway, nil, nil, "pacer_broke_off"))
}

func immediate(status int, e *extproc.HeaderMutation, body []byte, details string) *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ImmediateResponse{ImmediateResponse: &extproc.ImmediateResponse{
		Status: &envoytype.HttpStatus{Code: envoytype.StatusCode(status)}, Headers: e, Body: body, Details: details,
	}}}
}

// tail answers what Envoy still sends of an answer that the handler has done with.
func (c *call) tail() error {
	for {
		m, err := c.next(c.ctx)
		if err != nil {
			return nil
		}
		switch {
		case m.GetResponseTrailers() != nil:
			err = c.send(answerTrailers())
		case m.GetRequestTrailers() != nil:
			err = c.send(requestTrailers())
		case m.GetResponseBody() != nil:
			err = c.send(answerBody(&extproc.CommonResponse{BodyMutation: &extproc.BodyMutation{Mutation: &extproc.BodyMutation_ClearBody{ClearBody: true}}}))
		case m.GetRequestBody() != nil: // as in trip
		default:
			err = fmt.Errorf("%w: behind the answer", errOrder)
		}
		if err != nil {
			return err
		}
	}
}
