package profiles

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
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

func TestOccupancyBegan(t *testing.T) {
	const s = time.Second
	for _, test := range []struct {
		name      string
		from, to  time.Duration // decoded since from, counted since to
		sequences int
		want      []piece // of 0 to 10 s, latest first
	}{
		{"within one level", 3 * s, 8 * s, 1, []piece{{2, 2 * s}, {2, 3 * s}, {4, s}, {4, s}, {3, s}, {0, 2 * s}}},
		{"from a change", 2 * s, 8 * s, 1, []piece{{2, 2 * s}, {2, 3 * s}, {4, s}, {4, 2 * s}, {0, 2 * s}}},
		{"since before all", -s, 8 * s, 2, []piece{{2, 2 * s}, {3, 3 * s}, {5, s}, {5, 2 * s}, {2, 2 * s}}},
		{"counted late", 6 * s, 9 * s, 1, []piece{{2, 2 * s}, {2, 2 * s}, {1, s}, {3, s}, {3, 2 * s}, {0, 2 * s}}},
		{"counted at a change that others followed", 3 * s, 4 * s, 1, []piece{{2, 2 * s}, {1, 3 * s}, {3, s}, {4, s}, {3, s}, {0, 2 * s}}},
		{"no time", 8 * s, 8 * s, 1, []piece{{2, 2 * s}, {1, 3 * s}, {3, s}, {3, 2 * s}, {0, 2 * s}}},
		{"after all", 9 * s, 10 * s, 1, []piece{{2, 2 * s}, {1, 3 * s}, {3, s}, {3, 2 * s}, {0, 2 * s}}},
	} {
		o := NewOccupancy(start)
		for _, c := range []piece{{3, 2 * s}, {3, 4 * s}, {1, 5 * s}, {2, 8 * s}} {
			o.Set(start.Add(c.D), c.N)
		}
		before, _ := o.Load()
		o.began(test.from, test.to, test.sequences)
		if diff := cmp.Diff(test.want, pieces(o, 0, 10*s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if version, n := o.Load(); version == before || n != 2 {
			t.Errorf("%s: version %d after %d, n %d; want another one, and the present n of 2", test.name, version, before, n)
		}
	}
}

// A record set back time and again is as long as any other, and tells of each instant
// what counts each sequence from when it decoded.
func TestOccupancyBeganAgainAndAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type stay struct{ from, seen, to time.Duration }
		o, now, n := NewOccupancy(start), time.Duration(0), 0
		var stays []stay
		for range rapid.IntRange(1, 200).Draw(t, "events") {
			now += time.Duration(rapid.IntRange(1, 50).Draw(t, "ms")) * time.Millisecond
			if n > 0 && rapid.Bool().Draw(t, "ends") {
				n--
				o.Set(start.Add(now), n)
				for i := range stays {
					if stays[i].to == 0 {
						stays[i].to = now
						break
					}
				}
				continue
			}
			n++
			o.Set(start.Add(now), n)
			from := now - time.Duration(rapid.IntRange(0, 300).Draw(t, "unseen"))*time.Millisecond
			if from < now {
				o.began(from, now, 1)
			}
			stays = append(stays, stay{from: from, seen: now})
		}
		for at := time.Duration(0); at < now; at += time.Millisecond {
			want := 0
			for _, q := range stays {
				if q.from <= at && (q.to == 0 || at < q.to) {
					want++
				}
			}
			o.walk(at, at+time.Millisecond, func(got, _ int, _ time.Duration) {
				if got != want {
					t.Fatalf("at %v n is %d, want %d", at, got, want)
				}
			})
		}
	})
}

func TestOccupancyBeganIsBounded(t *testing.T) {
	o := NewOccupancy(start)
	for i := range 3 * occupancyReach {
		at := time.Duration(i) * time.Millisecond
		o.Set(start.Add(at), maxOccupancy)
		o.began(at-time.Hour+time.Duration(i), at, maxOccupancy)
	}
	if o.size != occupancyReach {
		t.Errorf("%d changes are held, want %d", o.size, occupancyReach)
	}
	o.walk(0, time.Hour, func(n, own int, _ time.Duration) {
		if n != maxOccupancy || own < 0 || own > maxOccupancy {
			t.Fatalf("n %d, own %d, want %d, and no more", n, own, maxOccupancy)
		}
	})
}
