package redisconn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// OutError reports that the server was not asked, because it failed a moment
// ago.
type OutError struct {
	RetryIn time.Duration // when it will be asked again
	Err     error         // how it failed
}

// Error says how long the server is left alone, and why.
func (e *OutError) Error() string {
	return fmt.Sprintf("redisconn: not asked for another %v: %v", e.RetryIn.Round(time.Millisecond), e.Err)
}

// Unwrap returns how the server failed.
func (e *OutError) Unwrap() error { return e.Err }

// breaker leaves a server alone after a failure: for min, then twice as long
// with each failure in a row, up to max, and up to a fifth more at random so
// that replicas do not come back together. After that one call goes out as a
// trial.
//
// The zero value with min and max set is closed. It is safe for concurrent
// use; mu is a leaf.
type breaker struct {
	min, max time.Duration

	mu       sync.Mutex
	failures int       // in a row
	period   uint64    // grows when it opens or closes: a call that began in an older period has no say
	until    time.Time // not asked before; zero while closed
	back     time.Time // when it last came back; zero = never
	before   int       // failures in a row until then
	trial    bool      // a call is out to see whether the server is back
	cause    error
}

// enter asks for leave to call; the answer holds for one call, which ends with
// leave.
func (b *breaker) enter(now time.Time) (period uint64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures == 0 {
		return b.period, nil
	}
	if wait := b.until.Sub(now); wait > 0 || b.trial {
		return 0, &OutError{RetryIn: max(wait, 0), Err: b.cause}
	}
	b.trial = true
	return b.period, nil
}

type verdict uint8

const (
	ignored verdict = iota // the call says nothing about the server
	worked
	failed
)

// leave ends a call that entered in period. It reports whether the server is left
// alone from now on.
func (b *breaker) leave(now time.Time, period uint64, v verdict, cause error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if period != b.period {
		return false
	}
	wasOut := b.failures > 0
	b.trial = false
	switch {
	case v == failed:
		if !wasOut && !b.back.IsZero() && now.Sub(b.back) < b.max {
			b.failures = b.before
		}
		wait := min(b.min<<min(b.failures, 20), b.max)
		wait += time.Duration(rand.Float64() * float64(wait) / 5)
		b.failures++
		b.period++
		b.until, b.cause = now.Add(wait), cause
		return true
	case v == worked && wasOut:
		b.before, b.back = b.failures, now
		b.failures, b.until, b.cause = 0, time.Time{}, nil
		b.period++
	}
	return false
}

// unavailable are the error replies with which a server says that it cannot
// serve now, or not us. Any other reply is about the command.
var unavailable = []string{
	"LOADING", "MASTERDOWN", "CLUSTERDOWN", "READONLY", "TRYAGAIN", "BUSY", "MISCONF", "OOM",
	"NOAUTH", "WRONGPASS", "NOPERM", "NOREPLICAS", "ERR max number of clients", "ERR AUTH", "ERR invalid password", "ERR Client sent AUTH",
}

// AboutCommand reports whether err is a reply of a server that serves: it is
// about the command, its keys or its script, and would come again.
func AboutCommand(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && !errors.Is(err, redis.Nil) && judge(context.Background(), err) == worked
}

// judge says what err means for the server.
func judge(ctx context.Context, err error) verdict {
	var reply redis.Error
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return worked
	case errors.Is(ctx.Err(), context.Canceled):
		return ignored
	case errors.As(err, &reply):
		for _, prefix := range unavailable {
			if redis.HasErrorPrefix(reply, prefix) {
				return failed
			}
		}
		return worked
	}
	return failed
}
