package gateway

import (
	"cmp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// LastError is what went wrong at a target since it last served a request, or of late
// within answers that had begun.
type LastError struct {
	Status  int       // of its last answer; 0 = there was none, or none that is one
	Message string    // one line of at most 200 bytes, without secrets
	Since   time.Time // the first failure or refusal of those in a row
	Last    time.Time // the last of them
	Count   int       // how many they are
	Within  bool      // they were within answers that had begun: it serves others meanwhile
}

// keptWithin is how long an error within an answer is kept: where a part of them has one,
// others begin well all the time.
const keptWithin = time.Minute

// over reports whether e tells nothing any more at now, whoever was served since.
func (e *LastError) over(now time.Time) bool {
	return e == nil || e.Within && now.Sub(e.Last) >= keptWithin
}

// maxErrorText bounds a message, in bytes.
const maxErrorText = 200

// lastError is that of one target. The zero value is none. It is safe for
// concurrent use.
type lastError struct {
	last atomic.Pointer[LastError] // nil = none
	told atomic.Bool               // the log has that it rests
}

// note adds a failure. One within an answer says less than that a target serves nobody.
func (t *lastError) note(now time.Time, status int, message string, within bool) {
	was := t.last.Load()
	if was.over(now) {
		was = nil
	}
	if within && was != nil && !was.Within {
		return
	}
	if len(message) > maxErrorText {
		message = strings.ToValidUTF8(message[:maxErrorText], "")
	}
	e := &LastError{Status: status, Message: cmp.Or(message, "it did not say why"), Since: now, Last: now, Count: 1, Within: within}
	if was != nil && was.Within == within { // of two at once one may not be counted
		e.Since, e.Count = was.Since, was.Count+1
	}
	t.last.Store(e)
}

// clear notes that the target serves, and reports whether the log has that it
// rests.
func (t *lastError) clear() (told bool) {
	last := t.last.Load()
	if last == nil {
		return false
	}
	if !last.Within {
		t.last.Store(nil)
	}
	return t.told.Load() && t.told.Swap(false)
}

// logRest says, once until it serves again, that a target gets only probes.
func (o *order) logRest(t router.Target) {
	tr := o.setup.lastErrors[t]
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
	o.g.log.Warn("the backend refuses all requests: where another one is in service, it gets only probes", "backend", t.Backend, "model", t.Model, "says", says)
}

// saidOf is an error answer for the log.
func saidOf(status int, message string) string {
	return strconv.Itoa(status) + " " + cmp.Or(message, "without a reason")
}

// LastErrors returns what is wrong, by target.
func (g *Gateway) LastErrors() map[router.Target]LastError {
	found, now := map[router.Target]LastError{}, time.Now()
	for target, t := range g.setup.Load().lastErrors {
		if last := t.last.Load(); !last.over(now) {
			found[target] = *last
		}
	}
	return found
}
