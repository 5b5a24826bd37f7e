package profiles

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/racetest"
)

// quiet is a load that never has more than four streams.
func (e *engine) quiet() { e.rate, e.maxBatch = 0.6, 4 }

// offAt returns by how many percent the curve of known misses the engine's speed
// at n, as it is, at the prompt load that the curve states.
func (e *engine) offAt(known *Sums, n int) float64 {
	c := newCurve(known, nil, startMargin)
	want := 1 / e.fit.tpot(float64(n), c.At(n).P)
	if e.uneven != nil {
		want /= e.uneven(n)
	}
	return 100 * math.Abs(c.TPS(n)/want-1)
}

// TestSlowCopyRemembersTheOtherLevels learns engines at all n, then for hours at
// n ≤ 4, and asks for n = 30. Without the slow copy the fit knows by then only
// what is below 4, and the bins above are shrunk towards it.
func TestSlowCopyRemembersTheOtherLevels(t *testing.T) {
	if racetest.On {
		t.Skip("hours of virtual time")
	}
	const seeds = 3
	for _, test := range []struct {
		name   string
		uneven func(n int) float64
		goal   float64 // %, the median of the seeds
		worse  float64 // by how much the control has to be
	}{
		{"the fit's own form", nil, 2, 2},
		{"30 % slower from 17 to 32 on", func(n int) float64 { return 1 + 0.3*min(max(float64(n-16)/16, 0), 1) }, 8, 1.3},
		{"a kernel for 4 and more", func(n int) float64 {
			if n >= 4 {
				return 0.8
			}
			return 1
		}, 2.5, 1.5},
	} {
		t.Run(test.name, func(t *testing.T) {
			var before, with, without []float64
			for seed := range int64(seeds) {
				b := NewBook(Options{})
				e := newEngine(seed, b)
				e.uneven = test.uneven
				e.run(200_000)
				e.drain()
				p := b.profile(e.target)
				before = append(before, e.offAt(&p.known, 30))
				e.quiet()
				e.lasting(3*time.Hour, func() bool { return false })
				with = append(with, e.offAt(&p.known, 30))
				bare := p.known
				bare.slow = [numOctaves]rowSums{}
				without = append(without, e.offAt(&bare, 30))
			}
			slices.Sort(before)
			slices.Sort(with)
			slices.Sort(without)
			mid := seeds / 2
			t.Logf("n = 30 off by %.1f %% when learned, %.1f %% after three hours at 4, %.1f %% without the slow copy", before[mid], with[mid], without[mid])
			if with[mid] > test.goal {
				t.Errorf("after three hours at 4 or less, 30 is off by %.1f %%, want at most %v", with[mid], test.goal)
			}
			if without[mid] < test.worse*with[mid] {
				t.Errorf("without the slow copy 30 is off by %.1f %%, with it by %.1f: it should be %v times worse", without[mid], with[mid], test.worse)
			}
		})
	}
}

// TestSlowCopyHoldsNothingBack lets an engine that has a slow copy become 1.5
// times slower for good. The curve is within 10 % in half a minute, at the n that
// is visited and at the others; and when the sums have learned the new speed at
// n ≤ 4, the curve at 30 is no further off than it would be without the slow copy.
func TestSlowCopyHoldsNothingBack(t *testing.T) {
	if racetest.On {
		t.Skip("hours of virtual time")
	}
	const seeds = 5
	levels := []int{2, 4, 8, 16, 30}
	var took []time.Duration
	var later []float64 // by how many points the slow copy makes 30 worse
	for seed := range int64(seeds) {
		b := NewBook(Options{})
		e := newEngine(seed, b)
		e.run(200_000)
		e.quiet()
		e.lasting(30*time.Minute, func() bool { return false })
		slower := e.fit
		for _, f := range []*float64{&slower.A, &slower.B, &slower.C, &slower.D} {
			*f *= 1.5
		}
		e.fit = slower
		off := func(c *Curve) (worst float64) {
			for _, n := range levels {
				worst = max(worst, 100*math.Abs(c.TPS(n)*slower.tpot(float64(n), c.At(n).P)-1))
			}
			return worst
		}
		from, at := e.now, time.Hour
		e.lasting(5*time.Minute, func() bool {
			if off(b.Curve(e.target)) > 10 {
				return false
			}
			at = e.now - from
			return true
		})
		took = append(took, at)
		e.lasting(2*time.Hour, func() bool { return false })
		known := b.profile(e.target).known
		bare := known
		bare.slow = [numOctaves]rowSums{}
		worse := e.offAt(&known, 30) - e.offAt(&bare, 30)
		later = append(later, worse)
	}
	slices.Sort(took)
	slices.Sort(later)
	t.Logf("1.5 times slower: within 10 %% after %v; two hours later 30 is %.1f points further off than without the slow copy", took, later)
	if median := took[seeds/2]; median > 30*time.Second {
		t.Errorf("within 10 %% after %v (median), want 30 s", median)
	}
	if median := later[seeds/2]; median > 2 {
		t.Errorf("the slow copy makes 30 %.1f points worse (median), want at most 2", median)
	}
}

