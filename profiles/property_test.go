package profiles

import (
	"maps"
	"math"
	"slices"
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
		value = rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, 5e-324, maxSum}))
	}
	for range rapid.IntRange(0, 12).Draw(t, "bins") {
		for _, name := range storedBins[rapid.IntRange(0, NumBins-1).Draw(t, "bin")] {
			fields[name] = value.Draw(t, name)
		}
	}
	groups := [][]string{storedRows, storedTotals, storedFirsts, storedKnee, storedDeliveries}
	for range rapid.IntRange(0, 3).Draw(t, "slow octaves") {
		groups = append(groups, storedSlow[rapid.IntRange(0, numOctaves-1).Draw(t, "octave")])
	}
	for _, names := range groups {
		if rapid.Bool().Draw(t, "there") {
			for _, name := range names {
				fields[name] = value.Draw(t, name)
			}
		}
	}
	s := SumsFrom(fields, start)
	if rapid.Bool().Draw(t, "queued") { // no draw of each by itself makes a knee
		late, n := rapid.Float64Range(minLate, 100).Draw(t, "late"), rapid.Float64Range(1, maxLevel).Draw(t, "slots")
		s.knee = kneeSums{T: 1, Late: late, N: late * n, NN: late * n * n}
	}
	return s
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
		c := newCurve(&s, anyPrior(t), rapid.Float64Range(0.01, 0.5).Draw(t, "margin"))
		last := math.Inf(1)
		for n := 0; n <= c.top+2; n++ {
			low := c.Low(n, 0)
			if !(low >= 0) || low > last {
				t.Fatalf("low(%d) = %v after %v", n, low, last)
			}
			last = low
		}
		if c.Low(c.top+1, 0) != 0 {
			t.Fatalf("low beyond the table is %v", c.Low(c.top+1, 0))
		}
		n := rapid.IntRange(1, max(c.top, 1)).Draw(t, "at")
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
		c := newCurve(&s, anyPrior(t), 0.1)
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
		first := newTTFT(&s, c)
		m, prompt := rapid.IntRange(0, 1e6).Draw(t, "m"), rapid.IntRange(-1, 1e9).Draw(t, "prompt")
		ahead := Ahead{Known: true, PromptTokens: prompt, Sequences: m}
		for _, x := range []float64{first.Predict(Ahead{}, prompt), first.Predict(ahead, prompt), first.QueueBound(m)} {
			if !finite(x) || x < 0 {
				t.Fatalf("a first token takes %v s by %+v", x, first)
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

// valuesOf returns every sum of s by its stored name, and the occupied seconds
// of its group.
func valuesOf(s *Sums) (values, occupied map[string]float64) {
	values, occupied = map[string]float64{}, map[string]float64{}
	for _, g := range s.Groups() {
		for _, f := range g.Fields {
			values[f.Name], occupied[f.Name] = f.Value, g.Occupied
		}
	}
	return values, occupied
}

// realDelta draws what one fold may hand over.
func realDelta(t *rapid.T) Delta {
	d := Delta{Sums: realSums(t)}
	s := &d.Sums
	for _, f := range slices.Concat(s.totals.fields(), s.firsts.fields(), s.knee.fields(), s.deliveries.fields(), s.slow[3].fields()) {
		*f = rapid.Float64Range(0, 1e4).Draw(t, "sum")
	}
	d.Sums.Updated = start.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "updated")) * time.Second)
	return d
}

// TestMergeHasNoOrder: without forgetting, merging is associative and
// commutative.
func TestMergeHasNoOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := realDelta(t), realDelta(t), realDelta(t)
		var left, right, bc Sums
		for _, d := range []Delta{a, b, c} {
			left.Add(d, 0)
		}
		bc.Add(c, 0)
		bc.Add(b, 0)
		right.Add(Delta{Sums: bc}, 0)
		right.Add(a, 0)
		want, _ := valuesOf(&left)
		got, _ := valuesOf(&right)
		if len(got) != len(want) || !right.Updated.Equal(left.Updated) {
			t.Fatalf("%d sums as of %v, or %d as of %v", len(got), right.Updated, len(want), left.Updated)
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if !near(got[name], want[name]) {
				t.Fatalf("%s: %v or %v", name, got[name], want[name])
			}
		}
	})
}

