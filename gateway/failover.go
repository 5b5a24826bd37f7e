package gateway

import (
	"errors"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// failover is what became of a request until a backend took it. It belongs to
// the goroutine of the exchange.
type failover struct {
	sends   int32 // backends that it was sent to
	spared  int32 // of these, those that refuse whatever they are sent
	rescued bool  // from one that hung. Once is enough: its prompt may be what engines hang at
	retry   uint8 // in how many seconds a place is expected, by the router when it found none; 0 = it did not say

	// kept is an attempt whose answer is passed on if nobody takes the request,
	// since it says when to come back, or what is wrong; nil = none. keptErr is why
	// its own words do not go on; nil = they do.
	kept    *attempt
	keptErr error

	faults faults
}

// setAside ends t, which failed with err; what a busy backend said is kept, and so
// is what a failing one said, until a busy one says more.
func (x *exchange) setAside(t *attempt, err error) {
	switch {
	case t.kind == answerBusy, t.kind == answerTooLong:
		x.failover.keep(t, err)
	case t.kind == answerFailed && x.failover.kept == nil:
		x.failover.keep(t, nil)
	default:
		t.end(time.Now(), false)
	}
	t.giveBack(time.Now(), 0)
}

// keep keeps t in place of another one.
func (f *failover) keep(t *attempt, err error) {
	f.drop()
	t.up.timer.pause()
	t.up.settle() // what it says has come
	f.kept, f.keptErr = t, err
}

// drop ends the attempt that was kept, if there is one.
func (f *failover) drop() {
	if t := f.kept; t != nil {
		f.kept = nil
		t.end(time.Now(), false)
	}
}

// couldBeBettered reports whether an attempt that ended with err leaves
// something to hope for from another one: the backend failed or refused, and not
// for what the client sent.
func couldBeBettered(t *attempt, err error) bool {
	if t.kind == answerBusy || t.kind == answerTooLong {
		return true
	}
	if err == nil {
		return false
	}
	if err == t.up.uncarried { //nolint:errorlint // the very one: another backend may have the endpoint
		return true
	}
	var up *upstreamError
	return errors.As(err, &up)
}

// logMove says that the request goes on to another backend.
func (x *exchange) logMove(failed *attempt, err error) {
	why := "is busy"
	switch {
	case err != nil:
		why = err.Error()
	case failed.kind == answerTooLong:
		why = "has no context for a prompt of this length"
	case slices.ContainsFunc(x.failover.faults.open, func(f openFault) bool { return f.lease == failed.lease() }):
		why = "answered " + strconv.Itoa(failed.up.resp.StatusCode)
	}
	x.followMove(failed)
	x.g.log.Warn("moving on to another backend", "request", requestID(x.request.http.Context()), "failed", failed.name(), "error", why)
}

// moveOn takes a lease on a backend that was not asked yet, if the request may
// be sent once more, if need be by way of the line. nil = it goes nowhere.
//
// It is free where that is no load on top: nobody is busy any more with what
// never went up or was lost with its connection, however many a backend takes
// with it when it dies; a key, an account or a model is refused before any work;
// and what is known to refuse, or to be full, is sent nothing more but probes. On what is known so itself nobody lands for free, or
// every request would run round a fleet of which all refuse.
func (x *exchange) moveOn(failed *attempt) (*attempt, error) {
	if t := x.rescued(failed); t != nil {
		return t, nil
	}
	if x.failover.sends-x.failover.spared >= maxSends {
		return nil, nil
	}
	if !failed.free && !x.g.retries.take(time.Now()) {
		return nil, nil
	}
	d, err := x.placement.again(x.request.http.Context(), failed.left())
	x.failover.noteRefusal(d.Refusal)
	if d.Lease == nil {
		if !failed.free {
			x.g.retries.give()
		}
		return nil, err
	}
	if failed.free && d.Lease.Probe() && !x.g.retries.take(time.Now()) {
		x.g.Deliver(d.Lease.Done(time.Now(), 0))
		return nil, nil
	}
	if x.placement.elsewhere != "" && d.Spilled == "" {
		d.Spilled = x.placement.elsewhere
	}
	return x.newAttempt(d), nil
}

// left is the backend that the request does not go to again after t: not where it
// goes on to a route for longer prompts, which may have another model there.
func (t *attempt) left() string {
	if t.kind == answerTooLong {
		return ""
	}
	return t.name()
}

// toLongContext gives the request to the route for prompts that are too long for
// its own targets, once. It is no load on top: t refused before it did anything.
func (x *exchange) toLongContext(t *attempt) {
	t.free = true
	x.failover.spared++
	x.placement.elsewhere = x.route.conf.ContextFallback
	x.placement.req.Route = x.placement.elsewhere
	x.placement.req.Exclude = x.excluded
}

// nobody is what the client gets when no backend takes the request; err is why
// the last one did not.
func (x *exchange) nobody(err error) error {
	t := x.failover.kept
	if t == nil {
		x.sayWhenOf(x.attempt, err)
		return err
	}
	x.failover.kept = nil
	x.attempt = t
	t.kind = answerLastResort
	t.up.first.at = time.Now() // it comes to the client only from here on
	x.sayWhenOf(t, x.failover.keptErr)
	return x.failover.keptErr
}

// sayWhenOf adds when to come back to the answer of t, which is passed on or said with err,
// where its backend is full or away.
func (x *exchange) sayWhenOf(t *attempt, err error) {
	if err == nil && t.kind <= answerGood {
		return
	}
	comeBack := func() uint8 { return x.comeBack(t) }
	var fails *upstreamError
	if errors.As(err, &fails) && (fails.status == http.StatusServiceUnavailable || fails.status == providers.StatusOverloaded) {
		fails.retry = x.failover.sayWhen(fails.retry, comeBack)
	}
	if t.up.resp == nil || t.kind <= answerGood {
		return
	}
	switch t.up.status() {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, providers.StatusOverloaded:
		retry := x.failover.sayWhen(t.up.retryHeaders(), comeBack)
		maps.Copy(t.up.resp.Header, retry)
		var says *backendError
		if errors.As(err, &says) {
			says.retry = retry
		}
	}
}

// noteRefusal notes when the router expects a place; r nil = it had one.
func (f *failover) noteRefusal(r *router.Refusal) {
	f.retry = 0
	if r != nil {
		f.retry = wholeSeconds(r.RetryAfter)
	}
}

func wholeSeconds(d time.Duration) uint8 {
	return uint8(min(math.Ceil(d.Seconds()), math.MaxUint8))
}

// retryUnknown is when to come back, in seconds, where the router expects no place: what is
// full, and does not say for how long, is asked again by then.
const retryUnknown = 5

// sayWhen adds to what a backend said of trying again when a place is expected, unless it
// said so. It says what a refusal of the router does, and asks it with comeBack.
func (f *failover) sayWhen(said http.Header, comeBack func() uint8) http.Header {
	if said.Get("Retry-After") != "" || said.Get("Retry-After-Ms") != "" {
		return said
	}
	retry := f.retry
	if retry == 0 { // it was not asked where the request was sent as often as it may be; or says that no wait helps
		retry = comeBack()
	}
	if said == nil {
		said = http.Header{}
	}
	said.Set("Retry-After", strconv.Itoa(int(retry)))
	return said
}

// comeBack asks the router when a place is expected for a request that failed did not take,
// in seconds.
func (x *exchange) comeBack(failed *attempt) uint8 {
	req := x.placement.req
	req.Again, req.Exclude = true, append(slices.Clip(req.Exclude), failed.name())
	switch would, ok := x.g.router.Preview(time.Now(), req); {
	case ok && would.RetryAfter > 0:
		return wholeSeconds(would.RetryAfter)
	case ok && (would.Outcome == router.OutcomeQueued || would.Chosen != router.Target{}):
		return 1
	}
	return retryUnknown
}
