package router

import "time"

// ttftMargin is the time by which first tokens are planned to come before they have to.
// What is predicted is a mean. Who waits in line for a full engine is let in as late as
// may be: with no time to spare, every second one of them would be late. How much is
// needed, those say who were promised a time: one that is late raises it, and many that
// are in time lower it, until lateShare are late. That is Gibbs and Candès, Adaptive
// Conformal Inference Under Distribution Shift, 2021, with the time itself for the
// quantile. The zero value takes nothing off.
type ttftMargin struct {
	time   time.Duration
	raised time.Time // who was placed before that knew nothing of it
}

const (
	// lateShare is the share of first tokens that may be late.
	lateShare = 1.0 / 1024

	// lateStep is by which part of the time that was promised one that is late raises
	// the margin.
	lateStep = 1.0 / 20
)

// late reports whether a first token of l at now is.
func (l *Lease) late(now time.Time) bool {
	return now.Sub(l.placed) > seconds(float64(l.expected.left))
}

// see takes the first token of l at now. Who waited for an engine that hung says nothing.
func (s *ttftMargin) see(now time.Time, l *Lease) {
	e, promised := &l.expected, l.route.conf.SLO.MaxTTFT
	if e.most <= 0 || promised <= 0 || l.placed.Before(l.group.price.prefills.heard) {
		return
	}
	most := min(seconds(float64(e.most)), promised) // the route may have promised more when l was placed
	s.time = min(s.time, promised/2)                // and more takes nothing off, see beside
	step := lateStep * most.Seconds()
	switch {
	case !l.late(now):
		s.time = max(s.time-seconds(lateShare*step), 0)
	case !l.placed.Before(s.raised):
		s.time, s.raised = min(s.time+seconds(step), max(s.time, most/2)), now
	}
}

// beside is wait, which goes by before a prompt is prefilled, with the margin: no more
// than the wait itself. Who need not wait can come no sooner, and else an engine might
// stand idle that nobody is let in to.
func (s *ttftMargin) beside(wait time.Duration) time.Duration { return wait + min(s.time, wait) }

// within is by how much less than left somebody may wait, for beside to be no more than
// left.
func (s *ttftMargin) within(left time.Duration) time.Duration { return max(min(s.time, left/2), 0) }

// of is the margin beside most that is promised.
func (s *ttftMargin) of(most time.Duration) time.Duration { return min(s.time, most/2) }
