package gateway

import (
	"context"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// place gets the request its lease: at once, or after waiting in line.
func (x *exchange) place() error {
	if x.g.running.Add(1) > int64(x.plan.conf.Limits.Streams) {
		x.g.running.Add(-1)
		return errOverloaded
	}
	x.counted = true
	if err := x.charge(); err != nil {
		return err
	}
	x.waiter = &waiter{grants: make(chan router.Grant, 4)}
	x.placing = router.Request{
		ID:           requestID(x.r.Context()),
		Route:        x.route.name,
		Arrived:      x.arrived,
		PromptTokens: x.promptTokens,
		MaxTokens:    x.req.MaxTokens,
		Sequences:    x.req.Sequences,
		Stream:       x.stream && x.end.Decodes,
		NoDecode:     !x.end.Decodes,
		Class:        x.wishes.class,
		MinTPS:       x.wishes.minTPS,
		MaxTTFT:      x.wishes.maxTTFT,
		Tenant:       x.tenant.name,
		Key:          x.key(),
		Exclude:      x.excluded,
		Waiter:       x.waiter,
		Into:         &x.firstLease,
	}
	d := x.g.placer.Place(time.Now(), x.placing)
	for d.Ticket != nil {
		var err error
		if d, err = x.wait(d.Ticket); err != nil {
			return err
		}
	}
	return x.accept(d)
}

// accept takes over the lease of d, or says why there is none.
func (x *exchange) accept(d router.Decision) error {
	if d.Refusal != nil {
		x.warnUnattainable(*d.Refusal)
		return &shedError{refusal: *d.Refusal}
	}
	x.decision, x.lease = d, d.Lease
	return nil
}

// waiter is where a grant finds the request that waits for it. The channel has
// room for more than one grant because a ticket that expired just as it was
// granted leaves its grant behind.
type waiter struct{ grants chan router.Grant }

// wait stands in line until the ticket is granted or its time is up. A client
// that hangs up leaves the line at once.
func (x *exchange) wait(t *router.Ticket) (router.Decision, error) {
	began := time.Now()
	x.ticket = t
	x.g.someoneWaits()
	timer := time.NewTimer(t.Deadline().Sub(began))
	defer timer.Stop()
	for {
		select {
		case grant := <-x.waiter.grants:
			if grant.Ticket != t {
				continue // of an earlier ticket, whose decision is known
			}
			x.ticket = nil
			x.waited += time.Since(began)
			return grant.Decision, nil
		case <-timer.C:
			x.ticket = nil
			now := time.Now()
			x.waited += now.Sub(began)
			return t.Expire(now), nil
		case <-x.g.ending.Done():
			x.waited += time.Since(began)
			x.leaveLine()
			return router.Decision{}, errDraining
		case <-x.r.Context().Done():
			x.waited += time.Since(began)
			x.leaveLine()
			return router.Decision{}, context.Canceled
		}
	}
}

// leaveLine gives the ticket back, if there is one.
func (x *exchange) leaveLine() {
	if t := x.ticket; t != nil {
		x.ticket = nil
		x.g.Deliver(t.Cancel(time.Now()))
	}
}

// placeAgain looks for another backend after failed ones, ahead of those in
// line. Where none has room it stands in line itself, for what is left of its time
// there: as one who comes a moment later would. The error is why it could not
// wait.
func (x *exchange) placeAgain(failed string) (placed bool, err error) {
	x.placing.Exclude = append(slices.Clip(x.placing.Exclude), failed)
	x.placing.Again = true
	first := x.placing
	first.NoQueue = true
	d := x.g.placer.Place(time.Now(), first)
	if d.Refusal != nil && d.Refusal.Reason != router.NoBackend && d.Refusal.Reason != router.ShedUnattainable {
		d = x.g.placer.Place(time.Now(), x.placing)
	}
	for d.Ticket != nil {
		if d, err = x.wait(d.Ticket); err != nil {
			return false, err
		}
	}
	if d.Lease == nil {
		return false, nil
	}
	x.decision, x.lease = d, d.Lease
	return true, nil
}

// warnUnattainable says once a minute and route that the floor is out of
// reach of even an idle backend: that is a mistake in the configuration.
func (x *exchange) warnUnattainable(r router.Refusal) {
	if r.Reason != router.ShedUnattainable {
		return
	}
	if !x.route.unattainable.due(time.Now()) {
		return
	}
	x.g.log.Warn("no backend reaches this floor even when idle", "route", x.route.name, "floor", r.Floor, "best", r.Best)
}
