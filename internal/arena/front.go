package arena

import (
	"hash/fnv"
	"time"

	"github.com/pacer-dev/pacer/sim"
)

// Front is what stands before the ranks of a backend: who gets which rank, how tokens
// travel, and how many requests are taken. The zero value is a plain engine.
type Front struct {
	Pick Pick
	Lame float64 // how many times as long the steps of the last rank take; 0 = as long as all

	// Flush is how often a proxy sends on what a stream has brought, Chunk how many
	// tokens at least. Default: each step's at once.
	Flush time.Duration
	Chunk int

	// PerMinute is how many requests are taken in a minute, PerMinuteTokens how many
	// tokens of prompts: beyond, 429. Told has it say how long to wait. Default: all.
	PerMinute, PerMinuteTokens float64
	Told                       bool
}

// Pick says which rank a sequence goes to.
type Pick uint8

// The picks.
const (
	Emptiest Pick = iota // the one on which the fewest are
	AnyRank              // drawn
	Sticky               // always the same for a tenant
)

// front is the state of one.
type front struct {
	requests, tokens float64 // that may still come
	at               time.Duration
}

// begin fills the limits.
func (f *front) begin(c *Front) { *f = front{requests: c.PerMinute, tokens: c.PerMinuteTokens} }

// takes reports whether a request with such a prompt is taken, and else in how long one may be.
func (f *front) takes(c *Front, now time.Duration, prompt int) (wait time.Duration, ok bool) {
	minutes := (now - f.at).Minutes()
	f.at = now
	need := float64(prompt)
	f.requests = min(f.requests+c.PerMinute*minutes, c.PerMinute)
	f.tokens = min(f.tokens+c.PerMinuteTokens*minutes, c.PerMinuteTokens)
	if c.PerMinute > 0 && f.requests < 1 {
		wait = time.Duration((1 - f.requests) / c.PerMinute * float64(time.Minute))
	}
	if need = min(need, c.PerMinuteTokens); c.PerMinuteTokens > 0 && f.tokens < need {
		wait = max(wait, time.Duration((need-f.tokens)/c.PerMinuteTokens*float64(time.Minute)))
	}
	if wait > 0 {
		return wait, false
	}
	f.requests, f.tokens = f.requests-1, f.tokens-need
	return 0, true
}

// pick is the rank that v goes to, of those that live.
func (e *engine) pick(v *visit) *rank {
	var alive []*rank
	for _, r := range e.ranks {
		if !r.dead {
			alive = append(alive, r)
		}
	}
	switch {
	case len(alive) < 2 || e.conf.Front.Pick == Emptiest:
		return e.emptiest()
	case e.conf.Front.Pick == Sticky:
		h := fnv.New32a()
		_, _ = h.Write([]byte(v.arrival.Tenant))
		return alive[int(h.Sum32())%len(alive)]
	}
	return alive[e.world.random.IntN(len(alive))]
}

// killRank ends what runs on the last rank, and gives it nothing more; on the only one,
// the whole backend.
func (e *engine) killRank() {
	r := e.ranks[len(e.ranks)-1]
	if len(e.ranks) == 1 || e.dead {
		e.kill()
		return
	}
	r.dead = true
	e.hold()
	var victims []*visit
	for _, v := range e.visits {
		if v.seat.rank == r {
			victims = append(victims, v)
		}
	}
	for _, v := range victims {
		e.leave(v)
		v.cut()
	}
}

// reviveRank starts the last rank again.
func (e *engine) reviveRank() {
	last := len(e.ranks) - 1
	if e.dead || last == 0 {
		e.revive()
		return
	}
	r, err := e.newRank(last)
	if err != nil {
		panic(err) // it started once with the same options
	}
	e.ranks[last] = r
	e.lives++
}

// collected is what of an answer waits in a proxy.
type collected struct {
	out   sim.Output
	some  bool
	timed bool // it goes at the next flush
}

// flush is when a proxy sends on what it has of v.
type flush struct {
	v *visit
	e *engine
}

func (f *flush) fire(w *world) {
	v := f.v
	v.held.timed = false
	if v.seat.engine == f.e && v.lease != nil && v.held.some {
		v.hand()
	}
}

// bring takes what a step made of the answer of v as far as the gateway.
func (v *visit) bring(out *sim.Output) {
	c := &v.seat.engine.conf.Front
	if c.Flush <= 0 && c.Chunk <= 1 {
		v.receive(out)
		return
	}
	h := &v.held
	if h.some {
		h.out.Tokens += out.Tokens
		h.out.Last = out.Last
	} else {
		h.out, h.some = *out, true
		h.out.First = v.seen.arrivals == 0
	}
	switch {
	case c.Chunk > 1 && (h.out.Tokens >= c.Chunk || out.Last):
		v.hand()
	case c.Flush > 0 && !h.timed:
		h.timed = true
		w := v.world
		phase := time.Duration(v.key * 7919 % 1000 * uint64(c.Flush) / 1000)
		w.agenda.enter((w.now+phase)/c.Flush*c.Flush+c.Flush-phase, &flush{v, v.seat.engine})
	}
}

// hand gives the gateway what was collected.
func (v *visit) hand() {
	out := v.held.out
	v.held.some = false
	v.receive(&out)
}
