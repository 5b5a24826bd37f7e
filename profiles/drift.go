package profiles

import (
	"math"
	"slices"
)

const (
	// driftAlarm is h of the CUSUM, driftSlack what is taken off each window,
	// both in standard deviations; driftClip is the most that one window says.
	driftAlarm = 7.0
	driftSlack = 0.85
	driftClip  = 3.0

	// leastSpread is the least standard deviation of a window's residual that
	// is believed, usualSpread what is assumed at first. A window moves it by a
	// share of spreadFollow, and counts as at most spreadClip of it.
	leastSpread  = 0.03
	usualSpread  = 0.06
	spreadFollow = 0.05
	spreadClip   = 2.0
	mostSpread   = 0.5

	// driftWindows is how many windows the level of an alarm is taken from, and
	// after how many a restart is over.
	driftWindows = 4

	// restartAlarm is how many standard errors the mean of the windows since a
	// restart has to be off for an alarm.
	restartAlarm = 3.0

	// A speed from before a change is back when the last backWindows lie
	// farther than farOff standard errors from the present one and nearer than
	// nearBy to the old.
	backWindows = 2
	farOff      = 6.0
	nearBy      = 3.0

	// settledWindows is until when the level of an alarm is corrected by the
	// windows after it, and leastStep the least correction, in ln.
	settledWindows = 32
	leastStep      = 0.005

	// fasterStep is by how much, in ln, an engine may be believed to be faster
	// at once than it ever was: faster is probed, slower is believed.
	fasterStep = 0.1

	// mostStep bounds what one alarm may say, in ln.
	mostStep = 2.3
)

// drift finds out that one group has become slower, or faster, at all n: the
// residual ln(T measured/T expected) of its windows leaves 0 and stays away. It
// is a two-sided CUSUM over windows of 5 seconds; with shorter ones, whose
// neighbours resemble each other, it would cry wolf.
//
// With r the residual of a window in ln (0.1 = 10 % slower than expected), σ its
// standard deviation, doubt what the curve itself may be off by, and chance the standard
// error of what its streams counted, before a usage has corrected it:
//
//	z  = sign(r)·max(|r| − doubt, 0)/√(σ² + chance²)      held within ±3
//	S⁺ = max(0, S⁺ + z − 0.85)              slower; S⁻ the same of −z, faster
//	alarm where S⁺ or S⁻ > 7                then the step is the median of the last 4 r
//	σ² = 0.95·σ² + 0.05·min(|r|, 2σ)²       of windows without an alarm, σ ≥ 3 %
//
// It is Page's test (Biometrika 41, 1954), with slack k = 0.85 and height h = 7, in
// standard deviations of one window. Siegmund's approximation of the windows between two
// false alarms of one side, where they are independent and normal, is
//
//	(e^(2k·b) − 2k·b − 1)/(2k²),  b = h + 1.166      740,000 windows of 5 s: 43 days
//
// and a change by d·σ is found after about h/(d − k) windows: 10 % at σ = 4 % after 5.
//
// What it finds becomes a Shift of all that is known of the group, by the median
// of the last 4 windows. After the next 4, and again after 8 and 16 more, half of what
// those are off by is added: so the level comes to rest on all windows since the alarm.
//
// The zero value has seen nothing.
type drift struct {
	slow, fast float64 // CUSUM of either side, ≥ 0
	spread     float64 // standard deviation of the residual; 0 = none seen yet
	last       [driftWindows]float64
	seen       int // windows since the last shift or restart
	fresh      int // windows since a restart still to come

	rests int     // windows that the level rests on, 0 = no shift is new
	sum   float64 // of the residuals since the last shift, while one is new
}

// restarted says that the engine is another from now on, though perhaps with
// the same settings: what was seen of it does not tell, and the first windows
// do, without waiting for the CUSUM.
func (d *drift) restarted() {
	d.rest(0)
	d.fresh = driftWindows
}

// rest begins anew after a shift that rests on so many windows, 0 = of somebody
// else.
func (d *drift) rest(windows int) {
	d.slow, d.fast, d.seen, d.sum, d.fresh = 0, 0, 0, 0, 0
	d.rests = windows
}

