package breaker

import "time"

// State is whether tries are let through.
type State uint8

// The states of a Breaker: all go through, one does, none does.
const (
	Closed State = iota
	HalfOpen
	Open
)

// String returns closed, half-open or open.
func (s State) String() string { return [...]string{"closed", "half-open", "open"}[s] }

// Verdict is what a try says.
type Verdict uint8

// The verdicts: nothing was learned, it worked, it failed.
const (
	Nothing Verdict = iota
	Worked
	Failed
)

// Options says when a Breaker opens and for how long.
type Options struct {
	// InARow is how many failures in a row open it, or cuts. Required.
	InARow int

	// Share opens it, too, when at least so many verdicts came within Window and
	// half of them are failures; 0 = that does not. The window moves on by Bucket.
	Share          int
	Window, Bucket time.Duration

	// Wait is how long it stays open, given how often it had opened before
	// without staying closed for Calm. Required.
	Wait func(opened int) time.Duration
	Calm time.Duration // 0 = each time it closes counts

	// Lost is when a try of the half-open state without a verdict is given up, and
	// another may go. 0 = never.
	Lost time.Duration
}

// Breaker keeps tries away from what fails. New makes one, closed.
type Breaker struct {
	o       Options
	state   State
	until   time.Time // open: not tried before
	epoch   uint64    // rises with each change of state
	inRow   int       // failures since the last success
	cuts    int       // streams that broke off since the last one that ended whole
	opened  int       // times in a row, see Options.Wait
	closed  time.Time // when it closed last; zero = never
	probe   *Try      // the one that is out while half-open
	buckets []bucket  // of the window
}

// bucket counts the verdicts of a part of the window.
type bucket struct {
	number         int64 // of the part, from the zero of time
	worked, failed int
}

// Try is one that was let through; Give ends it.
type Try struct {
	begun time.Time
	epoch uint64
	given bool
}

// New returns a closed Breaker.
func New(o Options) *Breaker {
	b := &Breaker{o: o}
	if o.Share > 0 {
		b.buckets = make([]bucket, o.Window/o.Bucket)
	}
	return b
}

// State returns the state at now: an open Breaker becomes half-open by time alone.
func (b *Breaker) State(now time.Time) State {
	if b.state == Open && !now.Before(b.until) {
		b.become(HalfOpen)
	}
	if p := b.probe; p != nil && b.o.Lost > 0 && now.Sub(p.begun) >= b.o.Lost {
		p.given, b.probe = true, nil
	}
	return b.state
}

// Begin asks for leave to try, which ends with Give.
func (b *Breaker) Begin(now time.Time) (*Try, bool) {
	s := b.State(now)
	if s == Open || s == HalfOpen && b.probe != nil {
		return nil, false
	}
	t := &Try{begun: now, epoch: b.epoch}
	if s == HalfOpen {
		b.probe = t
	}
	return t, true
}

// Give ends a try, once.
func (b *Breaker) Give(now time.Time, t *Try, v Verdict) {
	if t.given {
		return
	}
	t.given = true
	switch {
	case b.probe == t:
		b.probe = nil
		b.found(now, v)
	case t.epoch == b.epoch:
		b.Count(now, v)
	}
}

// found draws the conclusion of a try in the half-open state.
func (b *Breaker) found(now time.Time, v Verdict) {
	switch v {
	case Worked:
		b.closed = now
		b.become(Closed)
	case Failed:
		b.open(now)
	}
}

// Count takes a verdict about now without a try: only while closed, for else the
// trouble is known, and the verdict is about earlier.
func (b *Breaker) Count(now time.Time, v Verdict) {
	if v == Nothing || b.State(now) != Closed {
		return
	}
	c := b.bucketAt(now)
	if v == Worked {
		b.inRow = 0
		c.worked++
		return
	}
	b.inRow++
	c.failed++
	if max(b.inRow, b.cuts) >= b.o.InARow || b.half(c.number) {
		if b.o.Calm == 0 || now.Sub(b.closed) >= b.o.Calm {
			b.opened = 0
		}
		b.open(now)
	}
}

// Ended counts the streams that break off by themselves: what begins every
// stream well has no failures in a row. A cut is a failure, too.
func (b *Breaker) Ended(now time.Time, v Verdict) {
	switch {
	case v == Worked:
		b.cuts = 0
	case v == Failed && b.State(now) == Closed:
		b.cuts++
		b.Count(now, v)
	}
}

// Probed reports what a try in the half-open state found that somebody else let
// through.
func (b *Breaker) Probed(now time.Time, v Verdict) {
	if b.State(now) == HalfOpen {
		b.found(now, v)
	}
}

// Heal closes b: the reason is gone for which it opened, as is known without a try.
func (b *Breaker) Heal(now time.Time) {
	if b.State(now) != Closed {
		b.closed = now
		b.become(Closed)
	}
}

// RetryIn is how long it is until a try may go, 0 when one may now or is out.
func (b *Breaker) RetryIn(now time.Time) time.Duration {
	if b.State(now) != Open {
		return 0
	}
	return b.until.Sub(now)
}

func (b *Breaker) open(now time.Time) {
	b.until = now.Add(b.o.Wait(b.opened))
	b.opened++
	b.become(Open)
}

func (b *Breaker) become(s State) {
	b.state = s
	b.epoch++
	b.inRow, b.cuts, b.probe = 0, 0, nil
	clear(b.buckets)
}

// bucketAt returns where the verdicts of now are counted.
func (b *Breaker) bucketAt(now time.Time) *bucket {
	if len(b.buckets) == 0 {
		return &bucket{}
	}
	number := now.UnixNano() / int64(b.o.Bucket)
	c := &b.buckets[uint64(number)%uint64(len(b.buckets))] // number is negative before 1970
	if c.number != number {
		*c = bucket{number: number}
	}
	return c
}

// half reports whether half of the window's verdicts are failures, and enough of
// them are there.
func (b *Breaker) half(number int64) bool {
	worked, failed := 0, 0
	for _, c := range b.buckets {
		if c.number > number-int64(len(b.buckets)) {
			worked += c.worked
			failed += c.failed
		}
	}
	return len(b.buckets) > 0 && worked+failed >= b.o.Share && failed >= worked
}
