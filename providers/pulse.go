package providers

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// hungAfter is how long a backend that owes an answer shows no life until it
	// counts as hung, and hungLooks how many looks in a row it has to leave
	// unanswered in that time. Engines stop for some seconds to collect garbage or to
	// capture graphs; one that prefills a long prompt answers looks meanwhile.
	hungAfter = 10 * time.Second
	hungLooks = 2

	// suspectAfter is how long a silence is until it is looked at more often, and
	// suspectUnasked where nothing but suspicion has the backend asked at all. Then each
	// answered look doubles it up to suspectLast, until a byte comes: hosted models may
	// think for minutes, and nobody likes to be asked without a key all the time.
	suspectAfter   = 2 * time.Second
	suspectUnasked = 4 * time.Second
	suspectLast    = 32 * time.Second

	// pulseEvery is how exactly it is known when a backend was heard: a store less
	// for each chunk of its streams.
	pulseEvery = 100 * time.Millisecond
)

// Pulse is whether a backend shows life: whether any byte of any answer comes, or
// a page of it answers. A backend that hangs accepts connections and does neither,
// so that nothing fails. It is silent while it owes answers, none of its bytes comes
// and looks at it stay unanswered, or find that it has work and does none.
//
// Hear is for the hot path: two loads, and no lock. Safe for concurrent use. Lock order:
// mu is a leaf, and onChange runs without it.
type Pulse struct {
	born     time.Time
	onChange func() // it hangs, or does no more, or Stands is another while it does; nil = nobody is told

	heard atomic.Int64 // nanoseconds since born: the last byte, at most pulseEvery too early
	seen  atomic.Int64 // since born: the last look that saw something good
	still atomic.Bool  // its page of metrics has work, and stands still: that its other page answers means nothing
	hung  atomic.Bool
	ended atomic.Int64 // since born: when it last hung; 0 = never

	mu     sync.Mutex    // guards what follows
	owed   int           // answers that are waited for
	since  time.Duration // since born: when the first of them was
	missed int           // looks in a row that saw nothing good
	first  time.Duration // since born: when the first of those began
}

func newPulse(onChange func()) *Pulse { return &Pulse{born: time.Now(), onChange: onChange} }

// Owe says that an answer is waited for from now on, until Settle.
func (p *Pulse) Owe(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owed++; p.owed == 1 {
		p.since = now.Sub(p.born)
	}
}

// Settle says that one answer less is waited for.
func (p *Pulse) Settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owed--
}

// Hear says that bytes of an answer came at now.
func (p *Pulse) Hear(now time.Time) {
	at := int64(now.Sub(p.born))
	if at-p.heard.Load() >= int64(pulseEvery) {
		p.heard.Store(at)
	}
	if p.hung.Load() {
		p.end(at)
	}
}

// See says that a look saw something good at now. While its page of metrics stands
// still that is no life: a server answers pages, though its GPU does nothing.
func (p *Pulse) See(now time.Time) {
	if p.still.Load() {
		return
	}
	at := int64(now.Sub(p.born))
	p.seen.Store(at)
	if p.hung.Load() {
		p.end(at)
	}
}

// Stand says whether the page of metrics claims work, and has not changed for
// hungAfter. With no byte of any answer in that time it hangs. A page that could not be
// read says nothing.
func (p *Pulse) Stand(now time.Time, still, read bool) {
	hung, was := p.hung.Load(), p.still.Swap(still)
	switch {
	case still && p.Quiet(now):
		p.hang()
	case was && !still && read:
		p.See(now)
	}
	if was != still && hung && p.hung.Load() && p.onChange != nil {
		p.onChange()
	}
}

// hang begins a hang.
func (p *Pulse) hang() {
	if p.hung.CompareAndSwap(false, true) && p.onChange != nil {
		p.onChange()
	}
}

// end is the end of a hang.
func (p *Pulse) end(at int64) {
	p.ended.Store(at)
	if p.hung.CompareAndSwap(true, false) && p.onChange != nil {
		p.onChange()
	}
}

// Quiet reports whether the backend owes an answer and sent no byte for as long as one
// that hangs.
func (p *Pulse) Quiet(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.silence(now.Sub(p.born), p.heard.Load()) >= hungAfter
}

// Hung reports whether the backend hangs.
func (p *Pulse) Hung() bool { return p.hung.Load() }

// Stands reports whether it hangs behind pages that answer: once nobody waits there,
// nothing shows whether it still does.
func (p *Pulse) Stands() bool { return p.hung.Load() && p.still.Load() }

// Doubtful reports whether the backend hangs, or the last look at it saw nothing good and
// nothing came since: where all hang at once one is known before the others.
func (p *Pulse) Doubtful() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hung.Load() || p.missed > 0 && time.Duration(p.life()) <= p.first
}

// HungSince reports whether the backend hung at t or later.
func (p *Pulse) HungSince(t time.Time) bool {
	ended := p.ended.Load()
	return p.hung.Load() || ended > 0 && ended >= int64(t.Sub(p.born))
}

// life is when the backend showed any, last.
func (p *Pulse) life() int64 { return max(p.heard.Load(), p.seen.Load()) }

// silence is for how long the backend owes an answer and showed nothing since last. mu
// is held.
func (p *Pulse) silence(at time.Duration, last int64) time.Duration {
	if p.owed <= 0 {
		return 0
	}
	return at - max(time.Duration(last), p.since)
}

// suspect reports whether a silence of more than d is to be looked into.
func (p *Pulse) suspect(now time.Time, d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hung.Load() || p.silence(now.Sub(p.born), p.life()) >= d
}

// miss says that a look which began then saw nothing good by now.
func (p *Pulse) miss(began, now time.Time) {
	if p.notes(began.Sub(p.born), now.Sub(p.born)) {
		p.hang()
	}
}

// notes takes note of a look that saw nothing good, and reports whether the backend
// hangs by that.
func (p *Pulse) notes(began, at time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := time.Duration(p.life()); p.missed == 0 || last > p.first {
		p.missed, p.first = 0, began
		if last > began {
			return false // meanwhile it was
		}
	}
	p.missed++
	return p.missed >= hungLooks && p.silence(at, p.life()) >= hungAfter
}
