package gateway

import (
	"math"
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

// hedge is the second attempt of a request, beside its first. The zero value is
// none.
type hedge struct {
	rival   *attempt // under way beside the one that the request is served by; nil = none
	result  telemetry.Hedge
	backend string // of the second attempt; "" = none was sent
}

// end cancels the attempt beside the one that serves the request, if there is
// one.
func (h *hedge) end() {
	if t := h.rival; t != nil {
		h.rival = nil
		t.end(time.Now(), false)
		t.abandon()
	}
}

// hedgeAfter is how long after it went up t may be silent until a second
// attempt is worth its price; 0 = however long.
//
// Only streams are hedged, where the first byte comes with the first token: a
// document is silent until it is whole, so that silence says nothing, and a
// second one would cost a whole answer. What a backend keeps must not be there
// twice, batch has time, and of a target whose first tokens are not known
// nobody can say that one is late.
func (x *exchange) hedgeAfter(t *attempt) time.Duration {
	if !x.route.conf.Hedge || x.request.carried != nil || !x.request.streams() || x.request.end.Stores || x.request.parsed.Store {
		return 0
	}
	predicted := t.lease().TTFT()
	if x.objective.class != router.Interactive || x.failover.sends > 1 || predicted <= 0 {
		return 0
	}
	after := times(predicted, t.backend.firstByte.factor()) + lateLeast
	if x.objective.maxTTFT > 0 { // the second attempt is left as long as the first one gets at least
		sure := times(predicted, clearFactor) + clearLeast
		left := x.objective.maxTTFT - t.up.sent.Sub(x.request.arrived) - sure
		after = min(after, max(left, sure))
	}
	return after
}

func times(d time.Duration, factor float64) time.Duration {
	return time.Duration(min(float64(d)*factor, float64(time.Hour)))
}

// race sends first up, and, if it is silent for as long as wait, a second
// attempt beside it. The one whose good answer begins first is kept, or else what
// the first one answers; the other is cancelled at once, which is no verdict about its backend and teaches
// nothing.
func (x *exchange) race(first *attempt, wait time.Duration) error {
	first.rescue.await(false)
	first.up.launch(&x.g.buffers, x.setup.conf.Timeouts.Silence)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-first.up.done:
		first.rescue.leave(x.g)
		return x.alone(first)
	case <-timer.C:
	}
	if first.rescue.leave(x.g) || !x.second(first) {
		x.outlast(first)
		return x.alone(first)
	}
	second := x.hedge.rival
	second.rescue.await(true) // for both: one place would do for either
	came := first
	select {
	case <-first.up.done:
	case <-second.up.done:
		came = second
	}
	moved := second.rescue.leave(x.g)
	if came == second {
		x.attempt, x.hedge.rival = second, first
	}
	err := x.firstByte(x.attempt)
	switch {
	case moved && came == second: // the first one hangs as well
	case couldBeBettered(came, err):
		x.setAside(came, err)
		x.logMove(came, err)
		x.attempt, x.hedge.rival = x.hedge.rival, nil
		x.outlast(x.attempt)
		err = x.firstByte(x.attempt)
	case came == second && came.kind == answerRefused:
		err = x.hearFirst(first, second, err)
	}
	switch {
	case x.attempt == second && second.kind == answerGood && err == nil:
		x.hedge.result = telemetry.HedgeWon
		if x.hedge.rival != nil && !first.unusual() { // the first is silent still
			first.backend.firstByte.note(math.Inf(1))
			first.lease().Refused(time.Now(), true)
		}
	case x.attempt == first && err == nil:
		first.noteFirstByte()
	}
	x.hedge.end()
	return err
}

// outlast waits for the answer of t, which is alone again.
func (x *exchange) outlast(t *attempt) {
	t.rescue.await(false)
	<-t.up.done
	t.rescue.leave(x.g)
}

// hearFirst has the first attempt decide what second refused with err, for what
// the client sent: without a second attempt its client would not have read that.
// Where the first one fails, the refusal is what there is.
func (x *exchange) hearFirst(first, second *attempt, err error) error {
	second.up.timer.pause()
	x.attempt, x.hedge.rival = first, second
	x.outlast(first)
	firstErr := x.firstByte(first)
	if !couldBeBettered(first, firstErr) {
		return firstErr
	}
	x.setAside(first, firstErr)
	first.abandon()
	x.logMove(first, firstErr)
	second.up.first.at = time.Now() // it comes to the client only from here on
	x.attempt, x.hedge.rival = second, nil
	return err
}

// alone judges the answer of the only attempt.
func (x *exchange) alone(t *attempt) error {
	err := x.firstByte(t)
	if err == nil {
		t.noteFirstByte()
	}
	return err
}

// second sends the request to another target as well, if one is feasible right
// now and the budget of further sends allows it; x.hedge.rival is that attempt
// then.
func (x *exchange) second(first *attempt) bool {
	x.hedge.result = telemetry.HedgeRefused
	if x.failover.sends >= maxSends || !x.g.retries.takeSpare() {
		return false
	}
	d := x.placement.spare(first.name())
	if d.Lease == nil {
		x.g.retries.give()
		return false
	}
	t := x.newAttempt(d)
	t.failover = true // of those that hedge, the fast ones are kept: no usual first token
	x.hedge.rival = t
	if err := x.send(t); err != nil {
		x.g.retries.give()
		x.hedge.end()
		return false
	}
	x.hedge.result, x.hedge.backend = telemetry.HedgeLost, t.name() // until it is won
	x.placement.exclude(first.name(), t.name())
	t.up.launch(&x.g.buffers, x.setup.conf.Timeouts.Silence)
	return true
}

// noteFirstByte takes note of how late the first byte of a good answer was.
func (t *attempt) noteFirstByte() {
	if t.answer.form != formUnread && !t.unusual() {
		t.backend.firstByte.note(t.up.first.at.Sub(t.up.sent).Seconds() / t.lease().TTFT().Seconds())
	}
}
