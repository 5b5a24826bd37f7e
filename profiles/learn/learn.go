package learn

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

const (
	startTimeout    = 2 * time.Second // the first load, which serving waits for
	exchangeTimeout = 2 * time.Second // one push and one load
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
	// OnStore is told whether the last exchange with the store worked, and
	// how old the oldest delta is that it does not have; nil = nobody.
	OnStore func(up bool, lag time.Duration)
}

// Loop is the learning loop. Start and Run belong to one goroutine, and each
// is called at most once.
type Loop struct {
	o Options

	seq     uint64 // number of sent; of the last one pushed when sent is empty
	sent    batch  // pushed, and not known to have arrived; retried unchanged
	waiting batch  // folded since, for the next push
	arrived batch  // pushed, and not in sums that were loaded yet
	link    link
}

// New checks o. It starts nothing.
func New(o Options) (*Loop, error) {
	switch {
	case o.Book == nil:
		return nil, errors.New("learn: Book is missing")
	case o.Store == nil:
		return nil, errors.New("learn: Store is missing")
	case o.Replica == "":
		return nil, errors.New("learn: Replica is missing")
	case o.Log == nil:
		return nil, errors.New("learn: Log is missing")
	case o.OnCurves == nil:
		return nil, errors.New("learn: OnCurves is missing")
	}
	if o.Every <= 0 {
		o.Every = time.Second
	}
	if o.HalfLife <= 0 {
		o.HalfLife = defaultHalfLife
	}
	if o.OnStore == nil {
		o.OnStore = func(bool, time.Duration) {}
	}
	return &Loop{
		o:       o,
		sent:    batch{halfLife: o.HalfLife},
		waiting: batch{halfLife: o.HalfLife},
		arrived: batch{halfLife: o.HalfLife},
		link:    link{log: o.Log},
	}, nil
}

// Start reads what the store knows, so that the first request already finds
// the curves of earlier days. It takes two seconds at most; a store that does
// not answer is logged, and learning starts from nothing.
func (l *Loop) Start(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var a answer
	a.load(ctx, l.o.Store, l.o.Book.Targets())
	now := time.Now()
	l.apply(now, a)
	l.tell(now, a.loadErr)
}

// Run loops until ctx ends, then folds and pushes a last time (bounded by one
// second).
func (l *Loop) Run(ctx context.Context) error {
	tick := time.NewTicker(l.o.Every)
	defer tick.Stop()
	beat := time.NewTicker(profiles.BeatEvery)
	defer beat.Stop()
	var out chan answer // an exchange is out while it is not nil
	for {
		select {
		case <-ctx.Done():
			if out != nil {
				l.settle(<-out) // it had ctx, so it ends too
			}
			l.flush(ctx)
			return nil
		case <-beat.C: // its own time may be from before a pause
			l.o.Book.Beat(time.Now())
		case now := <-tick.C:
			l.fold(now)
			if out != nil {
				// The store is slow: go on with what is known here.
				l.apply(now, answer{})
				l.o.OnStore(l.link.up, l.lag(now))
				continue
			}
			out = l.exchange(ctx)
		case a := <-out:
			out = nil
			now := time.Now()
			err := l.settle(a)
			l.apply(now, a)
			l.tell(now, err)
		}
	}
}

// fold takes in what was gathered since the last fold.
func (l *Loop) fold(now time.Time) {
	for _, d := range l.o.Book.Fold(now) {
		l.waiting.add(now, d)
	}
}

// answer is what became of one exchange.
type answer struct {
	pushErr, loadErr error
	loaded           bool // sums holds what the store has
	sums             map[profiles.Target]profiles.Sums
}

func (a *answer) load(ctx context.Context, store profiles.Store, targets []profiles.Target) {
	a.sums, a.loadErr = store.Load(ctx, targets)
	a.loaded = a.loadErr == nil || refusedOf(a.loadErr) != nil
}

// exchange starts one push and one load. The answer comes on the channel once;
// the goroutine ends with it.
func (l *Loop) exchange(ctx context.Context) chan answer {
	if l.sent.empty() && !l.waiting.empty() {
		l.send()
	}
	seq, deltas, targets := l.seq, l.sent.deltas, l.o.Book.Targets()
	out := make(chan answer, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
		defer cancel()
		var a answer
		if len(deltas) > 0 {
			a.pushErr = l.o.Store.Push(ctx, l.o.Replica, seq, deltas)
		}
		if done(a.pushErr) {
			a.load(ctx, l.o.Store, targets)
		}
		out <- a
	}()
	return out
}

// send makes the waiting deltas the ones to be pushed, under the next number.
func (l *Loop) send() {
	l.seq++
	l.sent, l.waiting = l.waiting, batch{halfLife: l.o.HalfLife}
}

// settle notes what has arrived and returns why not everything worked.
func (l *Loop) settle(a answer) error {
	if done(a.pushErr) {
		l.link.drop(time.Now(), a.pushErr)
		refused := refusedOf(a.pushErr)
		for _, d := range l.sent.deltas {
			if !refused[d.Target] {
				l.arrived.add(l.sent.since, d)
			}
		}
		l.sent = batch{halfLife: l.o.HalfLife}
	}
	switch {
	case a.loadErr != nil && !a.loaded, a.pushErr == nil, onlyDropped(a.pushErr):
		return a.loadErr
	}
	return a.pushErr
}

// apply rests the curves on what the store has, if a holds it, and hands them
// on. If not they rest on what is known here: the fold has redrawn them.
func (l *Loop) apply(now time.Time, a answer) {
	if a.loaded {
		l.o.Book.Apply(now, a.sums, l.arrived.deltas)
		l.arrived = batch{halfLife: l.o.HalfLife}
	}
	curves := map[profiles.Target]*profiles.Curve{}
	for _, t := range l.o.Book.Targets() {
		curves[t] = l.o.Book.Curve(t)
	}
	l.o.OnCurves(now, curves)
}

func (l *Loop) tell(now time.Time, err error) {
	l.link.see(now, err)
	l.o.OnStore(l.link.up, l.lag(now))
}

// lag is the age of the oldest delta that the store does not have.
func (l *Loop) lag(now time.Time) time.Duration {
	switch {
	case !l.sent.empty():
		return now.Sub(l.sent.since)
	case !l.waiting.empty():
		return now.Sub(l.waiting.since)
	}
	return 0
}

// flush pushes what is left when ctx has ended.
func (l *Loop) flush(ctx context.Context) {
	l.fold(time.Now())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	for !l.sent.empty() || !l.waiting.empty() {
		if l.sent.empty() {
			l.send()
		}
		err := l.o.Store.Push(ctx, l.o.Replica, l.seq, l.sent.deltas)
		if !done(err) {
			l.o.Log.Warn("what was learned last does not reach the store", "since", l.sent.since, "error", err)
			return
		}
		l.sent = batch{halfLife: l.o.HalfLife}
	}
}
