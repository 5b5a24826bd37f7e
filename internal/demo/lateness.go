package demo

import (
	"context"
	"time"
)

const (
	// lateBy is when a timer counts as late: a step of the fastest engine takes as long.
	lateBy = 5 * time.Millisecond

	// tooBusy is the share of late timers from which nothing is to be trusted.
	tooBusy = 0.05

	lookEvery = 20 * time.Millisecond
)

// lateness looks whether the machine has time for what is played: engines sleep
// until their next step, and on a busy machine all of them wake up late. It is
// used by one goroutine at a time.
type lateness struct{ timers, late int }

// run looks until ctx ends.
func (l *lateness) run(ctx context.Context) {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	for {
		due := time.Now().Add(lookEvery)
		timer.Reset(lookEvery)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			l.saw(time.Since(due))
		}
	}
}

// saw counts a timer that went off so long after it was due.
func (l *lateness) saw(after time.Duration) {
	l.timers++
	if after > lateBy {
		l.late++
	}
}

// share is that of the late timers, 0 without any.
func (l *lateness) share() float64 {
	return float64(l.late) / float64(max(l.timers, 1))
}
