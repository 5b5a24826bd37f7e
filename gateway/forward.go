package gateway

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/providers"
)

const (
	// maxSends is how many backends a request is sent to: the chosen one, and
	// two more. Load that one backend cannot take must not run round the whole
	// fleet.
	maxSends = 3

	// documentWait is how long the first byte of an answer that is generated, and
	// not streamed, is waited for at least: it comes with the last token. SDKs wait as long.
	documentWait = 10 * time.Minute
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
	x.overhead = time.Since(x.request.arrived) - x.placement.req.Stood
	x.g.retries.earn()
	x.onward.begin(&x.order)
	return x.deliver()
}

// deliver sends the attempt's request up, and where it fails that of the next one.
func (x *exchange) deliver() error {
	for {
		err := x.try()
		if x.request.carried != nil || !couldBeBettered(x.attempt, err) {
			x.settleFaults(err)
			x.sayWhenOf(x.attempt, err)
			return err
		}
		failed := x.attempt
		x.setAside(failed, err)
		next, ended := x.moveOn(failed)
		if ended != nil {
			return ended
		}
		if next == nil {
			x.settleFaults(err)
			return x.nobody(err)
		}
		x.attempt = next
		x.logMove(failed, err)
	}
}

// try sends the attempt's request up and waits for the first byte: its own, or
// that of a second attempt beside it.
func (x *exchange) try() error {
	t := x.attempt
	if err := x.send(t); err != nil {
		return err
	}
	if wait := x.hedgeAfter(t); wait > 0 {
		return x.race(t, wait)
	}
	t.rescue.await(false)
	t.up.send(&x.g.buffers, x.setup.conf.Timeouts.Silence)
	t.rescue.leave(x.g)
	x.turned()
	return x.firstByte(t)
}

// prepare makes the call to a backend that speaks the client's dialect.
func (u *roundTrip) prepare() {
	r := &u.request
	if model := cmp.Or(u.model, r.parsed.Model); r.end.PartOf(endpoint.Google) {
		u.prepareGoogle(model)
		return
	}
	body := edited{body: r.body}
	if !r.end.Stored {
		u.ask, u.strip = u.onward.ask(u.backend, r)
		body.edits = u.onward.edits(u.backend, r.parsed.Edit(u.model, u.ask))
	}
	u.call = providers.Call{
		Method: r.http.Method, Path: r.upPath(), Model: cmp.Or(u.model, r.parsed.Model),
		Header: r.upHeader(u.order.span != nil), Body: body, RequestID: requestID(r.http.Context()), Prompt: r.estimate, Answer: r.parsed.MaxTokens,
	}
}

// send has the breaker's leave given and makes t ready to be sent.
func (x *exchange) send(t *attempt) error {
	if t.backend == nil {
		return t.fails(http.StatusServiceUnavailable, "is no longer there", nil)
	}
	verdict, ok := t.backend.Begin()
	if !ok {
		return t.fails(http.StatusServiceUnavailable, "is out of service", errTripped)
	}
	t.verdict = verdict

	u, r := &t.up, &x.request
	if r.end.Socket {
		u.prepareSocket()
	} else if x.translates(t.backend, cmp.Or(u.model, r.parsed.Model)) {
		if err := u.prepareTranslated(); err != nil {
			t.verdict(providers.ErrNoVerdict)
			return err
		}
	} else {
		u.prepare()
		if asked := u.offerInstead(); !asked {
			t.verdict(providers.ErrNoVerdict)
		}
	}
	x.offer(t)
	u.ctx, u.cancel = context.WithCancelCause(r.http.Context())
	timeouts := x.setup.conf.Timeouts
	u.sent = time.Now()
	u.owe()
	x.g.endings.add(t, x)
	if r.streams() {
		t.measured.waits = x.g.book.Send(t.target, u.sent, r.estimate-x.cached(t.target))
	}
	t.visit()
	t.followAttempt(t == x.hedge.rival)
	first := timeouts.FirstByte
	if !r.parsed.Stream && !r.end.Quick {
		first = max(first, documentWait)
	}
	u.timer = startUpstreamTimer(u.sent, r.arrived.Add(timeouts.Total), first, &errFirstByte, u.cancel)
	t.phase.send()
	t.free = false
	x.failover.sends++
	return nil
}
