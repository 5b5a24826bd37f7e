package providers

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/internal/credential"
	"github.com/pacer-dev/pacer/internal/upstream"
)

// Key is one of the credentials of a backend.
type Key struct {
	Source         credential.Source // required
	MaxConcurrency int               // requests with it at once; 0 = no cap of its own
}

const (
	// keyRest is how long a key rests that was refused, or that is full and did not
	// say for how long; then twice as long, and so on up to keyRestMost. One that
	// says so itself is believed as far.
	keyRest     = time.Second
	keyRestMost = time.Minute

	// tellingModels bounds of how many models the limits of one key are kept.
	tellingModels = 256
)

// pool is the credentials of one backend, which take turns: the one with the
// fewest requests for its cap goes first. One that is refused or full rests, and
// the others go on. Safe for concurrent use.
type pool struct {
	kind   *upstream.Kind
	capped bool // one has a cap

	mu   sync.Mutex // guards what follows, and each key
	keys []*key
	next int // takes the turn among equals
}

// key is one credential and what is known of it. Guarded by pool.mu but for Key.
type key struct {
	Key
	running int // requests, where the pool is capped
	until   time.Time
	rested  int           // how often it began to rest
	wait    time.Duration // of the next rest; 0 = it was not refused since it served
	limits  map[string]*allowance
}

// allowance is what a backend told of the limits of one key for one model.
type allowance struct {
	told upstream.Limits
	at   time.Time
	sent cost // with the key for the model, since the beginning
	paid cost // of sent: counted in told
}

// cost is what a request takes of limits, or many took.
type cost [4]float64

func newPool(kind *upstream.Kind, keys []Key) *pool {
	p := &pool{kind: kind}
	for _, k := range keys {
		p.keys = append(p.keys, &key{Key: k})
		p.capped = p.capped || k.MaxConcurrency > 0
	}
	return p
}

// loan is a key that one send carries.
type loan struct {
	pool  *pool
	key   *key
	model string
	value credential.Value
	rests int  // of the key, when it was lent
	mark  cost // what was sent with the key, this one too
	known *allowance
}

// lend takes a key for a request for a model, none of those that were tried; ok
// is false where there is no other.
func (p *pool) lend(now time.Time, model string, takes cost, tried []*key) (l loan, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.choose(now, model, tried)
	if k == nil {
		return loan{}, false
	}
	l = loan{pool: p, key: k, model: model, rests: k.rested}
	if p.capped {
		k.running++
	}
	if a := k.limits[model]; a != nil {
		for i := range a.sent {
			a.sent[i] += takes[i]
		}
		l.mark, l.known = a.sent, a
	}
	return l, true
}

// choose is the key that has most room. One that rests, is at its cap or has
// nothing left of a limit is taken only where all do, and then only the first
// time: the one whose rest ends first. mu is held.
func (p *pool) choose(now time.Time, model string, tried []*key) (best *key) {
	for i := range p.keys {
		k := p.keys[(p.next+i)%len(p.keys)]
		if slices.Contains(tried, k) || !k.free(now, model) {
			continue
		}
		if best == nil || k.load() < best.load() {
			best = k
		}
	}
	if best == nil && len(tried) == 0 {
		for _, k := range p.keys {
			if best == nil || k.until.Before(best.until) {
				best = k
			}
		}
	}
	p.next++
	return best
}

// free reports whether k can take a request for a model.
func (k *key) free(now time.Time, model string) bool {
	if k.rests(now) || k.MaxConcurrency > 0 && k.running >= k.MaxConcurrency {
		return false
	}
	a := k.limits[model]
	if a == nil {
		return true
	}
	left := a.left(now)
	return !slices.ContainsFunc(left[:], func(l upstream.Left) bool { return !l.Until.IsZero() && l.Left < 1 })
}

// rests reports whether k rests: not when the clock was set back.
func (k *key) rests(now time.Time) bool {
	left := k.until.Sub(now)
	return left > 0 && left <= keyRestMost
}

// load is how much of its cap k uses; of one without a cap as if that were 64.
func (k *key) load() float64 {
	most := k.MaxConcurrency
	if most <= 0 {
		most = 64
	}
	return float64(k.running) / float64(most)
}

// left is what is left of each limit now. What ends is no limit any more.
func (a *allowance) left(now time.Time) upstream.Limits {
	out := a.told
	since := now.Sub(a.at).Seconds()
	for i := range out {
		l := &out[i]
		if !now.Before(l.Until) || since < 0 {
			*l = upstream.Left{}
			continue
		}
		l.Left += l.Refill * since
		if l.Most > 0 {
			l.Left = min(l.Left, l.Most)
		}
		l.Left = max(l.Left-(a.sent[i]-a.paid[i]), 0)
	}
	return out
}

// keyVerdict is what an answer says of the key that the request had.
type keyVerdict uint8

const (
	keyServed  keyVerdict = iota // nothing against it
	keyStale                     // it is refused, and its source makes another one
	keyRefused                   // it is refused, or full
	keyDoubted                   // it, or the request, is refused: another key shows
)

// mostKeys is how many keys one request is sent with, at most.
const mostKeys = 4

