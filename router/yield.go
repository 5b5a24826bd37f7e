package router

import (
	"slices"
	"time"
)

// Batch yields: it leaves a group alone while interactive requests are kept out of
// it, and for a while after, since a stream that is let in stays for about as
// long. In return it saves up a share of what is placed there meanwhile.

const (
	// afterWaiting and afterRefusing are for how long batch stays off when an
	// interactive request has been kept waiting, or was refused.
	afterWaiting  = 3 * time.Second
	afterRefusing = 10 * time.Second

	// usualBatchShare is what batch gets where no route says otherwise.
	usualBatchShare = 0.02
)

func (rt *route) batchShare() float64 {
	if rt.conf.BatchShare == 0 {
		return usualBatchShare
	}
	return rt.conf.BatchShare
}

// yield is how batch yields in a group, and what it has saved up meanwhile.
type yield struct {
	// wanted counts the interactive lines with a waiter that could go here: batch
	// stays off until they are served.
	wanted int
	denied time.Time // until then batch stays off: an interactive request that could run here was kept out
	credit float64   // saved up, in places, at most 1
	share  float64   // of each place that is taken here, batch saves up so much
}

// keptOut reports whether somebody interactive is kept out of g, or was lately.
func (g *group) keptOut(now time.Time) bool { return g.yield.wanted > 0 || now.Before(g.yield.denied) }

// denied notes that there is no room for a. A floor that a target cannot
// give even alone is no reason for batch to stay off it.
func (a *ask) denied(d time.Duration) {
	if a.class == Batch || a.weight == 0 || a.req.Spare {
		return
	}
	for i := range a.verdicts {
		v := &a.verdicts[i]
		if v.model == nil || v.reason.outOfService() {
			continue
		}
		g := v.model.group
		if _, _, alone := v.model.carries(1, 0, a.floor); alone && g.yield.denied.Before(a.now.Add(d)) {
			g.yield.denied = a.now.Add(d)
		}
	}
}

// save gives batch its share of a place that a takes in g, and takes off the one
// that batch comes in with although somebody is kept out.
func (a *ask) save(g *group) {
	switch {
	case a.class != Batch:
		g.yield.credit = min(g.yield.credit+g.yield.share, 1)
	case g.keptOut(a.now):
		g.yield.credit = max(g.yield.credit-1, 0)
	}
}

// batchIsDue reports whether batch has saved up a place on one of the routes'
// backends: then it goes before those in the interactive lines.
func batchIsDue(routes []*route) bool {
	return slices.ContainsFunc(routes, func(rt *route) bool {
		return rt.lines[Batch].len() > 0 && slices.ContainsFunc(rt.models, func(m *model) bool {
			return m != nil && m.group.yield.credit >= 1
		})
	})
}
