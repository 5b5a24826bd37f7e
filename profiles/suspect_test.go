package profiles

import (
	"math"
	"testing"
	"time"
)

// What was seen since an engine changed is as slow as measured, and only what was
// seen before it is shifted: in the bins, and in the rows that make the fit.
func TestAShiftSparesWhatCameAfterTheChange(t *testing.T) {
	before, after := Fit{A: 0.008, C: 0.0002, D: 30e-6}, Fit{A: 0.012, C: 0.0003, D: 45e-6} // 1.5 times
	load := func(n int) float64 { return 5 * float64(n) }
	old, since := sumsOf(before, even(500, 1, 4), load), sumsOf(after, even(100, 4, 20, 40), load)
	known := old
	known.Add(Delta{Sums: since}, 0)
	shift := Shift{To: 1, Factor: 1.5}
	var fold Sums
	shift.spare(&fold, &since, 1)
	known.Add(Delta{Shift: shift, Sums: fold}, 600*time.Second)

	want := old
	shift.multiply(&want)
	want.Add(Delta{Sums: since}, 0)
	same := func(what string, got, want []*float64) {
		t.Helper()
		for i := range got {
			within(t, what, *got[i], *want[i], 1e-9)
		}
	}
	for i := range want.bins {
		same("a bin", known.bins[i].fields(), want.bins[i].fields())
	}
	same("the rows", known.rows.fields(), want.rows.fields())
	if err := known.Check(); err != nil {
		t.Errorf("a store would refuse the sums: %v", err)
	}
	c := newCurve(&known, nil, 0.1)
	for _, n := range []int{1, 4, 20, 40} {
		within(t, "TPS", c.TPS(n), 1/after.tpot(float64(n), c.Rho()*float64(n)), 0.02)
	}
}

// spells returns a function that lets n streams begin, decode so many steps and end.
func spells(b *bench) func(n int, tpot time.Duration, steps int) {
	now := time.Duration(0)
	return func(n int, tpot time.Duration, steps int) {
		b.occ.Set(start.Add(now), n)
		var streams []*Stream
		for range n {
			streams = append(streams, b.open(Open{Sent: start.Add(now)}))
		}
		for i := range steps {
			now += tpot
			for _, s := range streams {
				s.Read(start.Add(now), 1)
			}
			if i%50 == 0 {
				b.book.Fold(start.Add(now))
			}
		}
		for _, s := range streams {
			s.Usage(Usage{CompletionTokens: steps})
			s.Close(start.Add(now), true)
		}
		b.book.Fold(start.Add(now))
	}
}

// A load that goes up as an engine slows down shows levels that it never had. Once
// the load is as before the slowdown is found, and they are not slowed a second time.
func TestAnEngineThatSlowsAsItsLoadGrows(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	spell := spells(b)
	tpot := func(n int) time.Duration { return time.Duration(10+n/4) * ms }
	for range 4 {
		spell(4, tpot(4), 1000)
		spell(8, tpot(8), 1000)
	}
	slower := func(n int) time.Duration { return tpot(n) * 3 / 2 }
	spell(8, slower(8), 600)
	spell(24, slower(24), 800)
	spell(4, slower(4), 3000)
	for _, n := range []int{4, 8, 24} {
		within(t, "TPS", b.book.Curve(target).TPS(n), 1/slower(n).Seconds(), 0.1)
	}
}

// An engine that was three times as slow is as before when its load is gone. The levels
// of few streams, which are seen first, are not made faster still.
func TestAnEngineThatIsFastAgainAsItsLoadEnds(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	spell := spells(b)
	tpot := func(n int) time.Duration { return time.Duration(10+n/4) * ms }
	for range 4 {
		spell(1, tpot(1), 300)
		spell(8, tpot(8), 1000)
		spell(12, tpot(12), 1000)
	}
	for range 3 {
		spell(8, 3*tpot(8), 500)
		spell(12, 3*tpot(12), 500)
	}
	spell(1, tpot(1), 1000)
	spell(8, tpot(8), 3000)
	c := b.book.Curve(target)
	for _, n := range []int{1, 8, 12} {
		within(t, "TPS", c.TPS(n), 1/tpot(n).Seconds(), 0.1)
	}
}

