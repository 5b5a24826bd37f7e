package sim

import (
	"errors"
	"math"
	"math/rand/v2"
	"time"
)

// Temper is how the steps of an engine differ from its model for longer, or by more, than
// Noise has it. The zero value is not at all.
type Temper struct {
	// Wander is the standard deviation of a log-normal factor on every step, which
	// resembles itself for about WanderFor. The mean speed stays as it is.
	Wander    float64
	WanderFor time.Duration

	// Hitch is the chance that a step takes HitchFactor times as long.
	Hitch, HitchFactor float64

	// Every PauseEvery the engine stands still for Pause: it collects garbage, or
	// captures a graph.
	Pause, PauseEvery time.Duration

	// Throttle is by how much longer steps take once HotAt sequences or more have run
	// for a minute. In a minute with fewer that is over.
	Throttle float64
	HotAt    int

	// Ageing is by how much longer steps take with each minute since the start.
	Ageing float64
}

// heating is how long an engine takes to become hot, or cold.
const heating = time.Minute

// check says what is wrong with t.
func (t *Temper) check() error {
	switch {
	case !(t.Wander >= 0 && t.Wander <= 1) || t.Wander > 0 && t.WanderFor <= 0:
		return errors.New("sim: Temper.Wander must be from 0 to 1, with a WanderFor above 0")
	case !(t.Hitch >= 0 && t.Hitch <= 1) || !(t.HitchFactor >= 0) || math.IsInf(t.HitchFactor, 0):
		return errors.New("sim: Temper.Hitch must be from 0 to 1, and HitchFactor 0 or more")
	case t.Pause < 0 || t.Pause > 0 && t.PauseEvery <= t.Pause:
		return errors.New("sim: Temper.PauseEvery must be longer than Pause, and neither below 0")
	case !(t.Throttle >= 0) || !(t.Ageing >= 0) || math.IsInf(t.Throttle+t.Ageing, 0):
		return errors.New("sim: Temper.Throttle and Ageing must be 0 or more")
	}
	return nil
}

// Usual is by how much longer a step of so many sequences takes in the long run: hot where
// that many make the engine hot, and as old as age.
func (t *Temper) Usual(n int, age time.Duration) float64 {
	factor := 1 + t.Ageing*age.Minutes()
	if t.Hitch > 0 {
		factor *= 1 + t.Hitch*(t.HitchFactor-1)
	}
	if t.Pause > 0 {
		factor /= 1 - t.Pause.Seconds()/t.PauseEvery.Seconds()
	}
	if n >= t.HotAt {
		factor *= 1 + t.Throttle
	}
	return factor
}

// mood is the temper of an engine at a moment.
type mood struct {
	Temper
	random *rand.Rand
	began  time.Time // the first step; zero = there was none
	last   time.Time // the step before
	wander float64   // current logarithm, before the mean speed is put to 1
	sigma  float64   // of the logarithm
	heat   float64   // 0 to 1
	pause  time.Time // the next one
}

func newMood(t Temper, random *rand.Rand) mood {
	m := mood{Temper: t, random: random, sigma: math.Sqrt(math.Log1p(t.Wander * t.Wander))}
	if m.sigma > 0 {
		m.wander = m.sigma * random.NormFloat64() // as if it had always run
	}
	return m
}

// takes is how long a step takes that begins at now with so many sequences, and would take
// so many seconds in another mood.
func (m *mood) takes(now time.Time, running int, seconds float64) float64 {
	if m.Temper == (Temper{}) {
		return seconds
	}
	if m.began.IsZero() {
		m.began, m.last = now, now
		m.pause = now.Add(time.Duration(m.random.Float64() * float64(m.PauseEvery)))
	}
	passed := now.Sub(m.last)
	m.last = now
	if m.sigma > 0 {
		keep := math.Exp(-passed.Seconds() / m.WanderFor.Seconds())
		m.wander = keep*m.wander + math.Sqrt(1-keep*keep)*m.sigma*m.random.NormFloat64()
		seconds *= math.Exp(m.wander + m.sigma*m.sigma/2) // of time, the mean speed is 1
	}
	if m.Hitch > 0 && m.random.Float64() < m.Hitch {
		seconds *= m.HitchFactor
	}
	if m.Throttle > 0 {
		// A gap is a time without work; long steps are not.
		by := passed.Seconds() / heating.Seconds()
		if running < m.HotAt {
			by = -by
		}
		m.heat = min(max(m.heat+by, 0), 1)
		seconds *= 1 + m.Throttle*m.heat
	}
	seconds *= 1 + m.Ageing*now.Sub(m.began).Minutes()
	if m.Pause > 0 && !now.Before(m.pause) {
		for !now.Before(m.pause) { // what an idle engine does nobody sees
			m.pause = m.pause.Add(m.PauseEvery)
		}
		seconds += m.Pause.Seconds()
	}
	return seconds
}
