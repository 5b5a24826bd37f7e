package gateway

import (
	"cmp"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// accused is a backend that refused the request as it may refuse everything: its
// own fault, or the client's. That shows when another one is asked.
type accused struct {
	lease   *router.Lease
	status  int
	verdict func(error) // of a 500, which the breaker is to hear of
	failure error
	held    bool // against the target already: it had served nobody for a while
	cleared bool // another one says the same of the request
}

// ownersFault reports whether an error answer that begins with start may be for
// the backend's owner to mend, rather than for the client: its key is wrong, its
// account empty, it lacks the model that the route names, or it broke. On a
// route for whatever clients name, a 404 is about that; and a client may ask for
// an endpoint, or an earlier answer, that an engine does not have.
func (x *exchange) ownersFault(status int, start []byte) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
		return true
	case http.StatusNotFound:
		if x.end.Stored || x.pinned != "" || x.req.PreviousResponseID != "" {
			return false
		}
		if x.try.target.Model == "" && x.route == x.plan.rest {
			return false
		}
		return x.end.Basic || x.aboutModel(start)
	}
	return status >= 500 && status != http.StatusNotImplemented && !x.end.Stored
}

// aboutModel reports whether a 404 that begins with start is about the model that
// went up.
func (x *exchange) aboutModel(start []byte) bool {
	return providers.AboutModel(start, cmp.Or(x.try.target.Model, x.req.Model))
}

// accuse notes that the backend of the attempt may be at fault.
func (x *exchange) accuse(says openai.Failure) {
	t, status := x.try, x.try.resp.StatusCode
	a := accused{lease: t.lease, status: status}
	var rests bool
	a.held, rests = t.lease.Refused(time.Now(), false)
	if t.known = a.held || rests || t.lease.Probe(); t.known {
		x.spared++
	}
	if status >= 500 {
		a.verdict, a.failure = t.verdict, t.failure(status, "failed", nil)
		t.verdict = func(error) {}
	} else {
		t.verdict(nil) // it is alive
	}
	for i := range x.accused {
		if other := &x.accused[i]; other.status == status {
			other.cleared, a.cleared = true, true
		}
	}
	x.accused = append(x.accused, a)
	x.noteError(says.Message)
	if rests {
		x.sayRests(t.target)
	}
}

// acquit notes that a backend finds fault with the request itself: what others
// broke at may be the client's doing.
func (x *exchange) acquit(status int) {
	if status >= 400 && status < 500 {
		for i := range x.accused {
			x.accused[i].cleared = true
		}
	}
}

// judgeAccused settles who was at fault, when all is known: err is how the last
// attempt ended. What another one served well is held against those that refused
// it. What nobody could say more about is so where the target had served nobody
// for a while, and another one could: a breaker that takes the only one away
// answers 503 to all for what one client may have brought about.
func (x *exchange) judgeAccused(err error) {
	served := err == nil && x.try.resp != nil && x.try.resp.StatusCode < 300
	for i := range x.accused {
		a := &x.accused[i]
		if served {
			if _, rests := a.lease.Refused(time.Now(), true); rests {
				x.sayRests(a.lease.Target())
			}
		}
		switch {
		case a.verdict == nil:
		case served, a.held && !a.cleared && len(x.route.conf.Targets) > 1:
			a.verdict(a.failure)
		default:
			a.verdict(nil)
		}
	}
	x.accused = nil
}

// forgetAccused gives the verdicts back that nobody came to.
func (x *exchange) forgetAccused() {
	for _, a := range x.accused {
		if a.verdict != nil {
			a.verdict(providers.ErrNoVerdict)
		}
	}
	x.accused = nil
}

// sentAway is what the client reads of a backend that does not serve this
// gateway: not its words, for they are about a key and an account of which the
// client knows nothing. Those are for the log.
func (x *exchange) sentAway(start []byte, says openai.Failure) error {
	t, status := x.try, x.try.resp.StatusCode
	problem := map[int]string{
		http.StatusUnauthorized:    "does not take the credentials of this gateway",
		http.StatusPaymentRequired: "wants this gateway to pay first",
		http.StatusForbidden:       "does not allow this gateway what was asked",
		http.StatusNotFound:        "does not have the model that this route names",
	}[status]
	if status == http.StatusNotFound && !x.aboutModel(start) {
		problem = "has nothing at the address of this endpoint"
	}
	return t.failure(http.StatusBadGateway, problem+" ("+strconv.Itoa(status)+")", errors.New(saidOf(status, says.Message)))
}

// full notes that the backend takes no more for now, as it says.
func (x *exchange) full(says openai.Failure) {
	t := x.try
	t.lease.Full(time.Now(), retryAfter(time.Now(), t.resp.Header))
	t.known = true
	x.noteError(says.Message)
}

// retryAfter reads for how long a backend wants to be left alone; 0 = it does not
// say.
func retryAfter(now time.Time, h http.Header) time.Duration {
	seconds, err := strconv.ParseFloat(h.Get("Retry-After"), 64)
	if ms, bad := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); bad == nil {
		seconds, err = ms/1000, nil
	}
	if err != nil {
		at, bad := http.ParseTime(h.Get("Retry-After"))
		if bad != nil {
			return 0
		}
		seconds = at.Sub(now).Seconds()
	}
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(math.Min(seconds, 3600) * float64(time.Second))
}
