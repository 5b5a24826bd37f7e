package router

import (
	"math"
	"time"
)

const (
	// EngineLoadLife is how long the report of an engine holds. After it the
	// own count stands alone.
	EngineLoadLife = 5 * time.Second

	// mostSequences is more than any engine runs; a report beyond it is
	// nonsense.
	mostSequences = 1_000_000
)

// foreign is what runs in a group beside Pacer: what the engine reports less
// what all replicas have there. The zero value knows of nothing. Guarded by
// Router.mu.
//
// A report and the own counts are never of one instant: the engine speaks of
// the time of its last step or of its last log line, the own sequences come and
// go meanwhile. So each report gives not a number but a range: the report less
// the most, and less the least, that was there since the report before. An
// estimate inside the range of this report or the one before, or between them,
// stays; outside it moves to the nearest end. A tenant whose number holds is
// so found exactly as soon as the own count holds for one report; own sequences
// are never taken for foreign ones because they came or left in between; and
// one odd report moves nothing.
type foreign struct {
	report EngineLoad // in force; At is zero while there is none

	// Estimates of the foreign sequences. running <= all.
	all, running estimate

	// high is the most that all was, fading with levelMemory: who comes and goes
	// is expected back.
	high float64

	// What all replicas had there since the last report.
	own, ownDecoding, ownWaiting span
	ownIdle                      int // most requests that do not decode
}

// heard reports whether a report is in force.
func (f *foreign) heard() bool { return !f.report.At.IsZero() }

// hear takes a report, and says whether there was anything to learn. One that
// is out of all reason, too old, or no younger than the last is not heard.
func (f *foreign) hear(now time.Time, e EngineLoad) bool {
	if e.At.After(now) {
		e.At = now
	}
	if !e.sane() || now.Sub(e.At) > EngineLoadLife || !e.At.After(f.report.At) {
		return false
	}
	faded := f.high * math.Exp(-e.At.Sub(f.report.At).Seconds()/levelMemory.Seconds())
	f.report = e
	// Own sequences that wait are in the engine's queue as far as it has one;
	// beyond it they are being prefilled, which counts as running.
	ownRunning := min(f.own.most, f.ownDecoding.most+max(f.ownWaiting.most-e.Waiting, 0))
	f.all.see(e.Running+e.Waiting-f.own.most-f.ownIdle, e.Running+e.Waiting-f.own.least)
	f.running.see(e.Running-ownRunning-f.ownIdle, e.Running-f.ownDecoding.least)
	f.running.value = min(f.running.value, f.all.value)
	f.high = max(faded, float64(f.all.value))
	return true
}

// most is how many there are, or may soon be again.
func (f *foreign) most() int { return int(f.high + 0.5) }

// restart begins the time that the next report is held against.
func (f *foreign) restart(g *group) {
	f.own, f.ownDecoding, f.ownWaiting, f.ownIdle = span{}, span{}, span{}, 0
	f.note(g)
}

// note sees what runs in g, after every change of it.
func (f *foreign) note(g *group) {
	decoding := g.own.decoding + g.remote.Decoding
	waiting := g.own.waiting + g.remote.Waiting
	f.own.see(decoding + waiting)
	f.ownDecoding.see(decoding)
	f.ownWaiting.see(waiting)
	f.ownIdle = max(f.ownIdle, g.backend.idle)
}

// span is the least and the most that a count was. The zero value has seen
// nothing.
type span struct {
	least, most int
	seen        bool
}

func (s *span) see(x int) {
	if !s.seen {
		*s = span{least: x, most: x, seen: true}
		return
	}
	s.least, s.most = min(s.least, x), max(s.most, x)
}

// estimate is a number that is known by ranges alone. The zero value is 0, as
// if a report had said so.
type estimate struct {
	value       int
	least, most int // of the last range
}

// see narrows the estimate by a range, of which negative parts are a matter of
// the instants compared and mean 0.
func (e *estimate) see(least, most int) {
	least, most = max(least, 0), max(most, 0)
	e.value = min(max(e.value, min(least, e.least)), max(most, e.most))
	e.least, e.most = least, most
}

// sane reports whether the numbers may be those of an engine.
func (e EngineLoad) sane() bool {
	return e.Running >= 0 && e.Waiting >= 0 && e.Running <= mostSequences && e.Waiting <= mostSequences
}

// hearEngine takes the report of an engine. Of one whose models are separate it
// says nothing: it does not tell them apart.
func (r *Router) hearEngine(now time.Time, e EngineLoad) {
	b := r.byName[e.Backend]
	if b == nil {
		return
	}
	g := b.group(GroupID{Backend: b.name})
	if g == nil || !g.foreign.hear(now, e) {
		return
	}
	g.foreign.restart(g)
	g.publish(now)
	if end := g.foreign.report.At.Add(EngineLoadLife); r.forgetAt.IsZero() || end.Before(r.forgetAt) {
		r.forgetAt = end
	}
}

// forgetEngines drops the reports that no longer hold.
func (r *Router) forgetEngines(now time.Time) {
	r.forgetAt = time.Time{}
	for _, b := range r.backends {
		g := b.group(GroupID{Backend: b.name})
		if g == nil || !g.foreign.heard() {
			continue
		}
		if end := g.foreign.report.At.Add(EngineLoadLife); end.Before(now) {
			g.foreign = foreign{}
			g.foreign.note(g)
			g.publish(now)
		} else if r.forgetAt.IsZero() || end.Before(r.forgetAt) {
			r.forgetAt = end
		}
	}
}
