package gateway

import (
	"cmp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/router"
)

// Trouble is what went wrong at a target since it last served a request.
type Trouble struct {
	Status  int       // of its last answer; 0 = there was none, or none that is one
	Message string    // one line of at most 200 bytes, without secrets
	Since   time.Time // the first failure or refusal of those in a row
}

// mostTrouble bounds a message, in bytes.
const mostTrouble = 200

// trouble is that of one target. The zero value is none. It is safe for
// concurrent use.
type trouble struct {
	last atomic.Pointer[Trouble] // nil = none
	told atomic.Bool             // the log has that it rests
}

// note adds a failure.
func (t *trouble) note(now time.Time, status int, message string) {
	if len(message) > mostTrouble {
		message = strings.ToValidUTF8(message[:mostTrouble], "")
	}
	since := now
	if was := t.last.Load(); was != nil {
		since = was.Since
	}
	t.last.Store(&Trouble{Status: status, Message: message, Since: since})
}

// noteTrouble notes that the attempt failed, and in what words.
func (x *exchange) noteTrouble(message string) {
	t := x.try
	status := 0
	if t.resp != nil && t.resp.StatusCode >= 300 {
		status = t.resp.StatusCode
	}
	if tr := x.plan.troubles[t.target]; tr != nil {
		tr.note(time.Now(), status, cmp.Or(message, "it did not say why"))
	}
}

// good notes that the attempt gets a good answer.
func (x *exchange) good() {
	t := x.try
	t.verdict(nil)
	t.lease.Served()
	tr := x.plan.troubles[t.target]
	if tr == nil || tr.last.Load() == nil {
		return
	}
	tr.last.Store(nil)
	if tr.told.Swap(false) {
		x.g.log.Info("the backend takes requests again", "backend", t.target.Backend, "model", t.target.Model)
	}
}

// sayRests says, once until it serves again, that a target gets only probes.
func (x *exchange) sayRests(t router.Target) {
	tr := x.plan.troubles[t]
	if tr == nil || tr.told.Swap(true) {
		return
	}
	says := ""
	switch last := tr.last.Load(); {
	case last == nil:
	case last.Status >= 500: // engines that break quote what they broke at, which is the user's
		says = strconv.Itoa(last.Status)
	default:
		says = saidOf(last.Status, last.Message)
	}
	x.g.log.Warn("the backend refuses all requests: where another one is in service, it gets only probes", "backend", t.Backend, "model", t.Model, "says", says)
}

// saidOf is an error answer for the log.
func saidOf(status int, message string) string {
	return strconv.Itoa(status) + " " + cmp.Or(message, "without a reason")
}

// Troubles returns what is wrong, by target.
func (g *Gateway) Troubles() map[router.Target]Trouble {
	found := map[router.Target]Trouble{}
	for target, t := range g.plan.Load().troubles {
		if last := t.last.Load(); last != nil {
			found[target] = *last
		}
	}
	return found
}

// newTroubles has one for each configured target: that of old, if it is there.
func newTroubles(c *config.Config, old *plan) map[router.Target]*trouble {
	troubles := map[router.Target]*trouble{}
	for i := range c.Routes {
		for _, name := range c.Routes[i].Models {
			for _, t := range c.Routes[i].Targets {
				model, separate := c.Upstream(t, name)
				key := router.Target{Backend: t.Backend, Model: model, Separate: separate}
				if troubles[key] = (&trouble{}); old != nil && old.troubles[key] != nil {
					troubles[key] = old.troubles[key]
				}
			}
		}
	}
	return troubles
}
