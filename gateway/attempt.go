package gateway

import (
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/tracing"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// answerKind is what an attempt's answer is to its exchange.
type answerKind uint8

const (
	answerNone       answerKind = iota // there is none yet, or none that can be passed on
	answerGood                         // it is passed on
	answerRefused                      // an error that is the client's own: it is passed on
	answerBusy                         // an error of one that is full or broke: kept while others are asked
	answerTooLong                      // the prompt does not fit there: kept while the route for longer ones is asked
	answerFailed                       // a failure in words that a client may have: kept until a busy one says more
	answerLastResort                   // one that was kept, and is passed on since nobody took the request
)

// attempt is one try to have an order carried out by one backend, from its lease
// until all is given back: it owns its place, its verdict, and what the relay
// learns of its answer.
//
// What each chunk of a stream touches comes first: of thousands of streams it is in
// no cache, and costs by its lines.
type attempt struct {
	*order

	phase    phase
	kind     answerKind
	failover bool // after another one, or beside it
	free     bool // moving on from it is no load on top

	measured measurement
	answer   reading
	up       roundTrip
	place
	rescue rescue

	sentBefore time.Time     // when the attempt before it, or one before that, was sent; zero = none was
	verdict    func(error)   // for the breaker; calls after the first do nothing
	span       *tracing.Span // nil = nobody follows it
}

// newAttempt is an attempt that has the lease of d, and nothing else yet.
func (x *exchange) newAttempt(d router.Decision) *attempt {
	t := &attempt{
		order: &x.order, place: x.setup.placeOf(d, x.g.incarnation(x.setup, d.Lease)),
		failover: x.placement.req.Again, free: true, verdict: func(error) {},
	}
	t.up = roundTrip{order: &x.order, place: &t.place, onward: &x.onward, model: config.Expand(t.target.Model, x.route.name, x.request.parsed.Model)}
	if x.attempt != nil {
		t.sentBefore = x.attempt.sentAt()
	}
	return t
}

// unusual reports whether the time until t's first token says nothing of the next one:
// a herd that moves on together is no usual load, and a backend that hung no usual one.
func (t *attempt) unusual() bool {
	return t.failover || t.backend.Pulse().HungSince(t.up.sent)
}

// good notes that the attempt gets a good answer.
func (t *attempt) good() {
	t.phase.judge()
	t.verdict(nil)
	t.lease().Served()
	if t.lastError != nil && t.lastError.clear() {
		t.g.log.Info("the backend takes requests again", "backend", t.target.Backend, "model", t.target.Model)
	}
}

// giveBack gives the place back, and wakes those whom that lets go. Calls after
// the first do nothing.
func (t *attempt) giveBack(now time.Time, outputTokens float64) {
	t.g.Deliver(t.lease().Done(now, outputTokens))
}

// finish ends the measurement and gives the place back: all of the answer has
// come, or, if it is not complete, no more of it will. Calls after the first do
// nothing.
func (t *attempt) finish(now time.Time, complete bool) {
	if t.phase >= phaseFinished {
		return
	}
	t.phase.finish()
	defer func() { t.giveBack(now, t.measured.summary.Tokens) }() // also if the measurement panics
	t.measured.countText(t.textScale())
	t.measured.close(now, complete)
	t.settleVisit()
}

// end cancels what still runs at the backend and gives everything back that the
// attempt holds. Calls after the first do nothing.
func (t *attempt) end(now time.Time, complete bool) {
	if t.phase == phaseEnded {
		return
	}
	t.verdict(providers.ErrNoVerdict) // does nothing if one was given
	if t.up.cancel != nil {
		t.g.endings.remove(t)
	}
	t.up.close(&t.g.buffers) // first of all: the backend's own slot
	t.finish(now, complete)
	t.endSpan(now)
	t.phase.end()
}