// The window in which an engine is found to be three times as slow counts as expected,
// and is shifted with all that is known. Else it says that the engine is as fast as ever,
// with nine times the weight of all windows since, and the fit has another form.
func TestTheWindowThatFindsAShiftIsShifted(t *testing.T) {
	for seed := range int64(6) {
		b := NewBook(Options{})
		e := newEngine(seed, b)
		e.run(100_000)
		e.drain()
		was, _ := b.Curve(e.target).Fit()
		for _, f := range []*float64{&e.fit.A, &e.fit.B, &e.fit.C, &e.fit.D} {
			*f *= 3
		}
		e.lasting(time.Minute, func() bool { return b.Curve(e.target).Scale() < 0.8 })
		c := b.Curve(e.target)
		if c.Scale() > 0.8 {
			t.Fatalf("seed %d: three times slower is not found in a minute", seed)
		}
		is, _ := c.Fit()
		for _, n := range []float64{1, 4, 16, 40} {
			p := c.Rho() * n
			if got, want := is.tpot(n, p)/is.tpot(8, 8*c.Rho()), was.tpot(n, p)/was.tpot(8, 8*c.Rho()); math.Abs(got/want-1) > 0.05 {
				t.Errorf("seed %d: %v streams take %.2f times as long as 8, before %.2f", seed, n, got, want)
			}
		}
	}
}

// What counted as expected before a shift by three counts three times as much after it:
// in the bin, which was added as measured and shifted since, and in the row.
func TestSecondsThatCountAsExpectedAreShifted(t *testing.T) {
	p := newBench(t).book.profile(target)
	w := &window{}
	e := exposure{S: 120, T: 30, Y: 4000, K: 1000, Q: 2000}
	w.exposure(p)[3] = e
	p.known.bins[3] = binSums{S: 3 * e.S, T: 3 * e.T, K: e.K, Y: e.Y} // three times what was measured
	p.row = row{T: e.T, K: e.K, Q: e.Q, Y: e.Y, windows: 1}
	p.shift = Shift{To: 1, Factor: 3}
	p.close(w, 1.0/3, 3)
	p.learnRows(windowLength)
	b, r := &p.fold.bins[3], &p.fold.rows
	within(t, "S", p.known.bins[3].S+b.S, e.S, 1e-9)
	within(t, "T", p.known.bins[3].T+b.T, e.T, 1e-9)
	within(t, "SS", b.SS, e.S*e.S, 1e-9)
	within(t, "SY", b.SY, e.S*e.Y, 1e-9)
	within(t, "seconds of the row", r.T, e.T, 1e-9)
	within(t, "weight of the row", r.A00, e.K/(0.09*0.09), 1e-9) // three times the 30 ms that were predicted
}

// A window that counts less takes no more off a bin than is known of it: evidence fades,
// and a sum below 0 would be refused with all that the target did in that second.
func TestSecondsThatCountLessLeaveSomething(t *testing.T) {
	p := newBench(t).book.profile(target)
	w := &window{}
	w.exposure(p)[3] = exposure{S: 120, T: 30, Y: 4000, K: 1000, Q: 2000}
	p.known.bins[3] = binSums{S: 24, T: 6, K: 1000, Y: 4000, N: 96} // most of it has faded
	p.close(w, 0.5, 1)
	sums := p.known
	sums.bins[3].S += p.fold.bins[3].S
	sums.bins[3].T += p.fold.bins[3].T
	if b := sums.bins[3]; !(b.S > 0) || !(b.T > 0) || b.S > 24 {
		t.Errorf("S = %v and T = %v, want more than 0, and S less than the 24 before", b.S, b.T)
	}
}

// What was measured since is forgotten by known, and by nobody else: sparing more than
// known still holds leaves sums that no streams gave, and a store refuses the shift. How
// much it still holds depends on the half-life that the book has.
func TestNoMoreIsSparedThanIsKnown(t *testing.T) {
	for _, halfLife := range []time.Duration{defaultHalfLife, 30 * time.Second} {
		known := taught()
		since := known
		for i := range since.rows.rowSums.fields() {
			*since.rows.rowSums.fields()[i] *= 2
		}
		p := &profile{known: known, since: &since, halfLife: halfLife}
		p.fold = known // and half of that again came in this second
		p.fold.lend(&known, -0.5)
		p.move(-1, true)
		gathered := known
		gathered.lend(&known, -0.5)
		if p.fold == gathered {
			t.Errorf("%v: nothing was spared", halfLife)
		}
		known.Add(Delta{Sums: p.fold, Shift: p.shift}, halfLife)
		if err := known.Check(); err != nil {
			t.Errorf("%v: the shift would be refused: %v", halfLife, err)
		}
	}
}