// answered hears what came with a key. Nothing was served unless it says so: the
// same request may be sent with another one.
func (l *loan) answered(now time.Time, resp *http.Response) (v keyVerdict) {
	p := l.pool
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		if v = keyRefused; l.key.Source.Refused(l.value) {
			v = keyStale
		}
	case http.StatusPaymentRequired, http.StatusTooManyRequests:
		v = keyRefused
	case http.StatusForbidden:
		if len(p.keys) > 1 {
			v = keyDoubted
		}
	case http.StatusBadRequest:
		if p.kind.KeyRefused != nil && len(p.keys) > 1 && p.kind.KeyRefused(beginning(resp)) {
			v = keyRefused
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l.note(now, resp.Header)
	switch k := l.key; {
	case v == keyRefused && len(p.keys) > 1: // of a single one the router knows
		k.rest(now, upstream.RetryAfter(now, resp.Header))
	case v == keyServed && resp.StatusCode < 300 && l.rests == k.rested:
		k.wait, k.until = 0, time.Time{} // a request from before the rest says nothing of what came since
	}
	return v
}

// refused says that another key served what was refused with this one.
func (l *loan) refused(now time.Time) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.key.rest(now, 0)
}

// mostBeginning bounds how much of an error is read to see whether it is about the
// key, in bytes.
const mostBeginning = 8 << 10

// beginning is how the body of resp begins, which is read again after it.
func beginning(resp *http.Response) []byte {
	start, _ := io.ReadAll(io.LimitReader(resp.Body, mostBeginning))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), resp.Body), resp.Body}
	return start
}

// answer is resp, with whose end the key is given back.
func (l *loan) answer(resp *http.Response) *http.Response {
	if l.pool.capped {
		resp.Body = &lent{ReadCloser: resp.Body, loan: *l}
	}
	return resp
}

// rest keeps k off for a while. mu is held.
func (k *key) rest(now time.Time, told time.Duration) {
	k.wait = min(max(2*k.wait, keyRest), keyRestMost)
	until := now.Add(k.wait)
	if told > 0 {
		until = now.Add(min(told, keyRestMost))
	}
	k.rested++
	if !k.rests(now) || until.After(k.until) {
		k.until = until
	}
}

// note takes what the backend told of the key's limits. Of two answers the one to
// the later request counts. mu is held.
func (l *loan) note(now time.Time, h http.Header) {
	limits, told := l.pool.kind.ReadLimits(now, h)
	if !told {
		return
	}
	k := l.key
	a := k.limits[l.model]
	switch {
	case a == nil:
		if !k.room(now) {
			return
		}
		a = &allowance{}
		k.limits[l.model] = a
	case a != l.known: // it is younger than the request
		return
	case l.mark[upstream.Requests] < a.paid[upstream.Requests]:
		return
	}
	a.told, a.at, a.paid = limits, now, l.mark
}

// room makes place for one more model, and reports whether there is one.
func (k *key) room(now time.Time) bool {
	if k.limits == nil {
		k.limits = map[string]*allowance{}
	}
	if len(k.limits) < tellingModels {
		return true
	}
	for model, a := range k.limits {
		if a.left(now) == (upstream.Limits{}) {
			delete(k.limits, model)
		}
	}
	return len(k.limits) < tellingModels
}

// giveBack says that the request with the key has ended.
func (l *loan) giveBack() {
	if !l.pool.capped {
		return
	}
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.key.running--
}

// lent is the body of an answer whose key is given back with it.
type lent struct {
	io.ReadCloser
	once sync.Once
	loan loan
}

// Write implements io.Writer, for a connection that goes on with another protocol.
func (b *lent) Write(p []byte) (int, error) {
	if w, ok := b.ReadCloser.(io.Writer); ok {
		return w.Write(p)
	}
	return 0, errors.ErrUnsupported
}

// Close implements io.Closer.
func (b *lent) Close() error {
	b.once.Do(b.loan.giveBack)
	return b.ReadCloser.Close()
}

// limits is what is left of all keys together for a model. Where one has no limit
// there is none; those that rest have nothing until they are back.
func (p *pool) limits(now time.Time, model string) (all upstream.Limits, told bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := [len(all)]bool{}
	for _, k := range p.keys {
		var one upstream.Limits
		if a := k.limits[model]; a != nil {
			one = a.left(now)
		}
		if k.rests(now) {
			one = upstream.Limits{upstream.Requests: {Until: k.until}}
		}
		for i, l := range one {
			if l.Until.IsZero() {
				// A key that rests takes nothing, whatever the other limits say.
				open[i] = open[i] || i == int(upstream.Requests) || !k.rests(now)
				continue
			}
			sum := &all[i]
			if sum.Until.IsZero() || l.Until.Before(sum.Until) {
				sum.Until = l.Until
			}
			sum.Left, sum.Most, sum.Refill = sum.Left+l.Left, sum.Most+l.Most, sum.Refill+l.Refill
		}
	}
	for i := range all {
		if open[i] {
			all[i] = upstream.Left{}
		}
		told = told || !all[i].Until.IsZero()
	}
	return all, told
}
