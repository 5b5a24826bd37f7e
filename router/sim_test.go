package router

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// engine is a step-level model of continuous batching in virtual time: a step
// takes a + b·n + d·(prompt tokens prefilled in it) and gives every decoding
// stream one token. Prompts are prefilled in order of arrival, at most budget
// tokens a step.
type engine struct {
	a, b, d float64
	budget  int
	slots   int        // streams served at once, the others wait; 0 = all
	noise   *rand.Rand // of the steps, 10 % and like the one before; nil = none
	slow    float64    // ln of the last step over what it should take

	streams []*simStream // in order of arrival
	next    time.Time    // end of the step in progress; zero while idle
	visited map[int]int  // n → steps
}

// simStream is one request in an engine.
type simStream struct {
	lease  *Lease
	user   *user
	floor  float64
	prompt int // still to prefill
	want   int // tokens
	got    int
	sent   time.Time
	first  time.Time
	meter  *profiles.Stream // nil without a book
}

// user sends one request after the other: an answer of some length, again
// after a refusal when it is told to, or a second later.
type user struct {
	route          string
	prompt, tokens int
	once           bool
	patient        bool      // of one that comes once: it comes back when told until it is served, or told no more
	spread         bool      // lengths vary from half to one and a half
	at             time.Time // when to send; zero while waiting or streaming
	ticket         *Ticket
	length         int // of the answer that is asked for
	tries          int // refused so often
	key            uint64
	arrived        time.Time
}

// world runs users, a router and its engines on one clock.
type world struct {
	*bench
	engines map[string]*engine
	users   []*user
	later   []*user        // by time; they join users when it comes
	teach   bool           // hand in what was visited, each second
	book    *profiles.Book // learns for real, nil = does not
	sums    map[profiles.Target]profiles.Sums
	taught  time.Time

	offered, shed, admitted int
	kept, missed            int     // of streams of ≥ 50 tokens with a floor
	tokens                  float64 // of those that kept it
	grace                   time.Duration
	peakM                   int
	retries, retried        int                      // came back when told; and were admitted
	waitedMost              map[string]time.Duration // by route, of the admitted
	firsts                  []firstToken
	hideTTFT                bool // the router is not told what was learned of first tokens
}

func newWorld(b *bench, engines map[string]*engine) *world {
	for _, e := range engines {
		e.visited = map[int]int{}
	}
	return &world{bench: b, engines: engines, taught: b.now, grace: time.Second, waitedMost: map[string]time.Duration{}}
}

// until runs the world up to d after its start.
func (w *world) until(d time.Duration) {
	end := start.Add(d)
	tick := w.now
	for w.now.Before(end) {
		at := end
		for _, e := range w.engines {
			if !e.next.IsZero() && e.next.Before(at) {
				at = e.next
			}
		}
		for _, u := range w.users {
			if !u.at.IsZero() && u.at.Before(at) {
				at = u.at
			}
			if u.ticket != nil && u.ticket.Deadline().Before(at) {
				at = u.ticket.Deadline()
			}
		}
		if tick.Before(at) {
			at = tick
		}
		if at.After(w.now) {
			w.now = at
		}
		if !tick.After(w.now) {
			tick = w.now.Add(50 * time.Millisecond)
			w.turnUsers(tick)
			w.deliver(w.tick())
			w.learnVisited()
		}
		for name, e := range w.engines {
			if !e.next.IsZero() && !e.next.After(w.now) {
				w.step(name, e)
			}
		}
		for _, u := range w.users {
			w.wakeUser(u)
		}
	}
}

// turnUsers lets those in who come before end, and forgets those who will not
// come again.
func (w *world) turnUsers(end time.Time) {
	w.users = slices.DeleteFunc(w.users, func(u *user) bool { return u.once && u.at.IsZero() && u.ticket == nil })
	for len(w.later) > 0 && !w.later[0].at.After(end) {
		w.users = append(w.users, w.later[0])
		w.later = w.later[1:]
	}
}

func (w *world) wakeUser(u *user) {
	switch {
	case u.ticket != nil && !u.ticket.Deadline().After(w.now):
		t := u.ticket
		u.ticket = nil
		w.answer(u, t.Expire(w.now))
	case !u.at.IsZero() && !u.at.After(w.now):
		u.at, u.arrived = time.Time{}, w.now
		w.offered++
		u.length = u.tokens
		if u.spread {
			u.length = int(float64(u.tokens) * (0.5 + w.rand01()))
		}
		w.answer(u, w.Place(w.now, Request{
			Route: u.route, Arrived: w.now, PromptTokens: u.prompt, Stream: true, Waiter: u, Key: u.key,
		}))
	}
}

func (w *world) deliver(grants []Grant) {
	for _, g := range grants {
		u := g.Waiter.(*user)
		u.ticket = nil
		w.answer(u, g.Decision)
	}
}

