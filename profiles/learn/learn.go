package learn

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/share"
)

const (
	exchangeTimeout = 2 * time.Second // one push and one load; serving waits for the first load
	flushTimeout    = time.Second     // the last push
)

// Options configures a Loop. The zero value of every optional field means the
// default named in its comment.
type Options struct {
	Book    *profiles.Book // required
	Store   profiles.Store // required
	Replica string         // required: unique per process start
	Every   time.Duration  // default 1s
	Log     *slog.Logger   // required

	// HalfLife is that of the Book: deltas that wait for the store are added
	// up with it. Default: 600s.
	HalfLife time.Duration

	// OnCurves is told after each refit; required.
	OnCurves func(now time.Time, curves map[profiles.Target]*profiles.Curve)
	// OnStore is told whether the last exchange with the store worked in full, and
	// how old the oldest delta is that it does not have; nil = nobody.
	OnStore func(whole bool, lag time.Duration)
}

// Loop is the learning loop. Start and Run belong to one goroutine, and each
// is called at most once.
type Loop struct {
	o       Options
	learner *Learner
	whole   bool // the last exchange worked in full

	refused, dropped share.Seldom
}

// New checks o. It starts nothing.
func New(o Options) (*Loop, error) {
	if err := share.Missing("learn", o, "Book", "Store", "Replica", "Log", "OnCurves"); err != nil {
		return nil, err
	}
	if o.Every <= 0 {
		o.Every = time.Second
	}
	if o.OnStore == nil {
		o.OnStore = func(bool, time.Duration) {}
	}
	return &Loop{o: o, learner: NewLearner(o.Book, o.HalfLife)}, nil
}

// Start reads what the store knows, so that the first request already finds
// the curves of earlier days. It takes two seconds at most; without an answer
// learning starts from nothing.
func (l *Loop) Start(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	l.settle(time.Now(), Exchange{targets: l.o.Book.Targets()}.Do(ctx, l.o.Store, l.o.Replica))
}

// Run loops until ctx ends, then folds and pushes a last time (bounded by one
// second).
func (l *Loop) Run(ctx context.Context) error {
	tick := time.NewTicker(l.o.Every)
	defer tick.Stop()
	beat := time.NewTicker(profiles.BeatEvery)
	defer beat.Stop()
	var out chan Answer // an exchange is out while it is not nil
	for {
		select {
		case <-ctx.Done():
			if out != nil {
				l.learner.Settle(<-out) // it had ctx, so it ends too
			}
			l.flush(ctx)
			return nil
		case <-beat.C: // its own time may be from before a pause
			l.o.Book.Beat(time.Now())
		case now := <-tick.C:
			l.learner.Fold(now)
			if out != nil { // the store is slow: go on with what is known here
				l.tell(now, Answer{})
				continue
			}
			out = l.exchange(ctx, l.learner.Next())
		case a := <-out:
			out = nil
			l.settle(time.Now(), a)
		}
	}
}

// exchange starts e. The answer comes on the channel once; the goroutine ends
// with it.
func (l *Loop) exchange(ctx context.Context, e Exchange) chan Answer {
	out := make(chan Answer, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
		defer cancel()
		out <- e.Do(ctx, l.o.Store, l.o.Replica)
	}()
	return out
}

// settle takes an answer. That the store is out is not said here, but by
// share.Link: all exchanges go through one connection.
func (l *Loop) settle(now time.Time, a Answer) {
	l.learner.Settle(a)
	var dropped *profiles.DroppedError
	if errors.As(a.pushErr, &dropped) {
		l.dropped.Warn(l.o.Log, now, "what was learned here cannot be: it is dropped", "error", dropped)
	}
	err := a.err()
	if refusedOf(err) != nil {
		l.refused.Warn(l.o.Log, now, "curves of a target are not shared: learning goes on here", "error", err)
	}
	l.whole = err == nil
	l.tell(now, a)
}

// tell hands on the curves, which rest on a if it holds sums, and how the store is.
func (l *Loop) tell(now time.Time, a Answer) {
	l.learner.Apply(now, a)
	curves := map[profiles.Target]*profiles.Curve{}
	for _, t := range l.o.Book.Targets() {
		curves[t] = l.o.Book.Curve(t)
	}
	l.o.OnCurves(now, curves)
	l.o.OnStore(l.whole, l.learner.Lag(now))
}

// flush pushes what is left when ctx has ended.
func (l *Loop) flush(ctx context.Context) {
	l.learner.Fold(time.Now())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	for l.learner.pending() {
		e := l.learner.Next()
		err := l.o.Store.Push(ctx, l.o.Replica, e.seq, e.deltas)
		if !done(err) {
			l.o.Log.Warn("what was learned last does not reach the store", "since", l.learner.sent.since, "error", err)
			return
		}
		l.learner.Settle(Answer{pushErr: err})
	}
}
