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

	// FarExpiry, FarIO and FarPatience are Expiry, the time for one answer, and the time
	// for one exchange where the store is an ocean away. The first exchange of a connection
	// waits for five answers. A replica still comes back within ReturnGrace.
	FarExpiry, FarIO, FarPatience = 4 * time.Second, time.Second, 2500 * time.Millisecond

	// FarBackoff is how long a store that is far is left alone at most.
	FarBackoff = 4 * time.Second

	// leaveTimeout bounds the last word of a replica that ends.
	leaveTimeout = 500 * time.Millisecond
)

// Beat is when a loop exchanges.
type Beat struct {
	Every time.Duration // from one exchange to the next; required

	// Patience is how long one exchange may take. 0 = until the one after next is due.
	Patience time.Duration

	// News has changed where there is something to tell at once. It is looked at each
	// LookEvery. nil = there never is.
	News func() uint64
}

// Loop calls step at once and then with each beat until ctx ends, and then leave, which gets
// half a second, or the patience that the beat says: no step begins once ctx has ended.
func Loop(ctx context.Context, beat Beat, step, leave func(context.Context)) {
	patience, news := beat.Patience, beat.News
	if patience <= 0 {
		patience = max(2*beat.Every, 100*time.Millisecond)
	}
	tick := time.NewTicker(beat.Every)
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
		bounded, cancel := context.WithTimeout(ctx, patience)
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
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(leaveTimeout, beat.Patience))
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
