package profiles

import (
	"math"
	"time"
)

// Shift says that an engine has become slower, or faster, at all n: the seconds
// of everything known of it are multiplied by Factor, so that what was seen at
// other n goes with what is seen at hand. The zero value shifts nothing.
//
// It is done once: sums that hold From shifts take it and hold To from then on;
// for all others it does nothing. Of replicas that find the same change the
// first one is heard, and a Delta that is sent again is harmless.
type Shift struct {
	From, To uint64  // Sums.Shifts before and after
	Factor   float64 // within leastFactor and 1/leastFactor
}

// leastFactor bounds what one shift may do.
const leastFactor = 0.05

// valid reports whether s shifts anything.
func (s Shift) valid() bool {
	return s.To > s.From && s.Factor >= leastFactor && s.Factor <= 1/leastFactor
}

// Pace is ln Factor, 0 when nothing is shifted.
func (s Shift) Pace() float64 {
	if !s.valid() {
		return 0
	}
	return math.Log(s.Factor)
}

// powers of seconds in each sum, in the order of the fields methods: by them a
// sum changes when seconds are multiplied. The weights of rows are 1/seconds².
var (
	binPowers   = [...]int{1, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 1, 0, 1, 0, 0, 0, 2, 0, 0}
	rowPowers   = [...]int{-2, -2, -2, -2, -2, -2, -2, -2, -2, -2, -1, -1, -1, -1, 0, 1, 0}
	firstPowers = [...]int{0, -2, -2, -2, -1, -1, 0, 1, 0, 0, 0}
)

// apply shifts s, if it holds as many shifts as d begins with.
func (d Shift) apply(s *Sums) {
	if !d.valid() || s.Shifts != d.From {
		return
	}
	s.Shifts = d.To
	d.multiply(s)
	s.pace.Ln += d.Pace()
}

// multiply multiplies all seconds of s.
func (d Shift) multiply(s *Sums) {
	var by [5]float64 // by power, from −2 on
	for i := range by {
		by[i] = math.Pow(d.Factor, float64(i-2))
	}
	times := func(fields []*float64, powers []int) {
		for i, power := range powers {
			*fields[i] *= by[power+2]
		}
	}
	for i := range s.bins {
		if s.bins[i] != (binSums{}) {
			times(s.bins[i].fields(), binPowers[:])
		}
	}
	times(s.rows.rowSums.fields(), rowPowers[:])
	for i := range s.slow {
		if s.slow[i] != (rowSums{}) {
			times(s.slow[i].fields(), rowPowers[:])
		}
	}
	times(s.firsts.fields(), firstPowers[:])
}

// spare adds to fold what leaves those seconds of the known sums as they are that since
// holds, because they were measured after the change. With F the factor, and its powers
// for sums of other powers of seconds,
//
//	known·F + g·(since − since·F) = (known − g·since)·F + g·since
//
// g is the share of since that known has not forgotten, or less: then what comes out
// is a sum of streams, whatever the sums are.
func (d Shift) spare(fold, since *Sums, share float64) {
	shifted := *since
	d.multiply(&shifted)
	less := func(to, as, by []*float64) {
		for i := range to {
			*to[i] += share * (*as[i] - *by[i])
		}
	}
	for i := range since.bins {
		less(fold.bins[i].fields(), since.bins[i].fields(), shifted.bins[i].fields())
	}
	less(fold.rows.rowSums.fields(), since.rows.rowSums.fields(), shifted.rows.rowSums.fields())
	for i := range since.slow {
		less(fold.slow[i].fields(), since.slow[i].fields(), shifted.slow[i].fields())
	}
}

// Factors returns by how much each stored sum is multiplied, under its name
// without the number of a bin or an octave: "b.ss" is Factor² for all bins. Sums
// that are not there stay as they are. It is nil when nothing is shifted.
func (d Shift) Factors() []Field {
	if !d.valid() {
		return nil
	}
	var list []Field
	name := func(prefix string, names []string, powers []int) {
		for i, power := range powers {
			if power != 0 {
				list = append(list, Field{Name: prefix + names[i], Value: math.Pow(d.Factor, float64(power))})
			}
		}
	}
	name("b.", binNames[:], binPowers[:])
	name("f.", rowNames[:], rowPowers[:])
	name("s.", rowNames[:], rowPowers[:])
	name("ft.", firstNames[:], firstPowers[:])
	return list
}

// paceSums remember what shifts multiplied the seconds by, so that an engine
// that is as before is known at once.
type paceSums struct {
	T  float64 // occupied seconds
	Ln float64 // ln of the factor
}

// paceSlowness is how many times as slowly as a bin a shift is forgotten: three
// hours of decoding. By then what is known is of the engine as it is.
const paceSlowness = 18

func (p *paceSums) fields() []*float64 { return []*float64{&p.T, &p.Ln} }

var storedPace = []string{"g.t", StoredPace}

// StoredPace is the name of the sum to which a store adds ln Factor when it
// takes a shift, before the delta is added.
const StoredPace = "g.ln"

// then is both shifts, s first: what came with the first is already multiplied
// by the second. Where next does not go on from s, s was or will be refused.
func (s Shift) then(next Shift) Shift {
	switch {
	case !next.valid():
		return s
	case !s.valid() || s.To != next.From:
		return next
	}
	both := Shift{From: s.From, To: next.To, Factor: s.Factor * next.Factor}
	both.Factor = min(max(both.Factor, leastFactor), 1/leastFactor)
	return both
}

// Join adds next, which was gathered later, to d, as one delta for a store. The
// older seconds are as slow as the engine was, so a shift is for them too.
func (d *Delta) Join(next Delta, halfLife time.Duration) {
	if next.Shift.valid() {
		next.Shift.multiply(&d.Sums)
	}
	d.Shift = d.Shift.then(next.Shift)
	next.Shift = Shift{}
	d.Sums.Add(next, halfLife)
}
