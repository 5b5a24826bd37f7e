package profiles

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type piece struct {
	N int
	D time.Duration
}

func pieces(o *Occupancy, from, to time.Duration) (out []piece) {
	o.walk(from, to, func(n, _ int, d time.Duration) { out = append(out, piece{n, d}) })
	return out
}

func TestOccupancyWalk(t *testing.T) {
	const s = time.Second
	o := NewOccupancy(start)
	o.Set(start.Add(2*s), 3)
	o.Set(start.Add(5*s), 1)
	o.Set(start.Add(4*s), 7) // late: counts as at 5 s
	o.Set(start.Add(9*s), -4)
	for _, test := range []struct {
		name     string
		from, to time.Duration
		want     []piece
	}{
		{"one level", 2 * s, 4 * s, []piece{{3, 2 * s}}},
		{"over changes", 1 * s, 10 * s, []piece{{0, s}, {7, 4 * s}, {3, 3 * s}, {0, s}}},
		{"before the beginning", -2 * s, 1 * s, []piece{{0, s}, {0, 2 * s}}},
		{"from a change to a change", 2 * s, 5 * s, []piece{{3, 3 * s}}},
		{"no time", 3 * s, 3 * s, nil},
		{"backwards", 4 * s, 3 * s, nil},
	} {
		if diff := cmp.Diff(test.want, pieces(o, test.from, test.to)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	if version, n := o.Load(); version != 4 || n != 0 {
		t.Errorf("Load = version %d, n %d, want 4, 0", version, n)
	}
}

func TestOccupancyForgetsTheOldest(t *testing.T) {
	o := NewOccupancy(start)
	for i := 1; i <= 2*occupancyReach; i++ {
		o.Set(start.Add(time.Duration(i)*time.Millisecond), i)
	}
	oldest := occupancyReach + 1
	from := time.Duration(oldest-10) * time.Millisecond
	var total, early time.Duration
	o.walk(from, 3*occupancyReach*time.Millisecond, func(n, _ int, d time.Duration) {
		total += d
		if n == oldest {
			early += d
		}
	})
	if want := 3*occupancyReach*time.Millisecond - from; total != want {
		t.Errorf("walked %v, want %v", total, want)
	}
	if want := 11 * time.Millisecond; early != want {
		t.Errorf("%v at the oldest known n, want %v: its own and what is forgotten", early, want)
	}
}
