package profiles

import "math"

const (
	// driftAlarm is h of the CUSUM, driftSlack what is taken off each window,
	// both in standard deviations; driftClip is the most that one window says.
	driftAlarm = 7.0
	driftSlack = 0.85
	driftClip  = 3.0

	// leastSpread is the least standard deviation of a window's residual that
	// is believed, usualSpread what is assumed at first.
	leastSpread = 0.03
	usualSpread = 0.06

	// driftWindows is how many windows the level of an alarm is taken from, and
	// after how many a restart is over.
	driftWindows = 4

	// restartAlarm is how many standard errors the mean of the windows since a
	// restart has to be off for an alarm.
	restartAlarm = 3.0

	// driftFollow is the share of a new residual in the level, and spreadFollow
	// in the spread.
	driftFollow  = 0.3
	spreadFollow = 0.05

	// fasterStep is by how much g may rise above 1 in one window: faster is
	// probed, slower is believed at once.
	fasterStep = 0.02

	// leastScale and mostScale bound g.
	leastScale = 0.05
	mostScale  = 1.5
)

// drift finds out that one group has become slower, or faster, at all n: the
// residual ln(T measured/T expected) of its windows leaves 0 and stays away. It
// is a two-sided CUSUM over windows of 5 seconds; with shorter ones, whose
// neighbours resemble each other, it would cry wolf.
//
// While there is an alarm, one factor g multiplies the group's curves. The
// sums learn the new speed meanwhile, at their own pace, so that the residual
// goes back to 0, and g to 1, once they have.
//
// The zero value has seen nothing: g is 1.
type drift struct {
	slow, fast float64 // CUSUM of either side, ≥ 0
	spread     float64 // standard deviation of the residual; 0 = none seen yet
	level      float64 // of the residual, while alarmed
	alarmed    bool
	g          float64 // 0 stands for 1
	last       [driftWindows]float64
	seen       int // windows, since a restart if there was one
	fresh      int // windows still to come whose level is believed at once
}

// restarted says that the engine is another from now on, though perhaps with
// the same settings: what was seen of it does not tell, and the first windows
// do, without waiting for the CUSUM.
func (d *drift) restarted() {
	d.slow, d.fast, d.seen, d.fresh = 0, 0, 0, driftWindows
}

// scale returns g, by which TPS is multiplied.
func (d *drift) scale() float64 {
	if d.g == 0 {
		return 1
	}
	return d.g
}

// see takes the residual of one window.
func (d *drift) see(residual float64) {
	if !finite(residual) {
		return
	}
	if d.spread == 0 {
		d.spread = usualSpread
	}
	d.last[d.seen%driftWindows] = residual
	d.seen++
	z := max(-driftClip, min(driftClip, residual/d.spread))
	d.slow = max(0, d.slow+z-driftSlack)
	d.fast = max(0, d.fast-z-driftSlack)
	switch {
	case d.fresh > 0:
		d.fresh--
		if d.level = d.recent(); math.Abs(d.level)*math.Sqrt(float64(d.seen)) < restartAlarm*d.spread {
			d.level = 0
		}
		d.alarmed = d.level != 0
	case d.alarmed:
		d.level += driftFollow * (residual - d.level)
		if math.Abs(d.level) < d.spread {
			d.alarmed, d.slow, d.fast, d.level = false, 0, 0, 0
		}
	case d.slow > driftAlarm || d.fast > driftAlarm:
		d.alarmed, d.level = true, d.recent()
	default:
		// Only what is no alarm tells of the usual spread.
		variance := (1-spreadFollow)*d.spread*d.spread + spreadFollow*residual*residual
		d.spread = max(leastSpread, math.Sqrt(variance))
	}
	d.move()
}

// recent returns the mean of the last windows.
func (d *drift) recent() float64 {
	n := min(d.seen, driftWindows)
	sum := 0.0
	for _, r := range d.last[:n] {
		sum += r
	}
	return sum / float64(n)
}

// move lets g follow the level: down at once, above 1 step by step.
func (d *drift) move() {
	want := max(leastScale, min(mostScale, math.Exp(-d.level)))
	d.g = min(want, max(1, d.scale())+fasterStep)
}
