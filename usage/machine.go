package usage

import (
	"sort"
	"time"
)

const (
	// machineStep is how far apart the marks of a machine are, and machineMarks how
	// many are kept: longer than a request may last.
	machineStep  = time.Second
	machineMarks = 4096
)

// machine is an engine that costs the same each hour, busy or not: the requests
// that it runs share what it costs, each second evenly among those that are there
// (m). So a request costs less where more run beside it, which is what a million
// tokens cost at this load, and the costs of all requests add up to those of the
// time in which it was busy.
//
// share is Σ Δt/m over the time that was seen, in seconds; a request that ran
// from a to b used share(b) − share(a) of the machine.
type machine struct {
	share, busy, seen float64   // seconds
	first, last       time.Time // last = up to when the sums are; zero = not seen
	marks             []mark    // oldest first, machineStep apart
}

type mark struct {
	at    time.Time
	share float64
}

// sample notes that m sequences were there since the sample before. A gap of more
// than maxGap is not counted: nobody looked.
func (g *machine) sample(now time.Time, m int) {
	const maxGap = 10 * time.Second
	if g.last.IsZero() {
		g.first = now
		g.marks = append(g.marks, mark{at: now})
	}
	if d := now.Sub(g.last); !g.last.IsZero() && d > 0 && d <= maxGap {
		g.share += d.Seconds() / float64(max(m, 1))
		g.seen += d.Seconds()
		if m > 0 {
			g.busy += d.Seconds()
		}
	}
	if now.After(g.last) {
		g.last = now
	}
	if now.Sub(g.marks[len(g.marks)-1].at) >= machineStep {
		if len(g.marks) >= machineMarks {
			g.marks = append(g.marks[:0], g.marks[machineMarks/2:]...)
		}
		g.marks = append(g.marks, mark{g.last, g.share})
	}
}

// used is how many seconds of the machine a request used that ran from a to b. What
// lies outside of what was seen counts as if it had been alone.
func (g *machine) used(a, b time.Time) float64 {
	if g.last.IsZero() || !b.After(a) {
		return max(b.Sub(a).Seconds(), 0)
	}
	return max(g.at(b)-g.at(a), 0)
}

// at is the share up to t, by the line between two marks.
func (g *machine) at(t time.Time) float64 {
	marks := g.marks
	if !t.Before(g.last) {
		return g.share + t.Sub(g.last).Seconds()
	}
	i := sort.Search(len(marks), func(i int) bool { return marks[i].at.After(t) })
	if i == 0 {
		return marks[0].share - marks[0].at.Sub(t).Seconds()
	}
	before, after := marks[i-1], mark{g.last, g.share}
	if i < len(marks) {
		after = marks[i]
	}
	span := after.at.Sub(before.at).Seconds()
	if span <= 0 {
		return before.share
	}
	return before.share + (after.share-before.share)*t.Sub(before.at).Seconds()/span
}
