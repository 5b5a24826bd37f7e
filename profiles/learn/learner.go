package learn

import (
	"context"
	"errors"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// Learner is the pure step of learning: what was folded and is on its way to the
// store, what has arrived there, and what the curves rest on. It reads no clock
// and asks nobody; a Loop drives it, and the arena. It belongs to one goroutine.
//
// A round is Fold, Next, Exchange.Do, Settle and Apply. While an exchange is out,
// folding and applying go on.
type Learner struct {
	book     *profiles.Book
	halfLife time.Duration

	seq     uint64 // number of sent; of the last one pushed when sent is empty
	sent    batch  // pushed, and not known to have arrived; retried unchanged
	waiting batch  // folded since, for the next push
	arrived batch  // pushed, and not in sums that were loaded yet
}

// NewLearner returns that of a book. Deltas that wait for the store are added up
// with halfLife, which is the Book's; 0 = 600s.
func NewLearner(book *profiles.Book, halfLife time.Duration) *Learner {
	if halfLife <= 0 {
		halfLife = defaultHalfLife
	}
	none := batch{halfLife: halfLife}
	return &Learner{book: book, halfLife: halfLife, sent: none, waiting: none, arrived: none}
}

// Fold takes in what was gathered since the last fold.
func (l *Learner) Fold(now time.Time) {
	l.waiting.fold(now, l.book.Fold(now))
}

// Exchange is one push and one load. The zero value does nothing.
type Exchange struct {
	seq     uint64
	deltas  []profiles.Delta // nil = only load
	targets []profiles.Target
}

// Next is the exchange that is due: what was sent and not acknowledged is sent
// again unchanged; else what waits is sent under the next number.
func (l *Learner) Next() Exchange {
	if l.sent.empty() && !l.waiting.empty() {
		l.seq++
		l.sent, l.waiting = l.waiting, batch{halfLife: l.halfLife}
	}
	return Exchange{seq: l.seq, deltas: l.sent.deltas, targets: l.book.Targets()}
}

// Answer is what became of one Exchange. The zero value is that of none.
type Answer struct {
	pushErr, loadErr error
	loaded           bool // sums holds what the store has
	sums             map[profiles.Target]profiles.Sums
}

// Do asks the store. It may run beside the Learner.
func (e Exchange) Do(ctx context.Context, store profiles.Store, replica string) (a Answer) {
	if len(e.deltas) > 0 {
		a.pushErr = store.Push(ctx, replica, e.seq, e.deltas)
	}
	if done(a.pushErr) {
		a.sums, a.loadErr = store.Load(ctx, e.targets)
		a.loaded = a.loadErr == nil || refusedOf(a.loadErr) != nil
	}
	return a
}

// Settle notes what has arrived.
func (l *Learner) Settle(a Answer) {
	if !done(a.pushErr) {
		return
	}
	refused := refusedOf(a.pushErr)
	if len(refused) == 0 && l.arrived.empty() {
		l.arrived, l.sent.deltas = l.sent, nil
	}
	for _, d := range l.sent.deltas {
		if !refused[d.Target] {
			l.arrived.add(l.sent.since, d)
		}
	}
	l.sent = batch{halfLife: l.halfLife}
}

// Apply rests the curves on what the store has, if a holds it. If not they rest
// on what is known here: the fold has redrawn them.
func (l *Learner) Apply(now time.Time, a Answer) {
	if a.loaded {
		l.book.Apply(now, a.sums, l.arrived.deltas)
		l.arrived = batch{halfLife: l.halfLife}
	}
}

// Round is a whole round at one instant, with a store that answers at once: then each
// curve is drawn once, of what the store has, and not of the fold before.
func (l *Learner) Round(ctx context.Context, now time.Time, store profiles.Store, replica string) {
	l.waiting.fold(now, l.book.Gather(now))
	a := l.Next().Do(ctx, store, replica)
	l.Settle(a)
	if !a.loaded {
		l.book.Refit()
	}
	l.Apply(now, a)
}

// Lag is the age of the oldest delta that the store does not have.
func (l *Learner) Lag(now time.Time) time.Duration {
	switch {
	case !l.sent.empty():
		return now.Sub(l.sent.since)
	case !l.waiting.empty():
		return now.Sub(l.waiting.since)
	}
	return 0
}

// pending reports whether anything is not known to be in the store.
func (l *Learner) pending() bool { return !l.sent.empty() || !l.waiting.empty() }

// err is why not everything worked; that deltas were dropped is nothing that can
// be mended.
func (a *Answer) err() error {
	if a.pushErr == nil || onlyDropped(a.pushErr) || a.loadErr != nil && !a.loaded {
		return a.loadErr
	}
	return a.pushErr
}

// refused is what an error of a Store may be: these targets are not taken, now
// or later, and everything else was done.
type refused interface {
	error
	Refused() []profiles.Target
}

// refusedOf returns the targets that err says are refused, nil when err is
// none or says that nothing was done.
func refusedOf(err error) map[profiles.Target]bool {
	var r refused
	if !errors.As(err, &r) {
		return nil
	}
	set := map[profiles.Target]bool{}
	for _, t := range r.Refused() {
		set[t] = true
	}
	return set
}

// done reports whether a Push that returned err did all that it ever will.
func done(err error) bool {
	return err == nil || refusedOf(err) != nil || onlyDropped(err)
}

// onlyDropped reports whether err is that deltas were dropped, and nothing else.
func onlyDropped(err error) bool {
	var dropped *profiles.DroppedError
	return errors.As(err, &dropped) && refusedOf(err) == nil
}
