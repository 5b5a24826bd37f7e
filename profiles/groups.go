package profiles

import (
	"math"
	"strconv"
	"time"
)

// Group is a set of fields that are forgotten together.
type Group struct {
	Occupied float64 // seconds; the group's older content counts 2^(−Occupied/halfLife)
	Slow     bool    // of the slow copy, all of which halves together instead: see Delta
	Fields   []Field
}

// Field is one sum under its stored name.
type Field struct {
	Name  string // short, stable, unique within Sums: "b12.y"
	Value float64
}

// The stored names of the fields, in the order of the fields methods. Stores
// hold them for days: names may be added and never change their meaning.
var (
	binNames   = [...]string{"s", "t", "y", "k", "r", "n", "p", "pn", "w", "ss", "yy", "sy", "tq", "kq", "td", "kd", "pd", "wq", "vq", "ch", "to"}
	rowNames   = [...]string{"a00", "a01", "a02", "a03", "a11", "a12", "a13", "a22", "a23", "a33", "b0", "b1", "b2", "b3", "yy", "t", "k"}
	totalNames = [...]string{"t", "answers", "output", "cal", "counted", "chunks", "est", "pre", "txc", "txb", "txx", "txxx", "txy", "txyy"}

	// storedBins holds the names of all bins in full: "b12.y".
	storedBins = func() (names [NumBins][]string) {
		for i := range names {
			names[i] = prefixed("b"+strconv.Itoa(i)+".", binNames[:])
		}
		return names
	}()

	storedRows   = prefixed("f.", append(rowNames[:], octaveNames[:]...))
	storedTotals = prefixed("t.", totalNames[:])

	octaveNames = func() (names [numOctaves]string) {
		for i := range names {
			names[i] = "k" + strconv.Itoa(i)
		}
		return names
	}()

	// storedDeliveries holds the names of the streams by what they delivered:
	// "d.12", and of their occupied time.
	storedDeliveries = func() []string {
		names := []string{"d.t"}
		for i := range numDeliveries {
			names = append(names, "d."+strconv.Itoa(i))
		}
		return names
	}()

	// storedSlow holds the names of the slow copy: "s4.b2".
	storedSlow = func() (names [numOctaves][]string) {
		for i := range names {
			names[i] = prefixed("s"+strconv.Itoa(i)+".", rowNames[:])
		}
		return names
	}()
)

func prefixed(prefix string, names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = prefix + name
	}
	return out
}

func (b *binSums) fields() []*float64 {
	return []*float64{&b.S, &b.T, &b.Y, &b.K, &b.R, &b.N, &b.P, &b.PN, &b.W, &b.SS, &b.YY, &b.SY, &b.Tq, &b.Kq, &b.Td, &b.Kd, &b.Pd, &b.Wq, &b.Vq, &b.Chunks, &b.Told}
}

func (r *rowSums) fields() []*float64 {
	return []*float64{
		&r.A00, &r.A01, &r.A02, &r.A03, &r.A11, &r.A12, &r.A13, &r.A22, &r.A23, &r.A33,
		&r.B0, &r.B1, &r.B2, &r.B3, &r.YY, &r.T, &r.K,
	}
}

func (r *fastRows) fields() []*float64 {
	fields := r.rowSums.fields()
	for i := range r.Octaves {
		fields = append(fields, &r.Octaves[i])
	}
	return fields
}

func (t *totals) fields() []*float64 {
	return []*float64{&t.T, &t.Answers, &t.Output, &t.Calibrations, &t.Counted, &t.Chunks, &t.Estimated, &t.Prefilled, &t.text.Chunks, &t.text.Bytes, &t.text.X, &t.text.XX, &t.text.Y, &t.text.YY}
}

func (d *deliverySums) fields() []*float64 {
	fields := make([]*float64, 0, 1+numDeliveries)
	fields = append(fields, &d.T)
	for i := range d.Streams {
		fields = append(fields, &d.Streams[i])
	}
	return fields
}

// Groups writes s as named fields; SumsFrom reads them back and ignores names
// it does not know. They are the stored form. A group that is all zeros is left
// out. A group that is there has all its fields, zeros too: a store that adds a
// delta must let every field of the group fade, also those the delta has
// nothing for.
func (s *Sums) Groups() []Group {
	var groups []Group
	for i := range s.bins {
		if s.bins[i] != (binSums{}) {
			groups = append(groups, namedGroup(s.bins[i].T, storedBins[i], s.bins[i].fields()))
		}
	}
	if s.rows != (fastRows{}) {
		groups = append(groups, namedGroup(s.rows.T, storedRows, s.rows.fields()))
	}
	for i := range s.slow {
		if s.slow[i] != (rowSums{}) {
			slow := namedGroup(0, storedSlow[i], s.slow[i].fields())
			slow.Slow = true
			groups = append(groups, slow)
		}
	}
	if s.totals != (totals{}) {
		groups = append(groups, namedGroup(s.totals.T, storedTotals, s.totals.fields()))
	}
	if s.firsts != (firstSums{}) {
		groups = append(groups, namedGroup(s.firsts.T, storedFirsts, s.firsts.fields()))
	}
	if s.knee != (kneeSums{}) {
		groups = append(groups, namedGroup(s.knee.T, storedKnee, s.knee.fields()))
	}
	if d := &s.deliveries; *d != (deliverySums{}) {
		groups = append(groups, namedGroup(d.T/marginSlowness, storedDeliveries, d.fields()))
	}
	if s.pace != (paceSums{}) {
		groups = append(groups, namedGroup(s.pace.T/paceSlowness, storedPace, s.pace.fields()))
	}
	if s.mix != (mixSums{}) {
		groups = append(groups, namedGroup(s.mix.T, storedMix, s.mix.fields()))
	}
	if s.recent != (recentSums{}) {
		groups = append(groups, namedGroup(s.recent.T, storedRecent, s.recent.fields()))
	}
	return groups
}

func namedGroup(occupied float64, names []string, values []*float64) Group {
	g := Group{Occupied: max(occupied, 0), Fields: make([]Field, len(names))}
	for i, name := range names {
		g.Fields[i] = Field{Name: name, Value: *values[i]}
	}
	return g
}

// maxSum is more than any sum of streams; beyond it, products of sums would
// leave the range of float64.
const maxSum = 1e30

// SumsFrom is the inverse of Groups, but for Shifts. A value that can be no sum of streams (no
// number, or beyond 1e30) counts as 0.
func SumsFrom(fields map[string]float64, updated time.Time) Sums {
	s := Sums{Updated: updated}
	for i := range s.bins {
		readFields(fields, storedBins[i], s.bins[i].fields())
	}
	readFields(fields, storedRows, s.rows.fields())
	for i := range s.slow {
		readFields(fields, storedSlow[i], s.slow[i].fields())
	}
	readFields(fields, storedTotals, s.totals.fields())
	readFields(fields, storedFirsts, s.firsts.fields())
	readFields(fields, storedKnee, s.knee.fields())
	readFields(fields, storedDeliveries, s.deliveries.fields())
	readFields(fields, storedPace, s.pace.fields())
	readFields(fields, storedMix, s.mix.fields())
	readFields(fields, storedRecent, s.recent.fields())
	return s
}

func readFields(from map[string]float64, names []string, to []*float64) {
	for i, name := range names {
		if v := from[name]; math.Abs(v) <= maxSum { // false for NaN
			*to[i] = v
		}
	}
}