// TestSlowCopyAddsNothingThatIsKnown: as long as the rows have forgotten
// nothing, the slow copy is the same evidence and changes no curve.
func TestSlowCopyAddsNothingThatIsKnown(t *testing.T) {
	b := NewBook(Options{HalfLife: 1e6 * time.Hour})
	e := newEngine(1, b)
	e.run(50_000)
	e.drain()
	known := b.profile(e.target).known
	if known.slow[octave(4)].K == 0 {
		t.Fatal("there is no slow copy")
	}
	bare := known
	bare.slow = [numOctaves]rowSums{}
	with, without := newCurve(&known, nil, 0.1), newCurve(&bare, nil, 0.1)
	for n := 1; n <= 60; n++ {
		within(t, "TPS with a slow copy of the same", with.TPS(n), without.TPS(n), 1e-4)
	}
}

// TestSlowCopyBeatsThePrior: a prior that is wrong by half at 30 counts little
// beside what was seen there and has been forgotten by the rows.
func TestSlowCopyBeatsThePrior(t *testing.T) {
	b := NewBook(Options{})
	e := newEngine(2, b)
	b.Prior(e.target, []PriorPoint{{1, 90}, {4, 80}, {16, 70}, {64, 60}}, 0) // much flatter than the engine
	e.run(200_000)
	e.quiet()
	e.lasting(30*time.Minute, func() bool { return false })
	known := b.profile(e.target).known
	pr := b.profile(e.target).prior
	c := newCurve(&known, pr, startMargin)
	if off := 100 * math.Abs(c.TPS(30)*e.fit.tpot(30, c.At(30).P)-1); off > 3 {
		t.Errorf("beside a wrong prior 30 is off by %.1f %%, want at most 3", off)
	}
}

func TestOctaves(t *testing.T) {
	for _, c := range []struct {
		n    float64
		want int
	}{{math.NaN(), 0}, {-3, 0}, {0, 0}, {1, 0}, {1.99, 0}, {2, 1}, {3.9, 1}, {4, 2}, {30, 4}, {maxLevel, numOctaves - 1}, {math.Inf(1), numOctaves - 1}} {
		if got := octave(c.n); got != c.want {
			t.Errorf("octave(%v) = %d, want %d", c.n, got, c.want)
		}
	}
}

// A target is stored in a bounded number of fields, whatever was visited.
func TestStoredFieldsAreBounded(t *testing.T) {
	fields := map[string]float64{}
	for i := range NumBins {
		fields[storedBins[i][0]] = 1
	}
	for i := range numOctaves {
		fields[storedSlow[i][0]] = 1
	}
	fields[storedRows[0]], fields[storedTotals[0]] = 1, 1
	s := SumsFrom(fields, start)
	count := 0
	for _, g := range s.Groups() {
		count += len(g.Fields)
	}
	if count < 500 || count > 1300 {
		t.Errorf("a full target has %d fields, want at most 1300", count)
	}
	if back := SumsFrom(named(&s), start); back != s {
		t.Error("the fields do not read back as the sums")
	}
}

// named returns the stored form of s.
func named(s *Sums) map[string]float64 {
	m := map[string]float64{}
	for _, g := range s.Groups() {
		for _, f := range g.Fields {
			m[f.Name] = f.Value
		}
	}
	return m
}
