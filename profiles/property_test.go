package profiles

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anySums draws sums that a store may hold: those of streams, or anything at
// all.
func anySums(t *rapid.T) Sums {
	fields := map[string]float64{}
	value := rapid.Float64Range(0, 1e6)
	if rapid.Bool().Draw(t, "hostile") {
		value = rapid.Float64()
	}
	for range rapid.IntRange(0, 12).Draw(t, "bins") {
		for _, name := range storedBins[rapid.IntRange(0, NumBins-1).Draw(t, "bin")] {
			fields[name] = value.Draw(t, name)
		}
	}
	if rapid.Bool().Draw(t, "rows") {
		for _, name := range storedRows {
			fields[name] = value.Draw(t, name)
		}
	}
	for _, name := range storedTotals {
		fields[name] = value.Draw(t, name)
	}
	return SumsFrom(fields, start)
}

// realSums draws the sums of a noisy engine.
func realSums(t *rapid.T) Sums {
	f := Fit{
		A: rapid.Float64Range(1e-4, 0.1).Draw(t, "a"), B: rapid.Float64Range(0, 0.01).Draw(t, "b"),
		C: rapid.Float64Range(0, 0.01).Draw(t, "c"), D: rapid.Float64Range(0, 1e-4).Draw(t, "d"),
	}
	var s Sums
	for range rapid.IntRange(1, 10).Draw(t, "levels") {
		noisy := f
		noisy.A *= rapid.Float64Range(0.3, 3).Draw(t, "noise")
		steps := rapid.Float64Range(0.1, 5000).Draw(t, "steps")
		load := rapid.Float64Range(0, 500).Draw(t, "load")
		level := rapid.IntRange(1, 300).Draw(t, "n")
		s.Add(Delta{Sums: sumsOf(noisy, even(steps, level), func(int) float64 { return load })}, 0)
	}
	return s
}

func anyPrior(t *rapid.T) *prior {
	var points []PriorPoint
	for range rapid.IntRange(0, 4).Draw(t, "points") {
		points = append(points, PriorPoint{rapid.IntRange(-1, 9000).Draw(t, "n"), rapid.Float64().Draw(t, "tps")})
	}
	return newPrior(points)
}

func TestBoundNeverRises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := realSums(t)
		if rapid.Bool().Draw(t, "any") {
			s = anySums(t)
		}
		c := newCurve(&s, anyPrior(t), 1, rapid.Float64Range(0.01, 0.5).Draw(t, "margin"))
		last := math.Inf(1)
		for n := 0; n <= len(c.low)+2; n++ {
			low := c.Low(n, 0)
			if !(low >= 0) || low > last {
				t.Fatalf("low(%d) = %v after %v", n, low, last)
			}
			last = low
		}
		if c.Low(len(c.low)+1, 0) != 0 {
			t.Fatalf("low beyond the table is %v", c.Low(len(c.low)+1, 0))
		}
		n := rapid.IntRange(1, max(len(c.low), 1)).Draw(t, "at")
		last = math.Inf(1)
		for _, extra := range []float64{0, 1, 10, 1e3, 1e6, 1e300} {
			low := c.Low(n, extra)
			if !(low >= 0) || low > last {
				t.Fatalf("low(%d) with %v prompt tokens = %v after %v", n, extra, low, last)
			}
			last = low
		}
	})
}

func TestNeverNaN(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySums(t)
		c := newCurve(&s, anyPrior(t), 1, 0.1)
		for _, n := range []int{-1, 0, 1, 2, 7, 60, 500, 8192, 8193, 1 << 40} {
			tps := c.TPS(n)
			if c.Known() && (!finite(tps) || tps <= 0) || !c.Known() && !math.IsNaN(tps) {
				t.Fatalf("known %v, TPS(%d) = %v", c.Known(), n, tps)
			}
			p := c.AtRho(n, rapid.Float64().Draw(t, "rho"))
			if c.Known() && (!finite(p.TPS) || !finite(p.Low) || !finite(p.P)) {
				t.Fatalf("point %+v", p)
			}
		}
		for _, x := range []float64{c.Rho(), c.MeanOutput(), c.Tokens(), c.Steps(), c.fit.A, c.fit.B, c.fit.C, c.fit.D} {
			if !finite(x) {
				t.Fatalf("a total is %v: %+v", x, c.fit)
			}
		}
	})
}

func TestGroupsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySums(t)
		fields := map[string]float64{}
		for _, g := range s.Groups() {
			for _, f := range g.Fields {
				if _, twice := fields[f.Name]; twice {
					t.Fatalf("field %s is there twice", f.Name)
				}
				fields[f.Name] = f.Value
			}
		}
		if got := SumsFrom(fields, s.Updated); got != s {
			t.Fatalf("got %+v, want %+v", got, s)
		}
	})
}

func TestMergeHasNoOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := Delta{Sums: realSums(t)}, Delta{Sums: realSums(t)}, Delta{Sums: realSums(t)}
		var left, right, bc Sums
		for _, d := range []Delta{a, b, c} {
			left.Add(d, 0)
		}
		bc.Add(c, 0)
		bc.Add(b, 0)
		right.Add(Delta{Sums: bc}, 0)
		right.Add(a, 0)
		for i := range left.bins {
			for j, f := range left.bins[i].fields() {
				if !near(*f, *right.bins[i].fields()[j]) {
					t.Fatalf("%s: %v or %v", storedBins[i][j], *f, *right.bins[i].fields()[j])
				}
			}
		}
		for j, f := range left.rows.fields() {
			if !near(*f, *right.rows.fields()[j]) {
				t.Fatalf("%s: %v or %v", storedRows[j], *f, *right.rows.fields()[j])
			}
		}
	})
}

// TestTimeScalesTheCurve: an engine that takes twice as long for everything is
// half as fast at every n.
func TestTimeScalesTheCurve(t *testing.T) {
	learn := func(scale time.Duration) *Curve {
		b := newBench(t).calibrated(1, 1)
		var from time.Duration
		for n := 1; n <= 12; n++ {
			b.occ.Set(start.Add(from), n)
			s := b.open(Open{Sent: start.Add(from)})
			from = steady(s, from, scale*time.Duration(5+n)*ms, 200)
			s.Close(start.Add(from), true)
		}
		b.book.Fold(start.Add(from + time.Minute))
		return b.book.Curve(target)
	}
	one, two := learn(1), learn(2)
	for n := 1; n <= 20; n++ {
		// Windows stay 5 s long, so the rows are not quite the same ones.
		within(t, "TPS of the slower engine", two.TPS(n), one.TPS(n)/2, 0.03)
	}
}

// TestOrderAtOneInstantIsIrrelevant: streams that arrive at one instant, in
// any order among themselves and with the changes of n, teach the same.
func TestOrderAtOneInstantIsIrrelevant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type event struct {
			stream int // −1: n changes
			n      int
		}
		var instants [][]event
		for range rapid.IntRange(8, 40).Draw(t, "instants") {
			events := []event{{stream: 0}, {stream: 1}, {stream: 2}}
			if rapid.Bool().Draw(t, "change") {
				events = append(events, event{-1, rapid.IntRange(1, 9).Draw(t, "n")})
			}
			instants = append(instants, events)
		}
		learn := func(shuffled bool) [NumBins]binSums {
			b := newBench(nil).calibrated(1, 1)
			b.occ.Set(start, 3)
			var streams [3]*Stream
			for i := range streams {
				streams[i] = b.open(Open{})
			}
			var now time.Time
			for i, events := range instants {
				now = start.Add(time.Duration(i+1) * 30 * ms)
				if shuffled {
					events = rapid.Permutation(events).Draw(t, "order")
				}
				for _, e := range events {
					if e.stream < 0 {
						b.occ.Set(now, e.n)
					} else {
						streams[e.stream].Read(now, 1)
					}
				}
			}
			for _, s := range streams {
				s.Close(now, true)
			}
			return *b.bins()
		}
		one, two := learn(false), learn(true)
		for i := range one {
			for j, f := range one[i].fields() {
				if !near(*f, *two[i].fields()[j]) {
					t.Fatalf("%s: %v or %v", storedBins[i][j], *f, *two[i].fields()[j])
				}
			}
		}
	})
}

// TestHostileStream throws anything at a stream and looks for a number that is
// none.
func TestHostileStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(nil).calibrated(1, 1)
		s := b.open(Open{PromptTokens: rapid.Int().Draw(t, "prompt"), Sequences: rapid.IntRange(-2, 2).Draw(t, "sequences")})
		instant := func() time.Time {
			return start.Add(time.Duration(rapid.Int64Range(-1e10, 1e11).Draw(t, "at")))
		}
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0, 1:
				s.Read(instant(), rapid.IntRange(-3, 1000).Draw(t, "chunks"))
			case 2:
				b.occ.Set(instant(), rapid.IntRange(-3, 100000).Draw(t, "n"))
			case 3:
				s.Blocked()
			case 4:
				any := rapid.Int()
				s.Usage(Usage{any.Draw(t, "p"), any.Draw(t, "cached"), any.Draw(t, "c"), any.Draw(t, "r")})
			case 5:
				b.book.Fold(instant())
			}
		}
		sum := s.Close(instant(), rapid.Bool().Draw(t, "complete"))
		if sum.Measured && (!finite(sum.TPS) || sum.TPS < 0) || !finite(sum.Tokens) || !finite(sum.MeanN) || sum.Tokens < 0 || sum.Decode < 0 {
			t.Fatalf("summary %+v", sum)
		}
		b.book.Fold(start.Add(time.Hour))
		b.book.Fold(start.Add(2 * time.Hour))
		for i, bin := range b.book.profile(target).known.bins {
			for j, f := range bin.fields() {
				if !finite(*f) {
					t.Fatalf("%s = %v", storedBins[i][j], *f)
				}
			}
		}
		if c := b.book.Curve(target); c.Known() && !finite(c.TPS(3)) {
			t.Fatalf("TPS(3) = %v", c.TPS(3))
		}
	})
}
