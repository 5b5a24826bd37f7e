// Package learn runs the loop that keeps curves fresh: once a second it folds
// the book, pushes the deltas to the store, reads back the sums of all
// replicas, and hands the new curves on. It owns the only clock and the only
// goroutine of the learning side.
//
// A store that does not answer costs nothing on the request path: deltas wait,
// bounded by being added up, and go out when it is back.
package learn

import (
	"context"
	"log/slog"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// Options configures a Loop.
type Options struct {
	Book    *profiles.Book // required
	Store   profiles.Store // required
	Replica string         // required: unique per process start
	Every   time.Duration  // default 1s
	Log     *slog.Logger   // required
	// OnCurves is told after each refit; required.
	OnCurves func(now time.Time, curves map[profiles.Target]*profiles.Curve)
	// OnStore is told whether the last exchange with the store worked, and
	// how old the oldest delta is that it does not have; nil = nobody.
	OnStore func(up bool, lag time.Duration)
}

// Loop is the learning loop.
type Loop struct{}

// New checks o.
func New(o Options) (*Loop, error) { panic("unwritten") }

// Run loops until ctx ends, then folds and pushes a last time (bounded by one
// second).
func (l *Loop) Run(ctx context.Context) error { panic("unwritten") }

// Memory is the Store inside this process. The zero value is empty and ready;
// it is safe for concurrent use.
type Memory struct{}
