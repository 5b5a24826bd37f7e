package picker

import (
	"errors"
	"net/http"
	"runtime/debug"

	mode "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/providers"
)

// serve has the handler serve the request.
func (c *call) serve() error {
	c.carried = &providers.Carried{Trip: c.trip, Only: c.only, Blind: c.down == mode.ProcessingMode_NONE}
	r, err := c.request(c.carried)
	if err != nil {
		return c.refuse(http.StatusBadRequest, openai.ErrorBody("The request's address cannot be read.", "invalid_request_error", "", "bad_address"), "pacer_bad_address")
	}
	a := &c.answer
	a.c, a.header = c, http.Header{}
	switch whole := c.handle(r); {
	case c.ctx.Err() != nil:
		return nil // whoever would read it is gone
	case !whole:
		return a.breakOff()
	}
	return a.finish()
}

// handle runs the handler and reports whether its answer is whole.
func (c *call) handle(r *http.Request) (whole bool) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			c.s.o.Log.Error("panic", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	c.s.o.Handler.ServeHTTP(&c.answer, r)
	return true
}

// unjudged is a request that nobody decides about.
func (c *call) unjudged(why string) error {
	if !c.s.o.FailClosed {
		c.s.warn("unjudged", "requests pass without a decision, as fail: open says: "+why)
		return c.pass()
	}
	c.s.warn("unjudged", "requests are refused, as fail: closed says: "+why)
	return c.refuse(http.StatusServiceUnavailable, openai.ErrorBody("The gateway has too many requests under way.", "server_error", "", "gateway_overloaded"), "pacer_overloaded")
}

// refuse answers a request that no handler gets. To end its stream would let it
// pass where Envoy fails open.
func (c *call) refuse(status int, body []byte, details string) error {
	e := &extproc.HeaderMutation{}
	set(e, "content-type", "application/json")
	if status == http.StatusServiceUnavailable {
		set(e, "retry-after", "1")
	}
	return c.send(immediate(status, e, body, details))
}

// pass lets everything go on as it is: Envoy chooses.
func (c *call) pass() error {
	if err := c.send(requestHead(&extproc.CommonResponse{})); err != nil {
		return err
	}
	for {
		m, err := c.next(c.ctx)
		if err != nil {
			return nil
		}
		unchanged := &extproc.CommonResponse{}
		switch v := m.GetRequest().(type) {
		case *extproc.ProcessingRequest_RequestBody:
			if duplex(c.up) {
				err = pieces(v.RequestBody.GetBody(), v.RequestBody.GetEndOfStream(), func(piece *extproc.CommonResponse) error { return c.send(requestBody(piece)) })
			} else {
				err = c.send(requestBody(unchanged))
			}
		case *extproc.ProcessingRequest_RequestTrailers:
			err = c.send(requestTrailers())
		case *extproc.ProcessingRequest_ResponseHeaders:
			err = c.send(answerHead(unchanged))
		case *extproc.ProcessingRequest_ResponseBody:
			if duplex(c.down) {
				err = pieces(v.ResponseBody.GetBody(), v.ResponseBody.GetEndOfStream(), func(piece *extproc.CommonResponse) error { return c.send(answerBody(piece)) })
			} else {
				err = c.send(answerBody(unchanged))
			}
		case *extproc.ProcessingRequest_ResponseTrailers:
			err = c.send(answerTrailers())
		}
		if err != nil {
			return err
		}
	}
}
