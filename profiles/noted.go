package profiles

import "slices"

// noted is what became of the slots of one stream. Its usage corrects them.
type noted struct {
	of   *profile
	each float64 // tokens in one of what the stream counts, as far as it is known
	bins []notedBin
}

// notedBin is what a stream counted in one bin, in steps.
type notedBin struct {
	bin              int
	quiet, disturbed float64
}

// see takes k steps, as the stream counted them, and returns how many they are.
func (s *noted) see(bin int, k float64, disturbed bool) float64 {
	i := slices.IndexFunc(s.bins, func(b notedBin) bool { return b.bin == bin })
	if i < 0 {
		i = len(s.bins)
		s.bins = append(s.bins, notedBin{bin: bin})
	}
	if disturbed {
		s.bins[i].disturbed += k
	} else {
		s.bins[i].quiet += k
	}
	return k * s.each
}

// recount makes the tokens in one of what the stream counted to be each. g.mu is held.
func (s *noted) recount(each float64) {
	if s == nil || each == s.each {
		return
	}
	by := max(each-s.each, -mostUncounted*s.each)
	for _, q := range s.bins {
		known, fold := &s.of.known.bins[q.bin], &s.of.fold.bins[q.bin]
		fold.Kq += by * q.quiet * share(known.Kq+fold.Kq, q.quiet*s.each)
		fold.Kd += by * q.disturbed * share(known.Kd+fold.Kd, q.disturbed*s.each)
	}
	s.each = each
}

// mostUncounted is what part of what a stream counted may be taken off again. A little
// of it fades between that and the next fold.
const mostUncounted = 0.99

// share returns how much of what was added to a sum the sum may still hold, 0 to 1: all,
// or if it holds less, as if it held nothing else. The rest is forgotten: taken off as
// well, it could leave a sum below 0.
func share(sum, added float64) float64 {
	if !(added > 0) {
		return 0
	}
	return min(max(sum/added, 0), 1)
}
