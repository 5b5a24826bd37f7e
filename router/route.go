package router

import "time"

// route is a configured route with its lines and what was learned of it. It
// keeps its identity as long as its name is configured.
type route struct {
	conf    Route
	models  []*model // of conf.Targets, in their order; nil where the backend is not configured
	lines   [classes]line
	answers decayedMean // tokens of one sequence

	owed   float64 // places that refused requests were told to come back for, as of owedAt
	owedAt time.Time

	probeAt time.Time // when an unattainable floor may be probed; zero before the first such request
}

// waiting is how many wait in both lines.
func (rt *route) waiting() int { return rt.lines[Interactive].len() + rt.lines[Batch].len() }

// mustQueue reports whether a newcomer of class would pass somebody of its own
// route: its line, or the interactive one before batch.
func (rt *route) mustQueue(class Class) bool {
	return rt.lines[Interactive].len() > 0 || class == Batch && rt.lines[Batch].len() > 0
}

// releaseRate is how many places come free per second on the route's backends:
// Σ m·TPS(m)/answer. Backends of unknown speed count nothing.
func (rt *route) releaseRate() float64 {
	rate := 0.0
	for i, m := range rt.models {
		if m == nil || !m.known || !m.backend.inService() || rt.sharesBackend(i) {
			continue
		}
		load := m.backend.m()
		answer := m.answer
		if answer <= 0 {
			answer = rt.answers.mean(usualAnswer)
		}
		rate += float64(load) * finite(m.curve.TPS(max(load, 1))) / answer
	}
	return rate
}

// sharesBackend reports whether an earlier target has the backend of target i.
func (rt *route) sharesBackend(i int) bool {
	for _, m := range rt.models[:i] {
		if m != nil && m.backend == rt.models[i].backend {
			return true
		}
	}
	return false
}

// want adds delta to the interactive lines that wait for each backend.
func (rt *route) want(delta int) {
	for _, m := range rt.models {
		if m != nil {
			m.backend.wanted += delta
		}
	}
}

// decayedMean is a mean in which an older value counts 2 % less with every
// newer one. The zero value holds nothing.
type decayedMean struct{ sum, weight float64 }

// enough is the weight from which on a mean is trusted: about 20 values.
const enough = 16

func (d *decayedMean) add(x float64) {
	const keep = 0.98
	d.sum, d.weight = d.sum*keep+x, d.weight*keep+1
}

// mean returns the mean, or other while nothing was added.
func (d *decayedMean) mean(other float64) float64 {
	if d.weight <= 0 {
		return other
	}
	return d.sum / d.weight
}
