package profiles

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// ratios are streams by what they delivered of what was predicted.
func ratios(counts map[float64]int) (d deliverySums) {
	for ratio, n := range counts {
		for range n {
			d.see(ratio, 1)
		}
	}
	return d
}

func TestMarginByHand(t *testing.T) {
	for _, test := range []struct {
		name       string
		streams    map[float64]int
		attainment float64
		want       float64
	}{
		{"no stream", nil, 0.99, 0.10},
		{"too few to tell", map[float64]int{1: 27}, 0.99, 0.10},
		{"a hundred that kept it", map[float64]int{1: 100}, 0.99, 0.05 * math.Log(2)},
		{"a hundred, the worst at 4 %", map[float64]int{math.Exp(-0.0351): 1, 1: 99}, 0.99, 1 - math.Exp(-0.04) + 0.05*math.Log(2)},
		{"enough", map[float64]int{1: 200}, 0.99, 0.02},
		{"twice as much is asked", map[float64]int{1: 200}, 0.995, 0.05 * math.Log(2)},
		{"less is asked", map[float64]int{1: 20}, 0.9, 0.02},
		// Of 1000 streams 10 may be below; with an error of √7, 6.3 are sure not to be more.
		{"six at 6 %", map[float64]int{math.Exp(-0.0651): 6, 1: 994}, 0.99, 0.02},
		{"seven at 6 %", map[float64]int{math.Exp(-0.0651): 7, 1: 993}, 0.99, 1 - math.Exp(-0.07+0.01*6.298/7)},
		{"most at 5 %", map[float64]int{math.Exp(-0.0551): 900, 1: 100}, 0.99, 0.058},
		// 14.3 of 1000 may be below by chance.
		{"fourteen at 15 %", map[float64]int{math.Exp(-0.1651): 14, 1: 986}, 0.99, 0.10},
		{"thirty at 15 %", map[float64]int{math.Exp(-0.1651): 30, 1: 970}, 0.99, 1 - math.Exp(-0.17+0.01*14.317/30)},
		{"two of fifty", map[float64]int{0.5: 2, 1: 48}, 0.99, 0.10},
		{"three of fifty", map[float64]int{0.5: 3, 1: 47}, 0.99, 0.20},
		{"half of them nowhere near", map[float64]int{0.1: 500, 1: 500}, 0.99, 0.20},
	} {
		d := ratios(test.streams)
		if got := d.margin(test.attainment, false).all; math.Abs(got-test.want) > 0.001 {
			t.Errorf("%s: the margin is %.4f, want %.4f", test.name, got, test.want)
		}
	}
}

// Where chunks hold several tokens two hundred streams have to finish.
func TestMarginOfARoughCount(t *testing.T) {
	for streams, want := range map[int]float64{100: 0.10, 199: 0.10, 200: 0.02} {
		d := ratios(map[float64]int{1: streams})
		if got := d.margin(0.99, true).all; math.Abs(got-want) > 0.001 {
			t.Errorf("%d streams: the margin is %.4f, want %.4f", streams, got, want)
		}
	}
}

// TestMarginIsAQuantile: of many streams the margin is the quantile, within
// the bounds and up to a bucket above, and never NaN whatever a store holds.
func TestMarginIsAQuantile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d deliverySums
		spread := rapid.Float64Range(0.001, 0.12).Draw(t, "spread")
		for i := range 20_000 {
			d.see(1-spread*2*float64(i)/20_000, 1) // even between 1 and 1 − 2·spread
		}
		want := min(max(2*spread*0.99, leastMargin), mostMargin)
		if got := d.margin(0.99, false).all; got < want-0.002 || got > want+deliveryWidth {
			t.Fatalf("even between 0 and %.3f: the margin is %.4f, want %.4f", 2*spread, got, want)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		var d deliverySums
		for i := range d.Streams {
			d.Streams[i] = rapid.Float64Range(-maxSum, maxSum).Draw(t, "streams")
		}
		if got := d.margin(rapid.Float64Range(0.001, 0.999).Draw(t, "attainment"), false).all; !(got >= leastMargin && got <= mostMargin) {
			t.Fatalf("the margin is %v", got)
		}
	})
}

// marginBench is a target that has seen 10,000 steps at n = 1, of 50 ms each.
func marginBench(t *testing.T) *bench {
	b := newBench(t).calibrated(1, 1)
	s := sumsOf(Fit{A: 0.05}, even(10_000, 1), flat)
	b.book.profile(target).known.Add(Delta{Sums: s}, 0)
	b.book.Fold(start.Add(time.Millisecond))
	known := b.book.profile(target).known
	b.book.profile(target).draw(&known, margins{all: 0.1})
	b.occ.Set(start, 1)
	return b
}

