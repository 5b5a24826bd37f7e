package gateway

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// Why an upstreamTimer cancels an attempt.
var (
	errFirstByte = errors.New("gateway: no first byte in time")
	errSilence   = errors.New("gateway: silence, or nothing but comments, for too long")
)

// upstreamTimer cancels an attempt whose backend takes too long for its first
// byte, is silent for too long, or is not over in time: one timer for all
// phases. Moving the deadline is one atomic store, so it costs nothing per
// chunk; the timer looks at it only when it fires, and goes on sleeping when
// the deadline has moved.
//
// Its methods belong to one goroutine; the timer's own looks only at the
// atomics.
type upstreamTimer struct {
	base     time.Time
	last     time.Duration // since base: when the whole request must be over
	deadline atomic.Int64  // nanoseconds since base: end of the phase
	cause    atomic.Pointer[error]
	cancel   context.CancelCauseFunc
	timer    *time.Timer
}

const (
	timerStopped = math.MinInt64
	timerPaused  = math.MaxInt64
)

// startUpstreamTimer watches a phase that may take d, from now on, in a request that
// must be over at end. What cause points to is what cancel is told; it stays as it is.
func startUpstreamTimer(now, end time.Time, d time.Duration, cause *error, cancel context.CancelCauseFunc) *upstreamTimer {
	u := &upstreamTimer{base: now, last: end.Sub(now), cancel: cancel}
	u.cause.Store(cause)
	u.deadline.Store(int64(d))
	u.timer = time.AfterFunc(min(d, u.last), u.fire)
	return u
}

// restart begins another phase, which may last until then.
func (u *upstreamTimer) restart(until time.Time, cause *error) {
	u.cause.Store(cause)
	u.extend(until)
	u.timer.Reset(max(0, min(until.Sub(u.base), u.last)-time.Since(u.base)))
}

// handOn stops u, and returns one that goes on with the same phase, and cancels by
// cancel.
func (u *upstreamTimer) handOn(now time.Time, cancel context.CancelCauseFunc) *upstreamTimer {
	left := u.base.Add(time.Duration(u.deadline.Load())).Sub(now)
	u.stop()
	return startUpstreamTimer(now, u.base.Add(u.last), max(0, left), u.cause.Load(), cancel)
}

// extend moves the end of the phase. The hot path: one store.
func (u *upstreamTimer) extend(until time.Time) { u.deadline.Store(int64(until.Sub(u.base))) }

// pause takes the end off the phase: it is not the backend that is waited for.
func (u *upstreamTimer) pause() { u.deadline.Store(timerPaused) }

// stop ends the bound. Calls after the first do nothing.
func (u *upstreamTimer) stop() {
	u.deadline.Store(timerStopped)
	u.timer.Stop()
}

// fire runs on the timer's goroutine.
func (u *upstreamTimer) fire() {
	now, deadline := time.Since(u.base), u.deadline.Load()
	switch {
	case deadline == timerStopped:
	case now >= u.last:
		u.cancel(errTotal)
	case now >= time.Duration(deadline):
		u.cancel(*u.cause.Load())
	case deadline == timerPaused:
		u.timer.Reset(min(time.Second, u.last-now))
	default:
		u.timer.Reset(min(time.Duration(deadline), u.last) - now)
	}
}