// TestForgettingHasNoOrderToFirstOrder: with forgetting, what was there before
// fades the same in any order of merging, and what is merged differs by no more
// than the share that the deltas' own occupied time may forget.
func TestForgettingHasNoOrderToFirstOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		halfLife := time.Duration(rapid.Float64Range(1, 1e5).Draw(t, "halfLife") * float64(time.Second))
		before := realSums(t)
		deltas := []Delta{realDelta(t), realDelta(t), realDelta(t)}
		left, right := before, before
		var all Sums
		for _, d := range deltas {
			left.Add(d, halfLife)
			all.Add(d, 0)
		}
		for _, d := range rapid.Permutation(deltas).Draw(t, "order") {
			right.Add(d, halfLife)
		}
		old, _ := valuesOf(&before)
		added, occupied := valuesOf(&all)
		want, _ := valuesOf(&left)
		got, _ := valuesOf(&right)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			faded := old[name] * math.Exp2(-occupied[name]/halfLife.Seconds())
			if low, high := faded, faded+added[name]; got[name] < low-1e-9*(1+low) || got[name] > high+1e-9*(1+high) {
				t.Fatalf("%s is %v, want %v of old and at most %v of new", name, got[name], faded, added[name])
			}
			loss := -math.Expm1(-math.Ln2 * occupied[name] / halfLife.Seconds())
			if off := math.Abs(got[name] - want[name]); off > loss*added[name]+1e-9*(1+want[name]) {
				t.Fatalf("%s: %v or %v, which differ by more than %v of the %v merged", name, got[name], want[name], loss, added[name])
			}
		}
	})
}

// slowed is s as it would be had everything taken k times as long.
func slowed(s Sums, k float64) Sums {
	for i := range s.bins {
		b := &s.bins[i]
		b.S, b.T, b.SS, b.SY = b.S*k, b.T*k, b.SS*k*k, b.SY*k
		b.Tq, b.Td, b.Vq = b.Tq*k, b.Td*k, b.Vq*k*k
	}
	r := &s.rows
	for _, f := range r.fields()[:10] { // Σ w·x·xᵀ, and a weight is 1/seconds²
		*f /= k * k
	}
	r.B0, r.B1, r.B2, r.B3, r.T = r.B0/k, r.B1/k, r.B2/k, r.B3/k, r.T*k
	s.totals.T *= k
	return s
}

// TestTimeScalesTheCurve: an engine that takes k times as long for everything
// is 1/k as fast at every n, and so is the bound. Only decoding: what a prompt
// token is taken to cost before any was seen is in seconds.
func TestTimeScalesTheCurve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Fit{
			A: rapid.Float64Range(1e-3, 0.1).Draw(t, "a"), B: rapid.Float64Range(0, 0.01).Draw(t, "b"),
			C: rapid.Float64Range(0, 0.01).Draw(t, "c"),
		}
		var s Sums
		for range rapid.IntRange(1, 10).Draw(t, "levels") {
			noisy := f
			noisy.A *= rapid.Float64Range(0.3, 3).Draw(t, "noise")
			s.Add(Delta{Sums: sumsOf(noisy, even(rapid.Float64Range(0.1, 5000).Draw(t, "steps"), rapid.IntRange(1, 300).Draw(t, "n")), flat)}, 0)
		}
		k := rapid.Float64Range(0.1, 10).Draw(t, "k")
		slow := slowed(s, k)
		one, other := newCurve(&s, nil, 0.1), newCurve(&slow, nil, 0.1)
		if one.Known() != other.Known() || one.top != other.top {
			t.Fatalf("known %v up to %d, slowed %v up to %d", one.Known(), one.top, other.Known(), other.top)
		}
		for n := 1; n <= one.top; n++ {
			if got, want := other.TPS(n)*k, one.TPS(n); math.Abs(got-want) > 1e-6*want {
				t.Fatalf("TPS(%d) of an engine slowed by %v is %v, times that %v, want %v", n, k, other.TPS(n), got, want)
			}
			if got, want := other.Low(n, 0)*k, one.Low(n, 0); math.Abs(got-want) > 1e-6*want {
				t.Fatalf("low(%d) of an engine slowed by %v is %v, times that %v, want %v", n, k, other.Low(n, 0), got, want)
			}
		}
	})
}

