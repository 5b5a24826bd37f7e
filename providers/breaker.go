package providers

import (
	"context"
	"errors"
	"sync"
	"time"

	core "github.com/pacer-dev/pacer/internal/breaker"
)

// pollInterval is how often run looks at the state: how late a half-open
// breaker is announced at most.
const pollInterval = 250 * time.Millisecond

// ErrNoVerdict is given to a verdict for a request that says nothing about its
// backend.
var ErrNoVerdict = errors.New("providers: no verdict")

// verdictOf is what err says about the backend: what is the client's doing, or
// nobody's, says nothing.
func verdictOf(err error) core.Verdict {
	switch {
	case err == nil:
		return core.Worked
	case errors.Is(err, context.Canceled), errors.Is(err, ErrNoVerdict):
		return core.Nothing
	}
	return core.Failed
}

// breaker keeps requests away from a backend that fails, and tells of it.
//
// Lock order: mu is a leaf. No callback runs under it.
type breaker struct {
	onHealth func(Health) // nil = nobody is told
	hangs    func() bool  // whether the backend does

	mu      sync.Mutex // guards what follows
	core    *core.Breaker
	told    core.State
	hung    bool     // it is not closed, and opened while the backend hung
	news    []Health // not told yet
	telling bool     // one goroutine tells, so that the order holds
}

func newBreaker(onHealth func(Health)) *breaker {
	return &breaker{onHealth: onHealth, hangs: func() bool { return false }, core: core.New(core.OfBackend())}
}

// do takes a step at now, and announces what it changed.
func (b *breaker) do(step func(now time.Time)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.note(b.core.State(now)); step != nil {
		step(now)
		b.note(b.core.State(now))
	}
	b.tell()
}

func (b *breaker) note(s core.State) {
	if s == b.told {
		return
	}
	b.told = s
	b.hung = s != core.Closed && (b.hung || s == core.Open && b.hangs())
	if b.onHealth != nil {
		b.news = append(b.news, s)
	}
}

// tell announces what changed, in order. Who comes while another one tells
// leaves it to that one; so may onHealth itself. mu is held.
func (b *breaker) tell() {
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

// begin asks for leave to send a request, which verdict ends.
func (b *breaker) begin() (verdict func(error), ok bool) {
	var try *core.Try
	b.do(func(now time.Time) { try, ok = b.core.Begin(now) })
	if !ok {
		return nil, false
	}
	begun := try // one that stays: else it would be kept for itself
	return func(err error) {
		b.do(func(now time.Time) { b.core.Give(now, begun, verdictOf(err)) })
	}, true
}

// cut counts a failure after the verdict was given.
func (b *breaker) cut(err error) {
	if v := verdictOf(err); v == core.Failed {
		b.do(func(now time.Time) { b.core.Count(now, v) })
	}
}

// heal closes a breaker that opened while the backend hung, now that it shows
// life: what failed was the waiting.
func (b *breaker) heal() {
	b.do(func(now time.Time) {
		if b.hung {
			b.core.Heal(now)
		}
	})
}

// open reports whether the breaker keeps requests away.
func (b *breaker) open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.told != core.Closed
}

func (b *breaker) streamEnded(err error) {
	b.do(func(now time.Time) { b.core.Ended(now, verdictOf(err)) })
}

// run announces what changes by time alone.
func (b *breaker) run(ctx context.Context) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			b.do(nil)
		}
	}
}
