package gateway

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// Why a watch cancels an attempt.
var (
	errFirstByte = errors.New("gateway: no first byte in time")
	errSilence   = errors.New("gateway: silence, or nothing but comments, for too long")
)

// watch cancels an attempt whose phase takes too long: one timer for all
// phases. Moving the deadline is one atomic store, so it costs nothing per
// chunk; the timer looks at it only when it fires, and goes on sleeping when
// the deadline has moved.
//
// Its methods belong to one goroutine; the timer's own looks only at the
// atomics.
type watch struct {
	base     time.Time
	last     time.Duration // since base: when the whole request must be over
	deadline atomic.Int64  // nanoseconds since base: end of the phase
	cause    atomic.Pointer[error]
	cancel   context.CancelCauseFunc
	timer    *time.Timer
}

const (
	watchStopped = math.MinInt64
	watchPaused  = math.MaxInt64
)

// startWatch watches a phase that may take d, from now on, in a request that
// must be over at end. cause is what cancel is told.
func startWatch(now, end time.Time, d time.Duration, cause error, cancel context.CancelCauseFunc) *watch {
	w := &watch{base: now, last: end.Sub(now), cancel: cancel}
	w.cause.Store(&cause)
	w.deadline.Store(int64(d))
	w.timer = time.AfterFunc(min(d, w.last), w.fire)
	return w
}

// phase begins another phase, which may last until then.
func (w *watch) phase(until time.Time, cause error) {
	w.cause.Store(&cause)
	w.extend(until)
	w.timer.Reset(max(0, min(until.Sub(w.base), w.last)-time.Since(w.base)))
}

// extend moves the end of the phase. The hot path: one store.
func (w *watch) extend(until time.Time) { w.deadline.Store(int64(until.Sub(w.base))) }

// pause takes the end off the phase: it is not the backend that is waited for.
func (w *watch) pause() { w.deadline.Store(watchPaused) }

// stop ends the watch. Calls after the first do nothing.
func (w *watch) stop() {
	w.deadline.Store(watchStopped)
	w.timer.Stop()
}

// fire runs on the timer's goroutine.
func (w *watch) fire() {
	now, deadline := time.Since(w.base), w.deadline.Load()
	switch {
	case deadline == watchStopped:
	case now >= w.last:
		w.cancel(errTotal)
	case now >= time.Duration(deadline):
		w.cancel(*w.cause.Load())
	case deadline == watchPaused:
		w.timer.Reset(min(time.Second, w.last-now))
	default:
		w.timer.Reset(min(time.Duration(deadline), w.last) - now)
	}
}
