package gateway

import (
	"context"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// placement is what one request has to do with the router until it has a lease:
// what it asks for, and its wait in line. It belongs to the goroutine of the
// exchange.
type placement struct {
	g       *Gateway
	req     router.Request // with the backends that are not to be asked, or not again
	waiter  waiter
	ticket  *router.Ticket // while standing in line
	stood   bool           // in line, so that a grant may still come
	counted bool           // in Gateway.running
	back    bool           // it came back as it was told
	now     bool           // it stands in no line
	lease   router.Lease   // memory of the first one

	elsewhere string // the route that it was given to for a prompt that its own cannot take; "" = none
}

// waiter is where a grant finds the request that waits for it. The channel has
// room for more than one grant because a ticket that expired just as it was
// granted leaves its grant behind. Most requests never wait, so it holds pointers.
type waiter struct{ grants chan *router.Grant }

// place gets the request its lease: at once, or after waiting in line.
func (x *exchange) place() error {
	if err := x.placement.enter(x.setup.conf.Limits.Streams); err != nil {
		return err
	}
	if err := x.charge(); err != nil {
		return err
	}
	d, err := x.placement.first(x.request.http.Context(), x.placing(), x.clearWay)
	switch {
	case err != nil:
		return err
	case d.Refusal != nil:
		x.warnUnattainable(*d.Refusal)
		return &shedError{refusal: *d.Refusal}
	}
	x.attempt = x.newAttempt(d)
	return nil
}

// placing is the request as it is put to the router.
func (o *order) placing() router.Request {
	r := &o.request
	req := router.Request{
		ID:           requestID(r.http.Context()),
		Route:        o.route.name,
		Arrived:      r.arrived,
		PromptTokens: o.prompt.tokens,
		MaxTokens:    r.parsed.MaxTokens,
		Sequences:    r.parsed.Sequences,
		Stream:       r.streams(),
		NoDecode:     !r.end.Decodes,
		Class:        o.overrides.class,
		MinTPS:       o.overrides.minTPS,
		MaxTTFT:      o.overrides.maxTTFT,
		Tenant:       o.turnOf(),
		Key:          r.fingerprint(o.g.seed, o.tenant.name),
		Exclude:      o.excluded,
		Split:        o.split(),
	}
	o.followCaches(&req)
	return req
}

// enter counts the request among those that run; streams is how many there may
// be.
func (p *placement) enter(streams int) error {
	if p.g.load.running.Add(1) > int64(streams) {
		p.g.load.running.Add(-1)
		return errOverloaded
	}
	p.counted = true
	return nil
}

// first decides where req goes, if need be by way of the line. Where there is no place,
// clear may make some before.
func (p *placement) first(ctx context.Context, req router.Request, clear func()) (router.Decision, error) {
	if p.waiter.grants, _ = p.g.load.grants.Get().(chan *router.Grant); p.waiter.grants == nil {
		p.waiter.grants = make(chan *router.Grant, 4)
	}
	req.Waiter, req.Into = &p.waiter, &p.lease
	req.NoQueue = p.now
	p.req = req
	clear()
	d := p.g.router.Place(time.Now(), p.req)
	p.back = d.Back
	return p.queue(ctx, d)
}

// full reports whether there is no place for the request now.
func (p *placement) full() bool {
	d, ok := p.g.router.Preview(time.Now(), p.req)
	return ok && d.Chosen == router.Target{}
}

// again decides where the request goes after failed, ahead of those in line; "" =
// every backend of the route may have it.
// Where none has room it stands in line itself, for as long as it has not stood there
// yet: what failed took none of that time. Without a lease in the decision it goes
// nowhere. The error is why it could not wait.
func (p *placement) again(ctx context.Context, failed string) (router.Decision, error) {
	if failed != "" {
		p.exclude(failed)
	}
	p.req.Again = true
	first := p.req
	first.NoQueue = true
	d := p.g.router.Place(time.Now(), first)
	if d.Refusal != nil && d.Refusal.Reason != router.NoBackend && d.Refusal.Reason != router.ShedUnattainable {
		d = p.g.router.Place(time.Now(), p.req)
	}
	return p.queue(ctx, d)
}

// spare decides where the request could go beside the backend that it was sent
// to, if a place is spare right now.
func (p *placement) spare(beside string) router.Decision {
	req := p.req
	req.Exclude, req.Spare = append(slices.Clip(req.Exclude), beside), true
	return p.g.router.Place(time.Now(), req)
}

// exclude has the request placed on these no more.
func (p *placement) exclude(backends ...string) {
	p.req.Exclude = append(slices.Clip(p.req.Exclude), backends...)
}

// queue waits in line for as long as d is a ticket.
func (p *placement) queue(ctx context.Context, d router.Decision) (_ router.Decision, err error) {
	for d.Ticket != nil {
		if d, err = p.wait(ctx, d.Ticket); err != nil {
			return router.Decision{}, err
		}
	}
	return d, nil
}

// wait stands in line until the ticket is granted or its time is up. A client
// that hangs up, and so ends ctx, leaves the line at once.
func (p *placement) wait(ctx context.Context, t *router.Ticket) (router.Decision, error) {
	began := time.Now()
	p.ticket, p.stood = t, true
	p.g.someoneWaits()
	timer := time.NewTimer(t.Deadline().Sub(began))
	defer timer.Stop()
	for {
		select {
		case grant := <-p.waiter.grants:
			if grant.Ticket != t {
				continue // of an earlier ticket, whose decision is known
			}
			p.ticket = nil
			p.req.Stood += time.Since(began)
			return grant.Decision, nil
		case <-timer.C:
			p.ticket = nil
			now := time.Now()
			p.req.Stood += now.Sub(began)
			return t.Expire(now), nil
		case <-p.g.endings.ctx.Done():
			p.req.Stood += time.Since(began)
			p.leaveLine()
			return router.Decision{}, errDraining
		case <-ctx.Done():
			p.req.Stood += time.Since(began)
			p.leaveLine()
			return router.Decision{}, context.Canceled
		}
	}
}

// leaveLine gives the ticket back, if there is one.
func (p *placement) leaveLine() {
	if t := p.ticket; t != nil {
		p.ticket = nil
		p.g.Deliver(t.Cancel(time.Now()))
	}
}

// leave takes the request out of what waits and runs. Calls after the first do
// nothing.
func (p *placement) leave() {
	p.leaveLine()
	if p.waiter.grants != nil && !p.stood {
		p.g.load.grants.Put(p.waiter.grants)
		p.waiter.grants = nil
	}
	if p.counted {
		p.counted = false
		p.g.load.running.Add(-1)
	}
}

// warnUnattainable says once a minute and route that the floor is out of
// reach of even an idle backend: that is a mistake in the configuration, but for a request
// that asks for many sequences at once.
func (o *order) warnUnattainable(r router.Refusal) {
	if r.Reason != router.ShedUnattainable || r.Sequences > 1 {
		return
	}
	if !o.route.unattainable.due(time.Now()) {
		return
	}
	o.g.log.Warn("no backend reaches this floor even when idle", "route", o.route.name, "floor", r.Floor, "best", r.Best)
}
