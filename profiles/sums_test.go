package profiles

import (
	"math"
	"testing"
	"time"
)

func TestForgettingByOccupiedTime(t *testing.T) {
	// A delta that carries one half-life of occupied time in bin 0 halves bin
	// 0 and nothing else.
	s := sumsOf(Fit{A: 0.01}, even(100, 1, 2), flat)
	before := s
	var d Delta
	d.Sums.bins[0] = binSums{T: 60, Y: 7}
	s.Add(d, time.Minute)
	if got, want := s.bins[0].Y, before.bins[0].Y/2+7; !near(got, want) {
		t.Errorf("bin of 1 has %v tokens, want %v", got, want)
	}
	if got, want := s.bins[0].SY, before.bins[0].SY/2; !near(got, want) {
		t.Errorf("bin of 1 has Σs·y = %v, want %v: what the delta has nothing for fades too", got, want)
	}
	if s.bins[1] != before.bins[1] || s.rows != before.rows {
		t.Error("what the delta does not touch was forgotten as well")
	}
}

func TestGroupsCarryTheirOccupiedTime(t *testing.T) {
	s := sumsOf(Fit{A: 0.01}, even(100, 2), flat)
	s.totals = totals{T: 3, Answers: 1}
	groups := s.Groups()
	if len(groups) != 3 {
		t.Fatalf("%d groups, want one bin, the rows and the totals", len(groups))
	}
	for i, want := range []struct {
		occupied float64
		first    string
		fields   int
	}{{1, "b1.s", len(binNames)}, {1, "f.a00", len(rowNames) + numOctaves}, {3, "t.t", len(totalNames)}} {
		g := groups[i]
		if math.Abs(g.Occupied-want.occupied) > 1e-9 || g.Fields[0].Name != want.first || len(g.Fields) != want.fields {
			t.Errorf("group %d: %v s, %d fields from %s, want %v s, %d from %s", i, g.Occupied, len(g.Fields), g.Fields[0].Name, want.occupied, want.fields, want.first)
		}
	}
}

// TestStoredMergeIsAdd does what a store does with Groups, and compares with
// Sums.Add.
func TestStoredMergeIsAdd(t *testing.T) {
	const halfLife = time.Minute
	stored := map[string]float64{}
	var want Sums
	for i := range 20 {
		d := Delta{Sums: sumsOf(Fit{A: 0.01, C: 0.001}, even(float64(100*i+1), 1+i%4, 9), flat)}
		if i%3 > 0 {
			d.Sums.rows = fastRows{}
			d.Sums.bins[0].W, d.Sums.bins[0].SS = 0, 0
		}
		want.Add(d, halfLife)
		for _, g := range d.Sums.Groups() {
			for _, f := range g.Fields {
				stored[f.Name] = stored[f.Name]*math.Exp2(-g.Occupied/halfLife.Seconds()) + f.Value
			}
		}
	}
	got := SumsFrom(stored, want.Updated)
	for i := range got.bins {
		for j, f := range got.bins[i].fields() {
			if !near(*f, *want.bins[i].fields()[j]) {
				t.Errorf("%s = %v, want %v", storedBins[i][j], *f, *want.bins[i].fields()[j])
			}
		}
	}
	for j, f := range got.rows.fields() {
		if !near(*f, *want.rows.fields()[j]) {
			t.Errorf("%s = %v, want %v", storedRows[j], *f, *want.rows.fields()[j])
		}
	}
}

func TestSumsFromIgnoresWhatIsNoSum(t *testing.T) {
	got := SumsFrom(map[string]float64{"b0.y": math.NaN(), "b0.s": math.Inf(1), "b1.y": 4, "b48.y": 1, "zz": 3}, start)
	var want Sums
	want.Updated = start
	want.bins[1].Y = 4
	if got != want {
		t.Errorf("got %+v, want only b1.y", got)
	}
}
