package providers

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	// The breaker opens after tripConsecutive failures in a row, after as many
	// streams in a row that broke off, or when half of at least tripRequests
	// verdicts within tripWindow are failures.
	tripConsecutive = 5
	tripRequests    = 20
	tripWindow      = 60 * time.Second
	tripBucket      = 5 * time.Second // by which the window moves on

	// openTimeout is how long an open breaker waits for its next probe.
	openTimeout = 5 * time.Second

	// probeTimeout is when a probe without a verdict is given up, and another
	// one may go: longer than any first byte is waited for by default.
	probeTimeout = 3 * time.Minute

	// pollInterval is how often run looks at the state: how late a half-open
	// breaker is announced at most.
	pollInterval = 250 * time.Millisecond
)

// ErrNoVerdict is given to a verdict for a request that says nothing about its
// backend.
var ErrNoVerdict = errors.New("providers: no verdict")

// saysNothing reports whether err is the client's doing, or nobody's.
func saysNothing(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, ErrNoVerdict)
}

// breaker keeps requests away from a backend that fails. It stands around
// gobreaker's, which drops a verdict that comes later than its window, knows
// no probe that is lost, and calls back under its lock.
//
// Lock order: gobreaker's own, then mu. No callback runs under either.
type breaker struct {
	two      *gobreaker.TwoStepCircuitBreaker[struct{}]
	onHealth func(Health)

	state       atomic.Uint32 // Health
	epoch       atomic.Uint64 // rises with each change of state: older verdicts are about the past
	consecutive atomic.Int32  // failures since the last success
	cuts        atomic.Int32  // streams that broke off since the last one that ended whole

	mu      sync.Mutex // guards what follows
	news    []Health   // not told yet
	telling bool       // one goroutine tells, so that the order holds
	probe   *verdict   // the one that is out while half-open
}

func newBreaker(name string, onHealth func(Health)) *breaker {
	b := &breaker{onHealth: onHealth}
	b.two = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name: name, MaxRequests: 1,
		Interval: tripWindow, BucketPeriod: tripBucket, Timeout: openTimeout,
		ReadyToTrip:   b.readyToTrip,
		OnStateChange: b.changed,
		IsExcluded:    saysNothing,
	})
	return b
}

// readyToTrip is called under gobreaker's lock.
func (b *breaker) readyToTrip(c gobreaker.Counts) bool {
	settled := c.TotalSuccesses + c.TotalFailures
	return max(b.consecutive.Load(), b.cuts.Load()) >= tripConsecutive || settled >= tripRequests && 2*c.TotalFailures >= settled
}

// changed is called under gobreaker's lock.
func (b *breaker) changed(_ string, _, to gobreaker.State) {
	h := Closed
	switch to {
	case gobreaker.StateOpen:
		h = Open
	case gobreaker.StateHalfOpen:
		h = HalfOpen
	}
	b.state.Store(uint32(h))
	b.epoch.Add(1)
	b.consecutive.Store(0)
	b.cuts.Store(0)
	b.mu.Lock()
	b.probe = nil
	if b.onHealth != nil {
		b.news = append(b.news, h)
	}
	b.mu.Unlock()
}

// health is the state as it was announced last.
func (b *breaker) health() Health { return Health(b.state.Load()) }

// tell announces what changed, in order. Who comes while another one tells
// leaves it to that one; so may onHealth itself.
func (b *breaker) tell() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.telling {
		return
	}
	b.telling = true
	for len(b.news) > 0 {
		h := b.news[0]
		b.news = b.news[1:]
		b.mu.Unlock()
		b.onHealth(h)
		b.mu.Lock()
	}
	b.telling = false
}

// verdict is one request that the breaker let through.
type verdict struct {
	breaker *breaker
	done    func(error)
	begun   time.Time
	epoch   uint64
	given   atomic.Bool
}

func (b *breaker) begin() (func(error), bool) {
	defer b.tell()
	done, err := b.two.Allow()
	if errors.Is(err, gobreaker.ErrTooManyRequests) && b.expireProbe(time.Now()) {
		done, err = b.two.Allow()
	}
	if err != nil {
		return nil, false
	}
	v := &verdict{breaker: b, done: done, begun: time.Now(), epoch: b.epoch.Load()}
	if b.health() == HalfOpen {
		b.mu.Lock()
		b.probe = v
		b.mu.Unlock()
	}
	return v.give, true
}

// give settles the request, once.
func (v *verdict) give(err error) {
	if v.given.Swap(true) {
		return
	}
	b := v.breaker
	defer b.tell()
	b.mu.Lock()
	probe := b.probe == v
	if probe {
		b.probe = nil
	}
	b.mu.Unlock()
	if saysNothing(err) || probe || v.epoch != b.epoch.Load() {
		v.done(err) // gobreaker ignores one from before a change of state
		return
	}
	if time.Since(v.begun) > tripWindow-tripBucket {
		v.done(ErrNoVerdict)
		b.count(err)
		return
	}
	b.countConsecutive(err)
	v.done(err)
}

// count gives a verdict of its own about now, if the breaker is closed.
func (b *breaker) count(err error) {
	if b.two.State() != gobreaker.StateClosed {
		return // it is known to be in trouble, and this is about earlier
	}
	b.countConsecutive(err)
	if done, no := b.two.Allow(); no == nil {
		done(err)
	}
}

func (b *breaker) countConsecutive(err error) {
	if err == nil {
		b.consecutive.Store(0)
	} else {
		b.consecutive.Add(1)
	}
}

func (b *breaker) cut(err error) {
	if err == nil || saysNothing(err) {
		return
	}
	b.count(err)
	b.tell()
}

// streamEnded counts the streams that break off by themselves: a backend that
// begins every stream well has no failures in a row.
func (b *breaker) streamEnded(err error) {
	switch {
	case err == nil:
		b.cuts.Store(0)
	case !saysNothing(err):
		if b.two.State() == gobreaker.StateClosed {
			b.cuts.Add(1)
		}
		b.cut(err)
	}
}

// expireProbe gives the place of a probe back whose verdict is overdue.
func (b *breaker) expireProbe(now time.Time) bool {
	b.mu.Lock()
	v := b.probe
	b.mu.Unlock()
	if v == nil || now.Sub(v.begun) < probeTimeout {
		return false
	}
	v.give(ErrNoVerdict)
	return true
}

func (b *breaker) run(ctx context.Context) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			b.two.State() // half-opens it when it is time
			b.expireProbe(now)
			b.tell()
		}
	}
}
