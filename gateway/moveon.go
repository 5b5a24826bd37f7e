package gateway

import "time"

// setAside ends the attempt, which failed with err; what a busy backend said is
// kept, and so is what a failing one said, until a busy one says more.
func (x *exchange) setAside(err error) {
	switch {
	case x.try.busy:
		x.keepBusy(err)
	case x.try.says && x.busy == nil:
		x.keepBusy(nil)
	default:
		x.endAttempt()
	}
	x.giveBack(time.Now(), 0)
}

// movesOn says so.
func (x *exchange) movesOn(failed string, err error) {
	x.g.log.Warn("moving on to another backend", "request", requestID(x.r.Context()), "failed", failed, "error", errorText(err, "is busy"))
}

func errorText(err error, otherwise string) string {
	if err == nil {
		return otherwise
	}
	return err.Error()
}

// moveOn takes a lease on a backend that was not asked yet, if the request may
// be sent once more, if need be by way of the line.
//
// It is free where that is no load on top: nobody is busy any more with what
// never went up or was lost with its connection, however many a backend takes
// with it when it dies; and what is known to refuse, or to be full, is sent
// nothing more but probes. On what is known so itself nobody lands for free, or
// every request would run round a fleet of which all refuse.
func (x *exchange) moveOn(failed *attempt) (moved bool, err error) {
	if x.sends-x.spared >= maxSends {
		return false, nil
	}
	paid := failed.wentUp && !failed.lost && !failed.known
	if paid && !x.g.retries.take(time.Now()) {
		return false, nil
	}
	moved, err = x.placeAgain(failed.name)
	switch {
	case !moved && paid:
		x.g.retries.give()
	case moved && !paid && x.lease.Probe() && !x.g.retries.take(time.Now()):
		x.giveBack(time.Now(), 0)
		return false, nil
	}
	return moved, err
}

// busyAnswer is that of a backend which is full, a 429 or 503, or which broke, or
// was broken by what the client sent: a 500; or of one that failed and says how.
// It is kept while others are asked.
type busyAnswer struct {
	try *attempt
	err error // nil = its own words go on
}

// keepBusy sets the attempt aside.
func (x *exchange) keepBusy(err error) {
	x.dropBusy()
	x.try.timer.pause()
	x.busy = &busyAnswer{try: x.try, err: err}
}

// nobody is what the client gets when no backend takes the request; err is why
// the last one did not.
func (x *exchange) nobody(err error) error {
	b := x.busy
	if b == nil {
		return err
	}
	x.busy = nil
	x.adopt(b.try)
	b.try.at = time.Now() // it comes to the client only from here on
	x.lease = nil         // given back when it was set aside
	x.opaque, x.backendsFault = true, true
	return b.err
}

// dropBusy ends the attempt that was set aside, if there is one.
func (x *exchange) dropBusy() {
	if b := x.busy; b != nil {
		x.busy = nil
		x.putBack(b.try)
	}
}
