package profiles

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/racetest"
)

// shifts plays windows whose engine takes factor times as long, and returns what
// the shifts come to, in ln, and after how many windows the first one came.
func (d *drift) shifts(windows int, factor func(window int) float64, spread float64, rng *rand.Rand) (ln float64, first int) {
	for i := range windows {
		step := d.see(math.Log(factor(i))-ln+spread*rng.NormFloat64(), 0, 0, ln)
		if ln += step; step != 0 && first == 0 {
			first = i + 1
		}
	}
	return ln, first
}

func always(factor float64) func(int) float64 { return func(int) float64 { return factor } }

func TestDriftFindsASlowdownWithinSixWindows(t *testing.T) {
	for _, spread := range []float64{0.01, 0.03, 0.06} {
		var found []int
		for seed := range uint64(50) {
			rng := rand.New(rand.NewPCG(1, seed))
			var d drift
			d.shifts(100, always(1), spread, rng)
			_, first := d.shifts(100, always(1.3), spread, rng)
			found = append(found, first)
		}
		slices.Sort(found)
		if median := found[len(found)/2]; median < 1 || median > 6 {
			t.Errorf("spread %v: 1.3 times slower found after %d windows of 5 s (median), want 6", spread, median)
		}
	}
}

func TestDriftRarelyCriesWolf(t *testing.T) {
	const hours = 200
	alarms := 0
	rng := rand.New(rand.NewPCG(3, 4))
	var d drift
	for range hours * 720 {
		if d.see(0.04*rng.NormFloat64(), 0, 0, 0) > 0.05 {
			alarms++
		}
	}
	if perHour := float64(alarms) / hours; perHour > 1 {
		t.Errorf("%.2f false alarms per hour, want at most 1", perHour)
	}
}

// The level of an alarm comes to rest on the windows after it: 32 of them leave a
// sixth of the spread of one.
func TestDriftLevelComesToRest(t *testing.T) {
	var off []float64
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(2, seed))
		var d drift
		d.shifts(100, always(1), 0.06, rng)
		ln, _ := d.shifts(60, always(2), 0.06, rng)
		off = append(off, math.Abs(ln-math.Log(2)))
		if d.unsettled() {
			t.Errorf("seed %d: after five minutes the level is not settled", seed)
		}
	}
	slices.Sort(off)
	if off[50] > 0.02 || off[95] > 0.06 {
		t.Errorf("off by %.3f (median) and %.3f (95 of 100), want 0.01 and 0.05", off[50], off[95])
	}
}

// An engine that is as it was before is known as such after two windows, however
// long it was slow, and all that was shifted goes back exactly.
func TestDriftGoesBackAtOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	var d drift
	d.shifts(100, always(1), 0.03, rng)
	ln, _ := d.shifts(200, always(3), 0.03, rng)
	if math.Abs(ln-math.Log(3)) > 0.05 {
		t.Fatalf("three times as slow: shifted by %.3f, want ln 3", ln)
	}
	for window, want := range []float64{0, -ln} {
		if step := d.see(-ln, 0, 0, ln); step != want {
			t.Errorf("window %d at the old speed: shifted by %.3f, want %.3f", window, step, want)
		}
	}
}

// Faster than it ever was is believed a tenth at a time.
func TestDriftBelievesFasterOnlyStepByStep(t *testing.T) {
	var d drift
	for range 50 {
		d.see(0, 0, 0, 0)
	}
	ln, steps := 0.0, 0
	for range 120 {
		step := d.see(-math.Log(1.4)-ln, 0, 0, ln)
		if step < -fasterStep-1e-9 {
			t.Fatalf("shifted by %.3f at once, want at most %v", step, fasterStep)
		}
		if ln += step; step != 0 {
			steps++
		}
	}
	if math.Abs(ln+math.Log(1.4)) > 0.05 || steps < 3 {
		t.Errorf("1.4 times faster for ten minutes: shifted by %.3f in %d steps, want %.3f in 3 and more", ln, steps, -math.Log(1.4))
	}
}

// What the curve may be wrong about is no drift.
func TestDriftLeavesDoubtToTheCurve(t *testing.T) {
	var d drift
	for range 200 {
		if step := d.see(0.3, 0.3, 0, 0); step != 0 {
			t.Fatalf("a residual within doubt shifted by %v", step)
		}
	}
	for range 6 {
		d.see(1.1, 0.3, 0, 0)
	}
	if !d.unsettled() {
		t.Error("three times as slow at levels that were not seen says nothing")
	}
}

func TestDriftSurvivesNonsense(t *testing.T) {
	var d drift
	for _, r := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1e300, 700} {
		for range 20 {
			if step := d.see(r, 0, 0, 0); !(math.Abs(step) <= mostStep) {
				t.Errorf("residual %v: shifted by %v", r, step)
			}
		}
	}
}

// lasting lets the engine go on for d, folding once a second, and calls look
// after each fold until it says stop.
func (e *engine) lasting(d time.Duration, look func() (stop bool)) {
	for end := e.now + d; e.now < end; {
		e.arrive()
		e.step()
		if e.now-e.folded < time.Second {
			continue
		}
		e.folded = e.now
		for _, b := range e.books {
			b.Fold(e.at(e.now))
		}
		if look() {
			return
		}
	}
}

