package profiles

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/racetest"
)

func TestDriftFindsASlowdownWithinSixWindows(t *testing.T) {
	for _, spread := range []float64{0.01, 0.03, 0.06} {
		var found []int
		for seed := range uint64(50) {
			rng := rand.New(rand.NewPCG(1, seed))
			var d drift
			for range 100 {
				d.see(spread * rng.NormFloat64())
			}
			windows := 0
			for d.scale() > 0.9 && windows < 100 {
				d.see(math.Log(1.3) + spread*rng.NormFloat64())
				windows++
			}
			found = append(found, windows)
		}
		slices.Sort(found)
		if median := found[len(found)/2]; median > 6 {
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
		before := d.alarmed
		d.see(0.04 * rng.NormFloat64())
		if d.alarmed && !before {
			alarms++
		}
	}
	if perHour := float64(alarms) / hours; perHour > 1 {
		t.Errorf("%.2f false alarms per hour, want at most 1", perHour)
	}
}

func TestDriftGoesBackWhenTheResidualDoes(t *testing.T) {
	var d drift
	for range 50 {
		d.see(0)
	}
	for range 10 {
		d.see(math.Log(2))
	}
	if g := d.scale(); math.Abs(g-0.5) > 0.01 {
		t.Fatalf("twice as slow: g = %.3f, want 0.5", g)
	}
	for range 30 {
		d.see(0)
	}
	if g := d.scale(); g != 1 {
		t.Errorf("back to normal: g = %.3f, want 1", g)
	}
}

func TestDriftBelievesFasterOnlyStepByStep(t *testing.T) {
	var d drift
	for range 50 {
		d.see(0)
	}
	last := d.scale()
	for range 60 {
		d.see(-math.Log(1.4))
		if g := d.scale(); g > last+fasterStep+1e-9 {
			t.Fatalf("g went from %.3f to %.3f in one window, want steps of %v", last, g, fasterStep)
		}
		last = d.scale()
	}
	if last < 1.3 {
		t.Errorf("1.4 times faster for five minutes: g = %.3f, want it near 1.4", last)
	}
}

func TestDriftSurvivesNonsense(t *testing.T) {
	var d drift
	for _, r := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1e300, 700} {
		for range 20 {
			d.see(r)
		}
	}
	if g := d.scale(); !(g >= leastScale && g <= mostScale) {
		t.Errorf("g = %v, want it between %v and %v", g, leastScale, mostScale)
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
