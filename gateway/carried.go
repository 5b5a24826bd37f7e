package gateway

import (
	"errors"
	"time"

	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// A carried request is sent to its backend by another proxy (providers.Carried):
// once, since what that proxy has sent cannot be sent again. Its failover is the
// proxy's own, among those that the gateway names, and what the gateway does then
// is to count the request where it runs.

// mostInstead is how many backends a carrying proxy is told beside the chosen one.
const mostInstead = maxSends - 1

var errUnreached = errors.New("gateway: the proxy could not reach the chosen backend, and another one answered")

// offer tells who carries t's request where it may go if t's backend is away: to
// targets that it can be sent to unchanged.
func (x *exchange) offer(t *attempt) {
	c := x.request.carried
	if c == nil {
		return
	}
	t.up.call.Carried, t.up.instead = c, nil
	c.Instead = c.Instead[:0]
	for _, other := range x.g.router.Instead(time.Now(), x.placedAs(t), t.target, mostInstead) {
		if b := x.setup.backends[other.Backend]; b != nil && other.Model == t.target.Model && t.backend.Like(b.Backend) {
			c.Instead = append(c.Instead, b.Endpoint())
		}
	}
}

// placedAs is the request as it is put to the route that t has its lease on.
func (x *exchange) placedAs(t *attempt) router.Request {
	req := x.placement.req
	if t.decision.Spilled != "" {
		req.Route = t.decision.Spilled
	}
	req.Waiter, req.Into = nil, nil
	return req
}

// turned moves the attempt to the backend that answered, where that is another one
// than was chosen: its place is given back, with a verdict, and one is taken where
// the request runs.
func (x *exchange) turned() {
	c, t := x.request.carried, x.attempt
	if c == nil || t.up.resp == nil || c.Served == "" || c.Served == t.backend.Endpoint() {
		return
	}
	for _, target := range x.route.targets {
		b := x.setup.backends[target.Backend]
		if b == nil || b.Endpoint() != c.Served || target.Model != t.target.Model {
			continue
		}
		now := time.Now()
		d, ok := x.g.router.Moved(now, x.placedAs(t), target)
		if !ok {
			return
		}
		x.moveTo(t, d, b, now)
		return
	}
}

// moveTo puts another backend under t, whose request runs there.
func (x *exchange) moveTo(t *attempt, d router.Decision, b *backend, now time.Time) {
	d.Spilled = t.decision.Spilled
	t.verdict(errUnreached)
	t.up.noteError("the backend could not be reached")
	x.followMove(t)
	x.g.log.Warn("another backend answered than was chosen", "request", requestID(x.request.http.Context()), "failed", t.name(), "backend", b.conf.Name)
	t.giveBack(now, 0)
	t.measured.waits.Over()
	t.place = x.setup.placeOf(d, b)
	t.verdict, t.failover = func(error) {}, true
	if verdict, ok := b.Begin(); ok {
		t.verdict = verdict
	}
	if x.request.streams() {
		t.measured.waits = x.g.book.Send(t.target, t.up.sent, x.request.estimate-x.cached(t.target))
	}
	t.visit()
}

// unseen takes a good answer of which nothing but its head and its end is shown.
func (t *attempt) unseen() error {
	t.kind = answerGood
	t.good()
	t.measured.waits.Over()
	t.lease().FirstToken(t.up.first.at)
	return nil
}

// blindRead is the first read of an answer that is not shown.
func (u *roundTrip) blindRead() bool {
	return u.request.carried != nil && u.request.carried.Blind && u.err == nil
}

// carried reports whether what u sent cannot be sent again, although its backend
// refused to be asked for usage: the next requests are asked less.
func (u *roundTrip) carried() bool {
	if u.request.carried == nil {
		return false
	}
	if u.err == nil && u.answers() {
		path, asked := u.asked()
		if less, ok := providers.RefusesAsk(u.resp.StatusCode, u.first.bytes(), asked, u.ask); ok {
			u.backend.AskAtMost(path, less)
		}
	}
	return true
}

// turnOf is whose turn in a line it is: the key's, or, where there are no keys, of
// whom the proxy names that carries the request.
func (o *order) turnOf() string {
	if c := o.request.carried; c != nil && o.tenant == anyone {
		return c.Tenant
	}
	return o.tenant.name
}

// reachable leaves out the backends that who carries the request cannot go to.
func (r *request) reachable(b *backend) bool { return r.carried.Reaches(b.Endpoint()) }
