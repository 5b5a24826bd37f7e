package gateway

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/router"
)

const (
	// A first byte is late when it takes lateFactor times what was predicted for
	// the first token, and lateLeast more. Where max_ttft could not be kept by
	// waiting that long, clearFactor and clearLeast will do.
	lateFactor  = 3.0
	lateLeast   = 100 * time.Millisecond
	clearFactor = 1.5
	clearLeast  = 50 * time.Millisecond
)

// hedgeAfter is how long after it went up t may be silent until a second
// attempt is worth its price; 0 = however long.
//
// Only streams are hedged, where the first byte comes with the first token: a
// document is silent until it is whole, so that silence says nothing, and a
// second one would cost a whole answer. What a backend keeps must not be there
// twice, batch has time, and of a target whose first tokens are not known
// nobody can say that one is late.
func (x *exchange) hedgeAfter(t *attempt) time.Duration {
	if !x.route.conf.Hedge || !x.stream || !x.end.Decodes || x.end.Stores || x.req.Store {
		return 0
	}
	predicted := t.lease.TTFT()
	if x.class != router.Interactive || x.sends > 1 || predicted <= 0 {
		return 0
	}
	after := times(predicted, t.backend.firstByte.factor()) + lateLeast
	if x.maxTTFT > 0 { // the second attempt is left as long as the first one gets at least
		sure := times(predicted, clearFactor) + clearLeast
		left := x.maxTTFT - t.sent.Sub(x.arrived) - sure
		after = min(after, max(left, sure))
	}
	return after
}

func times(d time.Duration, factor float64) time.Duration {
	return time.Duration(min(float64(d)*factor, float64(time.Hour)))
}

// race sends first up, and, if it is silent for as long as wait, a second
// attempt beside it. The one whose good answer begins first is kept; the other
// is cancelled at once, which is no verdict about its backend and teaches
// nothing.
func (x *exchange) race(first *attempt, wait time.Duration) error {
	first.launch(&x.g.buffers, x.plan.conf.Timeouts.Silence)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-first.done:
		return x.alone()
	case <-timer.C:
	}
	if !x.second(first.name) {
		<-first.done
		return x.alone()
	}
	second := x.rival
	select {
	case <-first.done:
	case <-second.done:
		x.swap()
	}
	err := x.firstByte()
	if x.couldBeBettered(err) {
		failed := x.try.name
		x.setAside(err)
		x.movesOn(failed, err)
		x.adopt(x.rival)
		x.rival = nil
		<-x.try.done
		err = x.firstByte()
	}
	switch {
	case x.try == second && err == nil:
		x.hedge = telemetry.HedgeWon
		if x.rival != nil { // the first is silent still
			first.backend.firstByte.note(math.Inf(1))
			first.lease.Refused(time.Now(), true)
		}
	case x.try == first && err == nil:
		x.noteFirstByte()
	}
	x.dropRival()
	return err
}

// alone judges the answer of the only attempt.
func (x *exchange) alone() error {
	err := x.firstByte()
	if err == nil {
		x.noteFirstByte()
	}
	return err
}

// second sends the request to another target as well, if one is feasible right
// now and the budget of further sends allows it; x.rival is that attempt then.
func (x *exchange) second(first string) bool {
	x.hedge = telemetry.HedgeRefused
	if x.sends >= maxSends || !x.g.retries.takeSpare() {
		return false
	}
	req := x.placing
	req.Exclude, req.Spare = append(slices.Clip(req.Exclude), first), true
	d := x.g.placer.Place(time.Now(), req)
	if d.Ticket != nil { // of a Placer that knows no spare places
		x.g.Deliver(d.Ticket.Cancel(time.Now()))
	}
	if d.Lease == nil {
		x.g.retries.give()
		return false
	}
	t := x.newAttempt(d)
	t.failover = true // of those that hedge, the fast ones are kept: no usual first token
	x.rival = t
	if err := x.prepare(t); err != nil {
		x.g.retries.give()
		x.dropRival()
		return false
	}
	x.hedge, x.hedgedTo = telemetry.HedgeLost, t.name // until it is won
	x.placing.Exclude = append(req.Exclude, t.name)
	t.launch(&x.g.buffers, x.plan.conf.Timeouts.Silence)
	return true
}

// couldBeBettered reports whether an attempt that ended with err leaves
// something to hope for from its rival: the backend failed or refused, and not
// for what the client sent.
func (x *exchange) couldBeBettered(err error) bool {
	var up *upstreamError
	return x.try.busy || errors.As(err, &up)
}

// swap makes the rival the attempt that the request is served by.
func (x *exchange) swap() {
	was := x.try
	x.adopt(x.rival)
	x.rival = was
}

// dropRival cancels the attempt beside the one that serves the request, if there
// is one, and gives its lease back.
func (x *exchange) dropRival() {
	t := x.rival
	if t == nil {
		return
	}
	x.rival = nil
	x.putBack(t)
	x.g.Deliver(t.lease.Done(time.Now(), 0))
}

// noteFirstByte takes note of how late the first byte of a good answer was.
func (x *exchange) noteFirstByte() {
	if t := x.try; !x.opaque {
		t.backend.firstByte.note(t.at.Sub(t.sent).Seconds() / t.lease.TTFT().Seconds())
	}
}
