package gateway

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/internal/upstream"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// openFault is an error answer of which it is open whose fault it is: of a backend
// that may refuse everything so, or of the client. That shows when another one is
// asked.
type openFault struct {
	lease   *router.Lease
	status  int
	verdict func(error) // of a 500, which the breaker is to hear of
	failure error
	held    bool // against the target already: it had served nobody for a while
	cleared bool // another one says the same of the request
}

// faults are those of one request. The zero value is none.
type faults struct{ open []openFault }

// add adds f, and clears it with all that another backend answered the same to.
func (s *faults) add(f openFault) {
	for i := range s.open {
		if other := &s.open[i]; other.status == f.status {
			other.cleared, f.cleared = true, true
		}
	}
	s.open = append(s.open, f)
}

// clientsOwn notes that a backend finds fault with the request itself, by an
// error of this status: what others broke at may be the client's doing.
func (s *faults) clientsOwn(status int) {
	if status >= 400 && status < 500 {
		for i := range s.open {
			s.open[i].cleared = true
		}
	}
}

// forget gives the verdicts back that nobody came to.
func (s *faults) forget() {
	for _, f := range s.open {
		if f.verdict != nil {
			f.verdict(providers.ErrNoVerdict)
		}
	}
	s.open = nil
}

// mayBeOwners reports whether an error answer that begins with start, and says
// says, may be for
// the backend's owner to mend, rather than for the client: its key is wrong, for
// the backend or for a proxy before it, its account empty, it lacks the model that the route names, or it broke. On a
// route for whatever clients name, a 404 is about that; and a client may ask for
// an endpoint, or an earlier answer, that an engine does not have.
func (u *roundTrip) mayBeOwners(start []byte, says openai.Failure) bool {
	status, r := u.resp.StatusCode, &u.request
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusProxyAuthRequired:
		return true
	case http.StatusBadRequest:
		return providers.AboutKey(says.Message)
	case http.StatusNotFound:
		if r.end.Stored || u.owner != "" || r.parsed.PreviousResponseID != "" {
			return false
		}
		if u.route.wild && clientNames(u.target.Model) {
			return false
		}
		return r.end.Basic || u.aboutModel(start)
	}
	return status >= 500 && status != http.StatusNotImplemented && !r.end.Stored
}

// aboutModel reports whether a 404 that begins with start is about the model that
// went up.
func (u *roundTrip) aboutModel(start []byte) bool {
	return providers.AboutModel(start, cmp.Or(u.model, u.request.parsed.Model))
}

// openFault notes that the backend of t may be at fault.
func (x *exchange) openFault(t *attempt, says openai.Failure) {
	status := t.up.resp.StatusCode
	f := openFault{lease: t.lease(), status: status}
	var rests bool
	f.held, rests = f.lease.Refused(time.Now(), false)
	t.free = status < 500 // it refused before it did any work
	if f.held || rests || f.lease.Probe() {
		t.free = true // it is known to refuse
		x.failover.spared++
	}
	if status >= 500 {
		f.verdict, f.failure = t.verdict, t.fails(status, "failed", nil)
		t.verdict = func(error) {}
	} else {
		t.verdict(nil) // it is alive
	}
	x.failover.faults.add(f)
	t.up.noteError(says.Message)
	if rests {
		x.logRest(t.target)
	}
}

// settleFaults settles who was at fault, when all is known: err is how the last
// attempt ended. What another one served well is held against those that refused
// it. What nobody could say more about is so where the target had served nobody
// for a while, and another one could: a breaker that takes the only one away
// answers 503 to all for what one client may have brought about.
func (x *exchange) settleFaults(err error) {
	status := x.attempt.up.status()
	served := err == nil && status > 0 && status < 300
	for _, f := range x.failover.faults.open {
		if served {
			if _, rests := f.lease.Refused(time.Now(), true); rests {
				x.logRest(f.lease.Target())
			}
		}
		switch {
		case f.verdict == nil:
		case served, f.held && !f.cleared && len(x.route.conf.Targets) > 1:
			f.verdict(f.failure)
		default:
			f.verdict(nil)
		}
	}
	x.failover.faults.open = nil
}

// sentAway is what the client reads of a backend that does not serve this
// gateway: not its words, for they are about a key and an account of which the
// client knows nothing. Those are for the log.
func (u *roundTrip) sentAway(start []byte, says openai.Failure) error {
	status := u.resp.StatusCode
	problem := map[int]string{
		http.StatusUnauthorized:      "does not take the credentials of this gateway",
		http.StatusBadRequest:        "does not take the credentials of this gateway",
		http.StatusProxyAuthRequired: "is behind a proxy that does not take the credentials of this gateway",
		http.StatusPaymentRequired:   "wants this gateway to pay first",
		http.StatusForbidden:         "does not allow this gateway what was asked",
		http.StatusNotFound:          "does not have the model that this route names",
	}[status]
	if status == http.StatusNotFound && !u.aboutModel(start) {
		problem = "has nothing at the address of this endpoint"
	}
	return u.fails(http.StatusBadGateway, problem+" ("+strconv.Itoa(status)+")", errors.New(saidOf(status, says.Message)))
}

// noteLimits hands on what the backend has told of its rate limits.
func (u *roundTrip) noteLimits() {
	now := time.Now()
	limits, told := u.backend.Limits(now, u.call.Model)
	if !told {
		return
	}
	var quota router.Quota
	for i, l := range limits {
		quota[i] = router.Allowance(l)
	}
	u.lease().Quota(now, quota)
}

// full notes that the backend has said that it takes no more requests.
func (t *attempt) full(says openai.Failure) {
	now := time.Now()
	t.lease().Full(now, upstream.RetryAfter(now, t.up.resp.Header))
	t.free = true
	t.up.noteError(says.Message)
}
