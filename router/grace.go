package router

import "time"

// A floor is kept over a whole stream with its grace. While every stream is ahead of
// its floor and others end all the time, all may be a little slower than it: who has
// begun lives off its lead until somebody ends, and the leads tell in time when that
// does not happen.

const (
	// spareLead is how much of its grace the stream with the least lead must have left.
	spareLead = 1.0 / 3

	// usedGrace is how much of the grace an answer of the usual length may use up by
	// being slow, and leastSpeed, of the floor, how slow it may be at most: answers
	// may be longer than ever from one moment to the next.
	usedGrace  = 0.5
	leastSpeed = 0.92

	// endsShare is how many must have ended within levelMemory for each that runs.
	// Where many come at once all are slow together, and nobody ends before their
	// grace is used up.
	endsShare = 0.5
	leastEnds = 2.0 // fewer say nothing: of many replicas each has a stream or two
)

// keeps is carries for floor, a's own or that of those who run, with the grace of all:
// the level may be so much below it as they can spare. Nobody lives off it who has no
// floor himself: batch, above all. In slow start more are let in of those who go behind the
// prompt that they need.
func (a *ask) keeps(m *model, k int, extraP, floor float64) (bound float64, basis Basis, ok bool) {
	bound, basis, ok = m.carries(k, extraP, floor)
	if !ok && basis == BySlowStart && k <= followCap && m.followed(a) {
		return bound, basis, true
	}
	if !ok && a.floor > 0 && basis == ByLevel && m.within(k) && bound >= floor*m.spared(k, floor) {
		return bound, ByGrace, true
	}
	return bound, basis, ok
}

// spared is what part of floor is fast enough at this moment for each of k sequences. It is
// all of it where no route here has a grace to speak of, while other replicas are silent, and where streams have shown
// that floors need a margin: it reckons with the grace, which is spoken for then.
func (m *model) spared(k int, floor float64) float64 {
	g := m.group
	grace := g.leastGrace
	own := k - g.remote.Waiting - g.remote.Decoding - g.foreign.most()
	switch {
	case grace <= leastGrace || grace >= maxLead || m.curve.Shown() > 0 || g.router.peers.silent(), // whose leads are not known
		g.n() == 0 || g.ends < max(endsShare*float64(own), leastEnds),
		g.leastLead() < time.Duration(spareLead*float64(grace)):
		return 1
	}
	answer := m.usualAnswer()
	return max(answer/(answer+usedGrace*grace.Seconds()*floor), leastSpeed)
}