// streams is how many streams taught the margin.
func (b *bench) streams() (count float64) {
	d := b.book.profile(target).fold.deliveries
	for _, n := range d.Streams {
		count += n
	}
	return count
}

// uncalibrated forgets how many tokens a chunk holds.
func uncalibrated(b *bench) {
	p := b.book.profile(target)
	p.known.totals, p.fold.totals = totals{}, totals{}
}

func TestWhatTeachesTheMargin(t *testing.T) {
	for _, test := range []struct {
		name   string
		sooner func(b *bench)
		play   func(s *Stream) (end time.Duration, complete bool)
		open   Open
		counts float64
	}{
		{name: "a stream", counts: 1},
		{name: "an abort", counts: 1, play: func(s *Stream) (time.Duration, bool) {
			return steady(s, 0, 50*ms, 61) + 40*time.Second, false // what follows the last token is no decoding
		}},
		{name: "a short one", play: func(s *Stream) (time.Duration, bool) { return steady(s, 0, 50*ms, 50), true }},
		{name: "several sequences", open: Open{Sequences: 2}},
		{name: "a client that blocked", play: func(s *Stream) (time.Duration, bool) {
			steady(s, 0, 50*ms, 61)
			s.Blocked()
			return steady(s, 4*time.Second, 50*ms, 61), true
		}},
		{name: "chunks of several tokens, no usage", sooner: func(b *bench) { b.calibrated(300, 100) }},
		{name: "chunks of several tokens, with usage", counts: 1, sooner: func(b *bench) { b.calibrated(300, 100) }, play: func(s *Stream) (time.Duration, bool) {
			end := steady(s, 0, 50*ms, 61)
			s.Usage(Usage{CompletionTokens: 61})
			return end, true
		}},
		{name: "a count that ran away, with usage", play: func(s *Stream) (time.Duration, bool) {
			end := counting(s, 0, 50*ms, growing(1, 17, 61)...)
			s.Usage(Usage{CompletionTokens: 61})
			return end, true
		}},
		{name: "tokens that nobody counted", sooner: uncalibrated},
		{name: "tokens that the backend counts at every chunk", counts: 1, sooner: uncalibrated, play: func(s *Stream) (time.Duration, bool) {
			return counting(s, 0, 50*ms, growing(1, 1, 61)...), true
		}},
		{name: "a backend that drifts", sooner: func(b *bench) { b.book.profile(target).group.drift.slow = driftAlarm }},
		{name: "a backend that has just become slower", sooner: func(b *bench) { b.book.profile(target).group.drift.rest(driftWindows) }},
		{name: "levels that were not seen", sooner: func(b *bench) { b.occ.Set(start, 5) }},
		{name: "levels seen as little as this", sooner: func(b *bench) {
			p := b.book.profile(target)
			s := sumsOf(Fit{A: 0.05}, even(400, 1), flat)
			p.draw(&s, margins{all: 0.1})
		}},
	} {
		b := marginBench(t)
		if test.sooner != nil {
			test.sooner(b)
		}
		s := b.open(test.open)
		end, complete := 3*time.Second, true
		if test.play != nil {
			end, complete = test.play(s)
		} else {
			steady(s, 0, 50*ms, 61)
		}
		s.Close(start.Add(end), complete)
		if got := b.streams(); got != test.counts {
			t.Errorf("%s counts %v times, want %v", test.name, got, test.counts)
		}
	}
}

// TestPredictedForTheLevelsLivedAt: half the time at 20 tokens/s, half of it at
// 10, is predicted to be 15, whatever n was at the start; slower by a tenth,
// 0.9 of it was delivered.
func TestPredictedForTheLevelsLivedAt(t *testing.T) {
	b := marginBench(t)
	s := sumsOf(Fit{A: 1e-9, C: 0.05}, even(1e6, 1, 2), flat)
	b.book.profile(target).draw(&s, margins{all: 0.1})
	st := b.open(Open{})
	steady(st, 0, 55555*time.Microsecond, 37) // 2 s at n = 1
	b.occ.Set(start.Add(2*time.Second), 2)
	last := steady(st, 2*time.Second+111111*time.Microsecond, 111111*time.Microsecond, 18) // 2 s at n = 2
	sum := st.Close(start.Add(last), true)
	within(t, "predicted", sum.Predicted, 15, 0.002)
	within(t, "delivered over predicted", sum.TPS/sum.Predicted, 0.9, 0.002)
	if d := b.book.profile(target).fold.deliveries; d.Streams[1+13] != 1 { // ln 0.9 = −0.105
		t.Errorf("buckets %v, want one stream at 0.9", d.Streams)
	}
}

