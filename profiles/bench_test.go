package profiles

import (
	"testing"
	"time"
)

// BenchmarkStreamRead is the hot path: one arrival while n stays as it is.
// Budget: 100 ns, no allocation.
func BenchmarkStreamRead(b *testing.B) {
	book := NewBook(Options{})
	occ := NewOccupancy(start)
	occ.Set(start, 8)
	s := book.Open(target, Open{Sent: start, Occupancy: occ})
	now := start
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(20 * time.Millisecond)
		s.Read(now, 1)
	}
}

// The same where the backend counts: budget 100 ns, 0 allocations.
func BenchmarkStreamReadCounted(b *testing.B) {
	book, occ := NewBook(Options{}), NewOccupancy(start)
	occ.Set(start, 8)
	s := book.Open(target, Open{Sent: start, Occupancy: occ})
	now, total := start, 0
	b.ReportAllocs()
	for b.Loop() {
		now, total = now.Add(20*time.Millisecond), total+2
		s.ReadCounted(now, 1, total)
		s.Decoding()
	}
}

// TestAnArrivalAllocatesNothing holds the other half of that budget, while n
// stays and while it changes, and where others are heard late. A window takes three
// allocations per target, of which 1,000 arrivals 20 ms apart see four.
func TestAnArrivalAllocatesNothing(t *testing.T) {
	for _, test := range []struct{ changes, late bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		occ := NewOccupancy(start)
		occ.SetShared(start, 8, 4)
		if test.late {
			occ.Told(start, 4, nil, nil)
		}
		s := NewBook(Options{}).Open(target, Open{Sent: start, Occupancy: occ})
		now := start
		got := testing.AllocsPerRun(10, func() {
			for i := range 1000 {
				now = now.Add(20 * time.Millisecond)
				if test.changes {
					occ.SetShared(now, 8+i%2, 4)
				}
				if test.late && i%10 == 0 {
					occ.Told(now, 4, nil, nil)
				}
				s.Read(now, 1)
			}
		})
		if got > 4*3 {
			t.Errorf("%+v: %v allocations in 1,000 arrivals, want those of four windows", test, got)
		}
	}
}

// BenchmarkStreamReadLate is an arrival where others are heard late, and tell each 200 ms.
// Budget: 200 ns, no allocation.
func BenchmarkStreamReadLate(b *testing.B) {
	book, occ := NewBook(Options{}), NewOccupancy(start)
	occ.SetShared(start, 8, 4)
	occ.Told(start, 4, nil, nil)
	s := book.Open(target, Open{Sent: start, Occupancy: occ})
	now, i := start, 0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(20 * time.Millisecond)
		if i++; i%10 == 0 {
			occ.Told(now.Add(-200*time.Millisecond), 4, nil, nil)
		}
		s.Read(now, 1)
	}
}

// BenchmarkStreamReadChanging is one arrival where n has changed since the
// last, Set included. Budget: 1 µs, no allocation.
func BenchmarkStreamReadChanging(b *testing.B) {
	book := NewBook(Options{})
	occ := NewOccupancy(start)
	s := book.Open(target, Open{Sent: start, Occupancy: occ})
	now, n := start, 8
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(10 * time.Millisecond)
		n = 20 - n
		occ.Set(now, n)
		now = now.Add(10 * time.Millisecond)
		s.Read(now, 1)
	}
}

func benchSums() Sums {
	steps := map[int]float64{}
	for i := range 24 { // n up to 128
		lo, _ := BinBounds(i)
		steps[lo] = 1000
	}
	return sumsOf(Fit{A: 0.01, B: 0.002, C: 0.0005, D: 3e-5}, steps, func(n int) float64 { return 10 * float64(n) })
}

// BenchmarkSolve is the fit alone: 15 supports. Budget: 10 µs.
func BenchmarkSolve(b *testing.B) {
	s := benchSums()
	l, _ := centreOf(&s)
	b.ReportAllocs()
	for b.Loop() {
		s.fit(l, nil)
	}
}

// BenchmarkNewCurve is fit, corrections, tables and bound of a target that was
// seen up to n = 128. Budget: 100 µs, once a second for each target.
func BenchmarkNewCurve(b *testing.B) {
	s := benchSums()
	b.ReportAllocs()
	for b.Loop() {
		newCurve(&s, nil, startMargin)
	}
}

// BenchmarkNewCurveWide is the same with evidence in every bin, up to 8192.
// Budget: 100 µs.
func BenchmarkNewCurveWide(b *testing.B) {
	steps := map[int]float64{}
	for i := range NumBins {
		_, hi := BinBounds(i)
		steps[hi] = 1000
	}
	s := sumsOf(Fit{A: 0.01, B: 0.002, C: 0.0005, D: 3e-5}, steps, func(n int) float64 { return float64(n) })
	b.ReportAllocs()
	for b.Loop() {
		newCurve(&s, nil, startMargin)
	}
}

// BenchmarkLow is what a decision asks for each candidate. Budget: 5 ns.
func BenchmarkLow(b *testing.B) {
	s := benchSums()
	c := newCurve(&s, nil, startMargin)
	b.ReportAllocs()
	for b.Loop() {
		c.Low(40, 120)
	}
}

// BenchmarkFold is the work of one second on a book of 16 targets that all
// gathered something. Budget: 5 ms.
func BenchmarkFold(b *testing.B) {
	book := NewBook(Options{})
	sums := benchSums()
	var targets []Target
	for i := range 16 {
		targets = append(targets, Target{Backend: string(rune('a' + i)), Model: "m"})
	}
	now := start
	book.Ensure(targets...)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		for _, t := range targets {
			book.profile(t).fold = sums
		}
		book.Fold(now)
	}
}
