package engines

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// level is what users got while so many of them were answered at once.
type level struct {
	tokens  float64
	seconds float64 // of all its streams together
}

// tps is tokens/s for one of them.
func (l level) tps() float64 { return l.tokens / l.seconds }

// change is a moment from which on n streams decode.
type change struct {
	at time.Time
	n  int
}

// decoding is how many streams decoded when, by the clients' clocks.
func decoding(all []answer) []change {
	var changes []change
	for _, a := range all {
		if a.served() {
			changes = append(changes, change{a.arrivals[0], 1}, change{a.arrivals[len(a.arrivals)-1], -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.n, b.n)) })
	for i := 1; i < len(changes); i++ {
		changes[i].n += changes[i-1].n
	}
	return changes
}

// levels says what users got at each n: each gap between two chunks, with the
// tokens at its end, goes to the levels that it lay in, in proportion to the
// time.
func levels(all []answer) map[int]level {
	changes := decoding(all)
	out := map[int]level{}
	for _, a := range all {
		if !a.served() {
			continue
		}
		perChunk := float64(a.tokens) / float64(len(a.arrivals))
		for i := 1; i < len(a.arrivals); i++ {
			from, to := a.arrivals[i-1], a.arrivals[i]
			// The first change behind from; the one before it says how many there were.
			next, _ := slices.BinarySearchFunc(changes, from, func(c change, at time.Time) int {
				if c.at.After(at) {
					return 1
				}
				return -1
			})
			for at := from; ; next++ {
				end := to
				if next < len(changes) && changes[next].at.Before(to) {
					end = changes[next].at
				}
				part := 1.0 // of a gap that took no time
				if to.After(from) {
					part = end.Sub(at).Seconds() / to.Sub(from).Seconds()
				}
				l := out[changes[next-1].n]
				l.seconds += end.Sub(at).Seconds()
				l.tokens += perChunk * part
				out[changes[next-1].n] = l
				if !end.Before(to) {
					break
				}
				at = end
			}
		}
	}
	return out
}

// quantile is the q-th of a list, which it sorts; NaN of an empty one.
func quantile(list []float64, q float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	slices.Sort(list)
	return list[int(math.Round(q*float64(len(list)-1)))]
}