// TestACountThatRanAwayPredictsNothing: what was booked by it is not in the
// tokens that the stream turns out to have had.
func TestACountThatRanAwayPredictsNothing(t *testing.T) {
	b := marginBench(t)
	st := b.open(Open{})
	end := counting(st, 0, 50*ms, growing(1, 17, 61)...)
	st.Usage(Usage{CompletionTokens: 61})
	sum := st.Close(start.Add(end), true)
	within(t, "tokens/s", sum.TPS, 20, 0.01)
	if sum.Predicted != 0 {
		t.Errorf("predicted %v tokens/s, want nothing", sum.Predicted)
	}
}

// TestGraceIsTakenOff: with a second of grace, four seconds at nine tenths of
// the speed keep a floor of 0.9·4/3 of it.
func TestGraceIsTakenOff(t *testing.T) {
	d := delivery{booked: 90, expected: 100, seconds: 4}
	within(t, "kept without grace", d.kept(1, 0), 0.9, 1e-9)
	within(t, "kept", d.kept(1, 1), 1.2, 1e-9)
	if got := d.kept(1, 5); !math.IsInf(got, 1) {
		t.Errorf("within its grace a stream keeps %v, want any floor", got)
	}
	// Three seconds at nine tenths of the speed.
	for grace, bucket := range map[time.Duration]int{0: 1 + 13, 100 * ms: 1 + 16, 3 * time.Second: numDeliveries - 1} { // ln 0.9 = −0.105, ln(0.9·3/2.9) = −0.071
		b := marginBench(t)
		b.book.Attain(target.GroupID(), 0.99, grace)
		s := b.open(Open{})
		s.Close(start.Add(steady(s, 0, 55555*time.Microsecond, 55)), true)
		if d := b.book.profile(target).fold.deliveries; d.Streams[bucket] != 1 {
			t.Errorf("with a grace of %v: buckets %v, want one stream in bucket %d", grace, d.Streams, bucket)
		}
	}
}

// TestMarginOfABackend: the streams of all its models and replicas make one
// margin, which the store keeps; another backend has its own.
func TestMarginOfABackend(t *testing.T) {
	second, other := Target{Backend: target.Backend, Model: "second"}, Target{Backend: "other", Model: "m"}
	b := NewBook(Options{})
	b.Ensure(target, second, other)
	b.Fold(start)
	for _, p := range []Target{target, second} {
		b.profile(p).fold.deliveries = ratios(map[float64]int{0.951: 1, 1: 149})
	}
	b.profile(other).fold.deliveries = ratios(map[float64]int{0.85: 100, 1: 50})
	deltas := b.Fold(start.Add(time.Second))
	b.Fold(start.Add(2 * time.Second))
	margins := func(b *Book) [3]float64 {
		return [3]float64{b.Curve(target).Margin(), b.Curve(second).Margin(), b.Curve(other).Margin()}
	}
	want := [3]float64{0.055, 0.055, 0.156} // of 300 and 150 streams, 0.7 and 4.1 may be below
	got := margins(b)
	for i := range want {
		if math.Abs(got[i]-want[i]) > 0.0011 {
			t.Errorf("margins %v, want about %v", got, want)
		}
	}
	sums := map[Target]Sums{}
	for _, d := range deltas {
		var s Sums
		s.Add(d, 600*time.Second)
		fields := map[string]float64{}
		for _, g := range s.Groups() {
			for _, f := range g.Fields {
				fields[f.Name] = f.Value
			}
		}
		sums[d.Target] = SumsFrom(fields, s.Updated)
	}
	fresh := NewBook(Options{})
	fresh.Ensure(target, second, other)
	fresh.Apply(start, sums, nil)
	if again := margins(fresh); again != got {
		t.Errorf("from the store margins are %v, want %v", again, got)
	}
	fixed := NewBook(Options{Margin: 0.07})
	fixed.Ensure(target)
	fixed.Apply(start, sums, nil)
	if got := fixed.Curve(target).Margin(); got != 0.07 {
		t.Errorf("a margin that was set is %v, want 0.07", got)
	}
	b.Attain(other.GroupID(), 0.2, 0) // four of five may fall below
	b.Fold(start.Add(3 * time.Second))
	if got := b.Curve(other).Margin(); got > 0.1 {
		t.Errorf("the margin where one of five streams counts is %v, want 0.10 or less", got)
	}
}

// TestDeliveriesFadeSlowly: after three hours of decoding they count half.
func TestDeliveriesFadeSlowly(t *testing.T) {
	var s, d Sums
	s.deliveries = ratios(map[float64]int{1: 100})
	d.deliveries.T = 3 * 3600
	s.Add(Delta{Sums: d}, 600*time.Second)
	within(t, "streams after three hours", s.deliveries.Streams[numDeliveries-1], 50, 1e-9)
	groups := d.Groups()
	if len(groups) != 1 || !near(groups[0].Occupied, 600) {
		t.Errorf("stored as %+v, want one group with 600 s", groups)
	}
}