func (w *world) answer(u *user, d Decision) {
	switch {
	case d.Ticket != nil:
		u.ticket = d.Ticket
	case d.Refusal != nil:
		w.shed++
		if u.tries > 0 {
			w.retries++
		}
		if u.tries++; !u.once || u.patient && d.Refusal.RetryAfter > 0 {
			u.at = w.now.Add(max(d.Refusal.RetryAfter, time.Second))
		}
	default:
		if u.tries > 0 {
			w.retries++
			w.retried++
		}
		u.tries = 0
		w.admitted++
		w.waitedMost[u.route] = max(w.waitedMost[u.route], w.now.Sub(u.arrived))
		e := w.engines[d.Lease.Target().Backend]
		s := &simStream{lease: d.Lease, user: u, floor: d.Lease.Floor(), prompt: max(u.prompt, 1), want: u.length, sent: u.arrived}
		if w.book != nil {
			s.meter = w.book.Open(d.Lease.Target(), profiles.Open{Sent: w.now, Occupancy: d.Lease.Occupancy(), PromptTokens: u.prompt, Sequences: 1, Ahead: d.Lease.Ahead()})
		}
		e.streams = append(e.streams, s)
		w.peakM = max(w.peakM, len(e.streams))
		if e.next.IsZero() {
			e.next = w.now.Add(seconds(e.plan()))
		}
	}
}

// plan prefills what fits into the step that begins, and returns its length in
// seconds.
func (e *engine) plan() float64 {
	n, prefill := 0, 0
	for i, s := range e.streams {
		if e.slots > 0 && i >= e.slots {
			break
		}
		if s.prompt == 0 {
			n++
			continue
		}
		part := min(s.prompt, e.budget-prefill)
		s.prompt -= part
		prefill += part
	}
	if e.noise != nil {
		e.slow = 0.5*e.slow + 0.1*math.Sqrt(0.75)*e.noise.NormFloat64()
	}
	return (e.a + e.b*float64(n) + e.d*float64(prefill)) * math.Exp(e.slow)
}

// step ends the step in progress and plans the next.
func (w *world) step(name string, e *engine) {
	n := 0
	streams := e.streams
	e.streams = nil // what Done grants is appended here
	var left []*simStream
	for _, s := range streams {
		if s.prompt > 0 {
			left = append(left, s)
			continue
		}
		if s.got++; s.got == 1 {
			s.first = w.now
			w.firsts = append(w.firsts, firstToken{s.user.route, w.now, w.now.Sub(s.sent)})
			s.lease.FirstToken(w.now)
		} else {
			n++
			s.lease.Progress(w.now, profiles.Count{Tokens: float64(s.got - 1)})
		}
		if s.meter != nil {
			s.meter.Read(w.now, 1)
		}
		if s.got < s.want {
			left = append(left, s)
			continue
		}
		if s.meter != nil {
			s.meter.Usage(profiles.Usage{PromptTokens: s.user.prompt, CompletionTokens: s.got})
			s.meter.Close(w.now, true)
		}
		w.judge(s)
		if !s.user.once {
			s.user.at = w.now
		}
		w.deliver(s.lease.Done(w.now, float64(s.got)))
	}
	e.visited[n]++
	e.streams = append(left, e.streams...)
	e.next = time.Time{}
	if len(e.streams) > 0 {
		e.next = w.now.Add(seconds(e.plan()))
	}
}

// judge says whether a stream kept its floor.
func (w *world) judge(s *simStream) {
	if s.floor <= 0 || s.got < 50 {
		return
	}
	if took := w.now.Sub(s.first) - w.grace; took.Seconds() <= float64(s.got-1)/s.floor {
		w.kept++
		w.tokens += float64(s.got)
	} else {
		w.missed++
	}
}

// learnVisited hands in each second what 30 steps were seen of.
func (w *world) learnVisited() {
	if w.now.Sub(w.taught) < time.Second {
		return
	}
	w.taught = w.now
	if w.book != nil {
		w.learnBook()
	}
	if !w.teach {
		return
	}
	for name, e := range w.engines {
		steps, hi := 0, 0
		for n, count := range e.visited {
			if n > 0 {
				steps += count
			}
			if count >= 8 {
				hi = max(hi, n)
			}
		}
		if steps >= 30 && hi > 0 {
			w.deliver(w.learn(name, form{a: e.a, b: e.b, d: e.d, visited: hi, steps: float64(steps)}))
		}
	}
}

// learnBook folds what the streams saw and hands in the curves, as a gateway
// with its own memory does each second.
func (w *world) learnBook() {
	if w.sums == nil {
		w.sums = map[profiles.Target]profiles.Sums{}
	}
	deltas := w.book.Fold(w.now)
	for _, d := range deltas {
		s := w.sums[d.Target]
		s.Add(d, 600*time.Second)
		w.sums[d.Target] = s
	}
	w.book.Apply(w.now, w.sums, deltas)
	curves := map[Target]*profiles.Curve{}
	for name := range w.engines {
		t := Target{Backend: name, Model: "m"}
		if curves[t] = w.book.Curve(t); w.hideTTFT {
			w.deliver(w.learn(name, withoutTTFT{curves[t]}))
			delete(curves, t)
		}
	}
	w.deliver(w.Update(w.now, Curves{ByTarget: curves}))
}
