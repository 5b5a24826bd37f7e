package redisconn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	core "github.com/pacer-dev/pacer/internal/breaker"
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

// breaker leaves a server alone after a failure: for least, then twice as long
// with each failure in a row, up to most, and up to a fifth more at random so
// that replicas do not come back together. After that one call goes out as a
// trial. A server that was back for less than most is taken for one that is still
// failing.
//
// It is safe for concurrent use; mu is a leaf.
type breaker struct {
	mu    sync.Mutex // guards what follows
	core  *core.Breaker
	cause error // of the last failure
}

func newBreaker(least, most time.Duration) *breaker {
	return &breaker{core: core.New(core.Options{
		InARow: 1, Calm: most,
		Wait: func(opened int) time.Duration {
			wait := min(least<<min(opened, 20), most)
			return wait + time.Duration(rand.Float64()*float64(wait)/5)
		},
	})}
}

// enter asks for leave to call; the answer holds for one call, which ends with
// leave.
func (b *breaker) enter(now time.Time) (*core.Try, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	try, ok := b.core.Begin(now)
	if !ok {
		return nil, &OutError{RetryIn: b.core.RetryIn(now), Err: b.cause}
	}
	return try, nil
}

// leave ends a call. It reports whether the server is left alone from now on.
func (b *breaker) leave(now time.Time, try *core.Try, v core.Verdict, cause error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.core.State(now)
	b.core.Give(now, try, v)
	if b.core.State(now) != core.Open || was == core.Open {
		return false
	}
	b.cause = cause
	return true
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
	return errors.As(err, &reply) && !errors.Is(err, redis.Nil) && judge(context.Background(), err) == core.Worked
}

// judge says what err means for the server.
func judge(ctx context.Context, err error) core.Verdict {
	var reply redis.Error
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return core.Worked
	case errors.Is(ctx.Err(), context.Canceled):
		return core.Nothing
	case errors.As(err, &reply):
		for _, prefix := range unavailable {
			if redis.HasErrorPrefix(reply, prefix) {
				return core.Failed
			}
		}
		return core.Worked
	}
	return core.Failed
}
