package profiles

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The seconds of an engine that is k times as slow, worked out by the sums'
// definitions, are what a shift makes of those of the engine before.
func TestAShiftIsASlowerEngine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySums(t)
		s.Shifts, s.pace = 3, paceSums{T: 5, Ln: 0.25}
		k := rapid.Float64Range(0.05, 20).Draw(t, "k")
		want := slowed(s, k)
		want.totals.T = s.totals.T // the shift came after them
		Shift{From: 3, To: 4, Factor: k}.apply(&s)
		for i := range s.bins {
			sameFields(t, "bin", s.bins[i].fields(), want.bins[i].fields())
		}
		sameFields(t, "rows", s.rows.fields(), want.rows.fields())
		sameFields(t, "totals", s.totals.fields(), want.totals.fields())
		if s.Shifts != 4 || math.Abs(s.pace.Ln-0.25-math.Log(k)) > 1e-12 || s.pace.T != 5 {
			t.Fatalf("%d shifts of %+v, want 4 of ln %v more", s.Shifts, s.pace, k)
		}
	})
}

func sameFields(t *rapid.T, what string, got, want []*float64) {
	t.Helper()
	for i := range got {
		if math.Abs(*got[i]-*want[i]) > 1e-9*math.Abs(*want[i])+1e-200 {
			t.Fatalf("%s: field %d is %v, want %v", what, i, *got[i], *want[i])
		}
	}
}

// A curve of shifted sums is 1/k as fast at every n, and says so.
func TestAShiftScalesTheCurve(t *testing.T) {
	s := sumsOf(Fit{A: 0.008, B: 0.0012, C: 0.0001, D: 30e-6}, even(500, 1, 4, 20), func(n int) float64 { return 5 * float64(n) })
	before := newCurve(&s, nil, 0.1)
	Shift{To: 1, Factor: 2}.apply(&s)
	after := newCurve(&s, nil, 0.1)
	for _, n := range []int{1, 4, 8, 20, 30} {
		within(t, "TPS", after.TPS(n), before.TPS(n)/2, 0.01)
		within(t, "Low", after.Low(n, 0), before.Low(n, 0)/2, 0.01)
	}
	within(t, "Scale", after.Scale(), 0.5, 1e-9)
	within(t, "SecondsPerPromptToken", after.SecondsPerPromptToken(), 2*before.SecondsPerPromptToken(), 0.05)
}

func TestWhichShiftsAreTaken(t *testing.T) {
	for _, c := range []struct {
		shift Shift
		held  uint64
		taken bool
	}{
		{Shift{From: 2, To: 3, Factor: 2}, 2, true},
		{Shift{From: 2, To: 3, Factor: 2}, 3, false}, // somebody was first
		{Shift{From: 2, To: 3, Factor: 2}, 1, false}, // of sums that were lost
		{Shift{From: 2, To: 2, Factor: 2}, 2, false},
		{Shift{From: 2, To: 3, Factor: 0.04}, 2, false},
		{Shift{From: 2, To: 3, Factor: 21}, 2, false},
		{Shift{From: 2, To: 3, Factor: math.NaN()}, 2, false},
		{Shift{}, 0, false},
	} {
		s := Sums{Shifts: c.held}
		s.bins[0].S = 1
		s.Add(Delta{Shift: c.shift}, 0)
		if taken := s.bins[0].S != 1; taken != c.taken || taken != (s.Shifts != c.held) {
			t.Errorf("%+v of sums with %d: S = %v, %d shifts; taken should be %t", c.shift, c.held, s.bins[0].S, s.Shifts, c.taken)
		}
		if got := c.shift.Factors() != nil; got != c.shift.valid() {
			t.Errorf("%+v has factors: %t", c.shift, got)
		}
	}
}

// Deltas that wait for a store are joined, and come to the same as one by one,
// whatever shifts are between them: to those that the store takes, and to those
// that it refuses but for the delta's own seconds.
func TestJoinedDeltasAreTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var one, joined Sums
		one = anySums(t)
		joined = one
		var d Delta
		from := uint64(0)
		for i := range rapid.IntRange(1, 5).Draw(t, "deltas") {
			next := Delta{Sums: anySums(t)}
			if rapid.Bool().Draw(t, "shifts") {
				next.Shift = Shift{From: from, To: from + 1, Factor: rapid.Float64Range(0.6, 1.6).Draw(t, "factor")}
				from++
			}
			one.Add(next, 0)
			if i == 0 {
				d = next
			} else {
				d.Join(next, 0)
			}
		}
		joined.Add(d, 0)
		if one.Shifts != joined.Shifts || math.Abs(one.pace.Ln-joined.pace.Ln) > 1e-9 {
			t.Fatalf("%d shifts, %+v; one by one %d, %+v", joined.Shifts, joined.pace, one.Shifts, one.pace)
		}
		for i := range one.bins {
			sameFields(t, "bin", joined.bins[i].fields(), one.bins[i].fields())
		}
		sameFields(t, "rows", joined.rows.fields(), one.rows.fields())
	})
}

// What came before a shift that the store has already from somebody else is
// multiplied all the same: those seconds are of the engine before.
func TestAJoinedDeltaBehindARefusedShift(t *testing.T) {
	older, newer := Delta{}, Delta{Shift: Shift{From: 0, To: 1, Factor: 2}}
	older.Sums.bins[0].S, newer.Sums.bins[0].S = 10, 1
	older.Join(newer, time.Minute)
	s := Sums{Shifts: 1}
	s.bins[0].S = 100
	s.Add(older, 0)
	if s.bins[0].S != 121 || s.Shifts != 1 {
		t.Errorf("S = %v after %d shifts, want 100 + 2·10 + 1 and one", s.bins[0].S, s.Shifts)
	}
}
