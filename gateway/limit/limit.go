package limit

import (
	"fmt"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/config"
)

// Limiter holds one key to its limits. It is safe for concurrent use. A nil
// Limiter limits nothing.
type Limiter struct {
	limits config.KeyLimits

	mu       sync.Mutex // guards what follows
	requests bucket
	tokens   bucket
	running  int       // sequences
	touched  time.Time // when somebody last asked for a place

	// What other replicas have to do with it: see Report.
	among       int    // replicas that the limits are divided among, at least 1
	elsewhere   int    // running on other replicas
	told        bool   // a report is out that was not answered
	seq         uint64 // its number
	toldRunning int    // what the last report said
}

// New returns a limiter that has used nothing yet; nil when l limits nothing.
func New(l config.KeyLimits) *Limiter {
	if l == (config.KeyLimits{}) {
		return nil
	}
	return &Limiter{
		limits:   l,
		among:    1,
		requests: bucket{size: float64(l.RequestsPerMinute), least: 1},
		tokens:   bucket{size: float64(l.TokensPerMinute)},
	}
}

// part is how much of the limits is for this replica. mu is held.
func (l *Limiter) part() float64 { return 1 / float64(l.among) }

// fill brings both buckets up to now. mu is held.
func (l *Limiter) fill(now time.Time) {
	l.requests.fill(now, l.part())
	l.tokens.fill(now, l.part())
}

// Exceeded reports which limit a request ran into.
type Exceeded struct {
	What       string // requests, tokens or concurrency
	Limit      int    // per minute; of concurrency, at once
	RetryAfter time.Duration
	Never      int // so many sequences, which the limit never lets run at once; 0 = waiting helps
}

// Error returns the limit in words.
func (e *Exceeded) Error() string {
	switch e.What {
	case "concurrency":
		return fmt.Sprintf("%d requests at once", e.Limit)
	default:
		return fmt.Sprintf("%d %s per minute", e.Limit, e.What)
	}
}

// busyRetry is when a key that runs as many requests as it may should come
// back: nobody knows when the first of them ends.
const busyRetry = time.Second

// Enter takes the place of one request before anything of it is known but its
// key: one of the requests per minute, and one of those at once. Somebody must
// Charge the Permit with the request's tokens, or give the place up with Settle.
// A key that has no token left is refused here: there is no request without one.
// The error is an *Exceeded.
func (l *Limiter) Enter(now time.Time) (*Permit, error) {
	if l == nil {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fill(now)
	l.touched = now
	if c := l.limits.Concurrency; c > 0 && l.running+l.elsewhere >= max(c/l.among, 1) {
		return nil, &Exceeded{What: "concurrency", Limit: c, RetryAfter: busyRetry}
	}
	if wait := l.requests.wait(1, l.part()); wait > 0 {
		return nil, &Exceeded{What: "requests", Limit: l.limits.RequestsPerMinute, RetryAfter: wait}
	}
	if err := l.lacks(1); err != nil {
		return nil, err
	}
	l.requests.take(1)
	l.running++
	return &Permit{limiter: l, places: 1}, nil
}

// crowds says that so many sequences are more than may run at once beside others; nil =
// they are not. Where the limit is divided, one request may pass this replica's part
// while nothing else runs: its sequences cannot be divided. mu is held.
func (l *Limiter) crowds(others, sequences int) error {
	c := l.limits.Concurrency
	switch {
	case c == 0 || sequences <= 1 || others+sequences <= max(c/l.among, 1):
		return nil
	case sequences > c:
		return &Exceeded{What: "concurrency", Limit: c, Never: sequences}
	case others == 0:
		return nil
	}
	return &Exceeded{What: "concurrency", Limit: c, RetryAfter: busyRetry}
}

// lacks says how long it takes until there are so many tokens; nil = they are
// there. mu is held.
func (l *Limiter) lacks(tokens float64) error {
	if wait := l.tokens.wait(tokens, l.part()); wait > 0 {
		return &Exceeded{What: "tokens", Limit: l.limits.TokensPerMinute, RetryAfter: wait}
	}
	return nil
}

// Permit is one request under way. A nil Permit is that of no limits.
type Permit struct {
	limiter *Limiter
	cost    float64 // tokens taken by Charge
	places  int     // of those at once: guarded by limiter.mu, as is what follows
	charged bool
	left    bool
	settled bool
}

// Charge takes the tokens that the request is expected to cost, prompt and
// answer, and a place for each sequence that it decodes at once: an engine runs
// one of a hundred sequences as a hundred requests. Where there are not as many it
// gives the whole place back, and the error is an *Exceeded. An estimate above a
// whole minute's tokens counts as that minute: it must be possible to send it at
// all. It is called once.
func (p *Permit) Charge(now time.Time, tokens, sequences int) error {
	if p == nil {
		return nil
	}
	l := p.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fill(now)
	cost := max(float64(tokens), 0)
	if l.tokens.size > 0 {
		cost = min(cost, l.tokens.size)
	}
	err := l.crowds(l.running-p.places+l.elsewhere, sequences)
	if err == nil {
		err = l.lacks(cost)
	}
	if err != nil {
		p.settle(0)
		return err
	}
	l.tokens.take(cost)
	l.running += max(sequences, 1) - p.places
	p.places = max(sequences, 1)
	p.cost, p.charged = cost, true
	return nil
}

// Leave ends the request as one of those at once: all of its answer is there.
// What it used is settled later. Calls after the first do nothing.
func (p *Permit) Leave() {
	if p == nil {
		return
	}
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	p.leave()
}

// leave is Leave under the lock.
func (p *Permit) leave() {
	if !p.left {
		p.left = true
		p.limiter.running -= p.places
	}
}

// Settle ends the request with the tokens that it really used: what was taken
// too much comes back, what was missing is owed. A request that was never
// charged was none, and does not count as one of its minute. Calls after the
// first do nothing.
func (p *Permit) Settle(now time.Time, tokens float64) {
	if p == nil {
		return
	}
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	p.limiter.fill(now)
	p.settle(tokens)
}

// settle is Settle under the lock.
func (p *Permit) settle(tokens float64) {
	if p.settled {
		return
	}
	p.settled = true
	p.leave()
	if p.charged {
		p.limiter.tokens.take(tokens - p.cost)
	} else {
		p.limiter.requests.take(-1)
	}
}

// State is what a key has left.
type State struct {
	Requests, Tokens Left
}

// Left is what is left of one limit. Limit 0 = there is none.
type Left struct {
	Limit     int           // per minute
	Remaining int           // never below 0
	Reset     time.Duration // until all of it is there again
}

// State returns what is left at now.
func (l *Limiter) State(now time.Time) State {
	if l == nil {
		return State{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fill(now)
	return State{Requests: l.requests.left(l.limits.RequestsPerMinute, l.part()), Tokens: l.tokens.left(l.limits.TokensPerMinute, l.part())}
}
