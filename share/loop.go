package share

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"
)

// Missing returns an error for the first of the fields that the options of a loop
// do not have; nil = they have all.
func Missing(loop string, options any, fields ...string) error {
	of := reflect.ValueOf(options)
	for _, name := range fields {
		if of.FieldByName(name).IsZero() {
			return fmt.Errorf("%s: %s is missing", loop, name)
		}
	}
	return nil
}

const (
	// Every is the time between two exchanges of what changes with each request.
	Every = 200 * time.Millisecond

	// Expiry is how long such an exchange is good for: with the one that finds it,
	// a dead replica is gone within a second.
	Expiry = 4 * Every

	// LookEvery is how soon it is seen that there is something to tell at once.
	LookEvery = 20 * time.Millisecond

	// leaveTimeout bounds the last word of a replica that ends.
	leaveTimeout = 500 * time.Millisecond
)

// Loop calls step at once and then every so often until ctx ends, and then leave:
// no step begins once ctx has ended.
// A step gets no more time than until the exchange after next is due; leave gets
// half a second. news, unless it is nil, is looked at each LookEvery: where it has
// changed since the last step began, the next one does not wait.
func Loop(ctx context.Context, every time.Duration, news func() uint64, step, leave func(context.Context)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var look <-chan time.Time
	if news == nil {
		news = func() uint64 { return 0 }
	} else {
		t := time.NewTicker(LookEvery)
		defer t.Stop()
		look = t.C
	}
	for ctx.Err() == nil {
		heard := news()
		bounded, cancel := context.WithTimeout(ctx, max(2*every, 100*time.Millisecond))
		step(bounded)
		cancel()
		for due := false; !due && ctx.Err() == nil; {
			select {
			case <-ctx.Done():
			case <-look:
				due = news() != heard
			case <-tick.C:
				due = true
			}
		}
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	leave(bounded)
	cancel()
}

// sayEvery is how often Seldom says the same.
const sayEvery = 10 * time.Minute

// Seldom warns of what would come again with each exchange: once in ten minutes.
// The zero value has said nothing. It is safe for concurrent use.
type Seldom struct {
	mu   sync.Mutex // guards said; a leaf
	said time.Time  // zero = never
}

// Warn logs message, unless something was said in the last ten minutes.
func (s *Seldom) Warn(log *slog.Logger, now time.Time, message string, args ...any) {
	s.mu.Lock()
	again := !s.said.IsZero() && now.Sub(s.said) < sayEvery
	if !again {
		s.said = now
	}
	s.mu.Unlock()
	if !again {
		log.Warn(message, args...)
	}
}