// TestTimeScalesTheEvidence: the same tokens at k times the gaps are the same
// tokens, steps and moments in k times the seconds.
func TestTimeScalesTheEvidence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type arrival struct {
			gap       time.Duration
			n, chunks int
		}
		var arrivals []arrival
		for range rapid.IntRange(5, 60).Draw(t, "arrivals") {
			arrivals = append(arrivals, arrival{
				time.Duration(rapid.IntRange(10, 300).Draw(t, "gap")) * ms,
				rapid.IntRange(1, 40).Draw(t, "n"), rapid.IntRange(1, 3).Draw(t, "chunks"),
			})
		}
		learn := func(k time.Duration) *[NumBins]binSums {
			b := newBench(nil).calibrated(1, 1)
			s := b.open(Open{})
			now := start
			for _, a := range arrivals {
				now = now.Add(k * a.gap / 2)
				b.occ.Set(now, a.n) // in the midst of the gap
				now = now.Add(k * a.gap / 2)
				s.Read(now, a.chunks)
			}
			s.Close(now, true)
			return b.bins()
		}
		k := rapid.IntRange(2, 9).Draw(t, "k")
		one, other := learn(1), learn(time.Duration(k))
		for i := range one {
			got, want := &other[i], &one[i]
			if !near(got.S, want.S*float64(k)) || !near(got.T, want.T*float64(k)) ||
				!near(got.Y, want.Y) || !near(got.K, want.K) || !near(got.R, want.R) || !near(got.N, want.N) {
				t.Fatalf("bin %d at %d times the gaps is %+v, want the tokens of %+v in %d times the seconds", i, k, got, want, k)
			}
		}
	})
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
			for range rapid.IntRange(0, 3).Draw(t, "more") { // several chunks of a stream at once
				events = append(events, event{stream: rapid.IntRange(0, 2).Draw(t, "stream")})
			}
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
		if rapid.Bool().Draw(t, "collects") {
			b = collecting(nil)
		}
		s := b.open(Open{PromptTokens: rapid.Int().Draw(t, "prompt"), Sequences: rapid.IntRange(-2, 2).Draw(t, "sequences")})
		instant := func() time.Time {
			return start.Add(time.Duration(rapid.Int64Range(-1e10, 1e11).Draw(t, "at")))
		}
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			switch rapid.IntRange(0, 6).Draw(t, "event") {
			case 6:
				s.Text(rapid.IntRange(-3, 1<<40).Draw(t, "text"))
				s.ReadCounted(instant(), 1, rapid.IntRange(0, 1<<40).Draw(t, "total"))
			case 0, 1:
				s.Read(instant(), rapid.IntRange(-3, 1000).Draw(t, "chunks"))
			case 2:
				b.occ.Set(instant(), rapid.IntRange(-3, 100000).Draw(t, "n"))
			case 3:
				s.Blocked()
			case 4:
				any := rapid.Int()
				s.Usage(Usage{any.Draw(t, "p"), any.Draw(t, "cached"), any.Draw(t, "c"), any.Draw(t, "r"), 0, 0})
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

// TestHostileStore lets a store answer anything between the folds of a working
// book, and looks for a number that is none: in the curve, in what is known,
// and in what the book would hand over next.
func TestHostileStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(nil)
		now := start
		b.occ.Set(now, 3)
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			sums := anySums(t)
			b.book.Apply(now, map[Target]Sums{target: sums}, nil)
			s := b.open(Open{Sent: now, PromptTokens: rapid.IntRange(0, 5000).Draw(t, "prompt")})
			for range 40 {
				now = now.Add(time.Duration(rapid.IntRange(1, 1000).Draw(t, "gap")) * ms)
				s.Read(now, 1)
			}
			s.Usage(Usage{PromptTokens: rapid.IntRange(0, 5000).Draw(t, "p"), CompletionTokens: 40})
			s.Close(now, true)
			for _, d := range b.book.Fold(now) {
				checkFinite(t, "handed over", &d.Sums)
			}
			checkFinite(t, "known", &b.book.profile(target).known)
			c := b.book.Curve(target)
			if g := c.Scale(); !(g >= math.Exp(-mostPace) && g <= math.Exp(mostPace)) {
				t.Fatalf("g is %v", g)
			}
			for _, n := range []int{1, 3, 8192} {
				if p := c.At(n); c.Known() && !(finite(p.TPS) && finite(p.Low) && finite(p.P)) {
					t.Fatalf("point %+v", p)
				}
			}
			if x := c.SecondsPerPromptToken(); !finite(x) || x < 0 {
				t.Fatalf("a prompt token costs %v s", x)
			}
		}
	})
}

func checkFinite(t *rapid.T, what string, s *Sums) {
	values, _ := valuesOf(s)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if v := values[name]; !finite(v) {
			t.Fatalf("%s: %s is %v", what, name, v)
		}
	}
}