// deviation returns the standard deviation of a window's residual.
func (d *drift) deviation() float64 {
	if d.spread == 0 {
		return usualSpread
	}
	return d.spread
}

// learn takes a residual that tells how far windows spread. One far beyond that tells of
// something else: of a change, or of a curve that is young.
func (d *drift) learn(residual float64) {
	if s := d.deviation(); finite(residual) {
		r := min(math.Abs(residual), spreadClip*s, mostSpread)
		d.spread = max(leastSpread, math.Sqrt((1-spreadFollow)*s*s+spreadFollow*r*r))
	}
}

// unsettled reports whether the engine may be another than what is known.
func (d *drift) unsettled() bool {
	return d.rests > 0 || d.fresh > 0 || d.slow > driftAlarm/2 || d.fast > driftAlarm/2
}

// suspects reports whether the last windows may be those of another speed.
func (d *drift) suspects() bool { return d.slow > 0 || d.fast > 0 }

// see takes the residual of one window, of which as much as doubt may be the
// curve's fault, and chance is the standard error of its tokens. It returns by how much, in ln, the seconds of all that is known
// have to be multiplied; 0 = not at all. memory is by how much they were
// multiplied before, as far as that is remembered.
func (d *drift) see(residual, doubt, chance, memory float64) (step float64) {
	if !finite(residual) {
		return 0
	}
	sure := math.Copysign(max(math.Abs(residual)-doubt, 0), residual)
	d.spread = d.deviation()
	if doubt > 0 && math.Abs(sure) < driftClip*d.spread {
		return 0 // it says nothing
	}
	d.last[d.seen%driftWindows] = residual
	d.seen++
	d.sum += residual
	z := max(-driftClip, min(driftClip, sure/math.Hypot(d.spread, chance)))
	d.slow = max(0, d.slow+z-driftSlack)
	d.fast = max(0, d.fast-z-driftSlack)
	rests := d.rests
	switch {
	case d.back(memory):
		step, rests = -memory, driftWindows
	case d.fresh > 0:
		d.fresh--
		if level := d.recent(d.seen); math.Abs(level)*math.Sqrt(float64(d.seen)) >= restartAlarm*d.spread {
			step, rests = level, d.seen
		}
	case d.slow > driftAlarm || d.fast > driftAlarm:
		step, rests = d.middle(), min(d.seen, driftWindows)
	case d.rests > 0 && d.seen >= d.rests:
		step, rests = d.sum/float64(d.seen)/2, 2*d.rests
		if math.Abs(step) < leastStep {
			step = 0
		}
		d.seen, d.sum = 0, 0
		if d.rests = rests; rests >= settledWindows {
			d.rests = 0
		}
	default:
		// Only what is no alarm tells of the usual spread, and the windows before
		// one tell as little as they can.
		d.learn(residual)
	}
	step = max(step, -max(memory, 0)-fasterStep, -mostStep)
	if step = min(step, mostStep); step != 0 {
		if d.rest(rests); rests >= settledWindows {
			d.rests = 0
		}
	}
	return step
}

// back reports whether the last windows are those of the speed before.
func (d *drift) back(memory float64) bool {
	if d.seen < backWindows || memory == 0 {
		return false
	}
	r := d.recent(backWindows) * math.Sqrt(backWindows) / d.spread
	old := r + memory*math.Sqrt(backWindows)/d.spread
	return math.Abs(r) > farOff && math.Abs(old) < nearBy
}

// middle returns the median of the last windows: the first of another speed is
// mostly one of both.
func (d *drift) middle() float64 {
	n := min(d.seen, driftWindows)
	var sorted [driftWindows]float64
	copy(sorted[:], d.last[:n])
	slices.Sort(sorted[:n])
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// recent returns the mean of the last windows, at most so many.
func (d *drift) recent(windows int) float64 {
	n := min(d.seen, windows, driftWindows)
	sum := 0.0
	for i := range n {
		sum += d.last[(d.seen-1-i)%driftWindows]
	}
	return sum / float64(n)
}