// An engine under bursts, with prompts and step noise, becomes 1.3 times
// slower at all n: found within half a minute (median of the seeds), with g
// where it belongs.
func TestASlowerBackendIsFound(t *testing.T) {
	if racetest.On {
		t.Skip("minutes of tokens on one goroutine: make numbers runs it")
	}
	var found []time.Duration
	for seed := range int64(9) {
		b := NewBook(Options{})
		e := newEngine(seed, b)
		e.run(100_000)
		from, at := e.now, time.Duration(0)
		e.uneven = func(int) float64 { return 1.3 }
		e.lasting(5*time.Minute, func() bool {
			if g := b.Curve(e.target).Scale(); g < 0.9 {
				at = e.now - from
				return true
			}
			return false
		})
		if at == 0 {
			at = time.Hour
		}
		found = append(found, at)
	}
	slices.Sort(found)
	t.Logf("1.3 times slower found after %v", found)
	if median := found[len(found)/2]; median > 30*time.Second {
		t.Errorf("found after %v (median), want 30 s", median)
	}
}

// The same engine left alone: at most one false alarm per hour.
func TestADriftAlarmMeansSomething(t *testing.T) {
	if racetest.On {
		t.Skip("hours of virtual time on one goroutine: make numbers runs it")
	}
	alarms, total := 0, time.Duration(0)
	for seed := range int64(4) {
		b := NewBook(Options{})
		e := newEngine(100+seed, b)
		e.run(30_000)
		alarmed, from := false, e.now
		e.lasting(45*time.Minute, func() bool {
			now := b.Curve(e.target).Scale() != 1
			if now && !alarmed {
				alarms++
			}
			alarmed = now
			return false
		})
		total += e.now - from
	}
	t.Logf("%d alarms in %v", alarms, total)
	if float64(alarms) > total.Hours() {
		t.Errorf("%d false alarms in %v, want at most one an hour", alarms, total)
	}
}

// grown is a group that knows an engine for long enough to tell that it has changed.
func grown() *group {
	p := &profile{}
	p.known.rows.T = 10 * matureSeconds
	return &group{profiles: []*profile{p}}
}

// Windows in which a replica had a few steps are off by half now and then. They are
// judged together, or four of them would move what all replicas know.
func TestAFewStepsAreNoWindow(t *testing.T) {
	g := grown()
	for range 8 {
		g.judge(judged{measured: 2, expected: 2})
	}
	for range 4 {
		if by, step := g.judge(judged{measured: 0.2, expected: 0.2 * math.Exp(0.4)}); by != 1 || step != 0 {
			t.Fatalf("a fifth of a second counts by %v, and shifts all by %v", by, step)
		}
	}
	alarmed := false
	for range 8 { // as much in windows that are whole
		_, step := g.judge(judged{measured: 2, expected: 2 * math.Exp(0.4)})
		alarmed = alarmed || step < 0
	}
	if !alarmed {
		t.Error("windows of two seconds do not tell that the engine is faster")
	}
}

// A hiccup begins and ends within a window. That one is not as far off as the window
// before, and its streams were at levels that nobody knows.
func TestTheEndOfAHiccupIsOfIt(t *testing.T) {
	const end = 0.3 + 0.2 // less than what is doubted and is far
	for name, test := range map[string]struct {
		far  int // windows before
		part bool
	}{"nothing before": {0, false}, "one window": {1, true}, "the engine may have changed": {2, false}} {
		g := grown()
		for range 40 {
			g.judge(judged{measured: 5, expected: 5})
		}
		for range test.far {
			if by, _ := g.judge(judged{measured: 5, expected: 5 / math.E, foreign: 5}); math.Abs(by-1/math.E) > 1e-9 {
				t.Errorf("%s: a window that is e times as slow counts by %v", name, by)
			}
		}
		g.drift.spread = 0.06
		by, _ := g.judge(judged{measured: 5, expected: 5 * math.Exp(-end), foreign: 5})
		if part := by < 1; part != test.part {
			t.Errorf("%s: the window after it counts by %v", name, by)
		}
	}
}

// Where streams correct what they counted by a fifth, windows of four of them are off by
// a tenth for as long as these run. That is no change of the engine; where nothing has
// to be corrected it is one.
func TestWhatIsNotCountedYetIsNoChange(t *testing.T) {
	for _, miscounts := range []bool{false, true} {
		g := &group{profiles: []*profile{{known: Sums{rows: fastRows{rowSums: rowSums{T: 2 * matureSeconds}}}}}}
		for range 200 {
			told := 1.0
			if miscounts {
				told = 1.2
			}
			g.seeMiscount(1, told)
			g.judge(judged{measured: 5, expected: 5, streams: 4})
		}
		shifted := false
		for range 12 {
			_, step := g.judge(judged{measured: 5, expected: 5 * math.Exp(-0.1), streams: 4})
			shifted = shifted || step != 0
		}
		if shifted == miscounts {
			t.Errorf("a minute 10 %% too slow is a change: %v, where counts are corrected: %v", shifted, miscounts)
		}
	}
}

// An engine that changes in its first minute is found by windows after it, however far
// off those were that its curve was too young for.
func TestAYoungEngineThatChangesIsFound(t *testing.T) {
	for seconds, want := range map[float64]bool{judgedFrom / 2: false, judgedFrom: true} {
		p := &profile{}
		g := &group{profiles: []*profile{p}}
		for _, off := range []float64{0.9, -0.6, 0.4} {
			g.judge(judged{measured: 5, expected: 5 * math.Exp(-off)})
		}
		p.known.rows.T = seconds
		found := false
		for range 8 {
			by, step := g.judge(judged{measured: 5, expected: 5 / 1.6})
			if found = found || step != 0; by != 1 {
				t.Errorf("after %v s of decoding a window counts %.2f times, want as it is", seconds, by)
			}
		}
		if found != want {
			t.Errorf("after %v s of decoding an engine that is 1.6 times slower is found: %v, want %v", seconds, found, want)
		}
	}
}
