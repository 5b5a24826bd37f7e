package router

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// Lease is one request's place on one backend incarnation, taken with the
// decision and given back exactly once by Done. FirstToken and Done take the
// router's lock; Progress takes none and is for the hot path.
type Lease struct {
	group  *group
	model  *model
	route  *route
	target Target
	floor  float64 // that counts for decisions; 0 = none
	asked  float64 // floor of the request on its own route; 0 = none
	tenant string
	grace  time.Duration // by how much its last token may be late for its floor
	weight int           // sequences; 0 = does not decode
	prompt int           // tokens, counted in group.own.prompt while waiting
	stream bool
	shared bool // most of its prompt is of those who came behind it, too
	probe  bool // sent to find out whether the backend is well again

	refused bool  // held against the target, by Refused; guarded by Router.mu, as is all that follows but relayed
	phase   phase // beside the others: thousands of leases wait

	expected expectation // of when it was placed

	links     links
	first     time.Duration // since placed: when decoding began
	prefilled float64       // group.price.prefills.done then
	seen      progress      // as of the group's last scan
	stalled   float64       // group.speed.stalled then, less what is still to be taken from its seconds

	held *held // where it is counted for a guarantee; nil = for none

	placed  time.Time // beside relayed, as each chunk takes both
	relayed relayed
}

// expectation is what was predicted of a lease when it was placed.
type expectation struct {
	ahead   profiles.Ahead
	prefill time.Duration // of its own prompt and those ahead
	ttft    time.Duration // 0 = no first token was seen to learn from
	unsure  unsure
}

// links is where a lease stands in the lists that have it.
type links struct {
	prev, next *Lease    // in running.unserved
	slot       int       // in running.streams, or in Router.pending if it is no stream; -1 = in neither
	due        time.Time // when a lease that is no stream counts as decoding
}

// relayed is what the relay says of a lease, without the router's lock.
type relayed struct {
	served atomic.Bool   // by Served
	tokens atomic.Uint64 // bits of a float64: after the first chunk, with a minus sign while rough
	last   atomic.Int64  // nanoseconds since placed: when the last of them came
}

// phase is where a lease stands.
type phase uint8

const (
	waiting phase = iota
	decoding
	holding // does not decode: it only occupies a place
	done
)

// progress is how far a stream got.
type progress struct {
	tokens float64       // after the first chunk, of all sequences
	rough  bool          // there may be a multiple of tokens
	last   time.Duration // since Lease.placed
}

// Target is where the request goes.
func (l *Lease) Target() Target { return l.target }

// Engine is what Topology said stands behind the backend when the lease was
// taken, whatever does by now.
func (l *Lease) Engine() string { return l.group.backend.engine }

// Floor is the floor that counts for this stream, 0 if none: also for one that
// was placed by best effort or as a probe.
func (l *Lease) Floor() float64 { return l.floor }

// Occupancy is the record of n of what it is counted with; Load its n now.
func (l *Lease) Occupancy() *profiles.Occupancy { return l.group.noted.occupancy }

// TTFT is the time to the first token that was predicted when the request was
// placed; 0 while its target has shown too few of them.
func (l *Lease) TTFT() time.Duration { return l.expected.ttft }

// Ahead is what stood before the request on its backend when it was placed.
func (l *Lease) Ahead() profiles.Ahead { return l.expected.ahead }

// FirstToken moves the lease from waiting to decoding. Calls after the first,
// and after Done, do nothing.
func (l *Lease) FirstToken(now time.Time) { l.FirstTokens(now, 1) }

// FirstTokens is FirstToken where so many tokens of a sequence came at once: all but
// one of them were decoded before anybody saw it.
func (l *Lease) FirstTokens(now time.Time, tokens float64) {
	r := l.group.router
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(now)
	if l.phase == waiting {
		l.group.price.prefills.see(now, l, tokens)
		l.group.own.unserved.overtake(l)
		r.decode(now, l)
		l.model.rest.serve(now, l.placed)
	}
}

// Progress says how many tokens the stream got after its first chunk, the last
// of them at now. The floor guard reads it, and slow start, so it is worth
// calling at every read. Two atomic stores, no lock.
func (l *Lease) Progress(now time.Time, c profiles.Count) {
	tokens := c.Tokens
	if c.Rough {
		tokens = -tokens
	}
	// In this order, and read in the other: a reader between the two sees a
	// stream that is too fast for a moment, never one that is too slow.
	l.relayed.tokens.Store(math.Float64bits(tokens))
	l.relayed.last.Store(int64(now.Sub(l.placed)))
}

// progress reads what Progress stored.
func (l *Lease) progress() progress {
	last := time.Duration(l.relayed.last.Load())
	tokens := math.Float64frombits(l.relayed.tokens.Load())
	return progress{tokens: finite(math.Abs(tokens)), rough: math.Signbit(tokens), last: max(last, l.first)}
}

// Done gives the place back, with the tokens the request put out (0 when it
// failed), and returns the tickets that may go now. Calls after the first do
// nothing and return nil.
func (l *Lease) Done(now time.Time, outputTokens float64) []Grant {
	r := l.group.router // the incarnation that counted us, never looked up again by name
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.phase == done {
		return nil
	}
	r.advance(now)
	r.release(now, l, finite(outputTokens))
	r.rush.ended = l.group.backend
	grants := r.wake(now, l.group.backend)
	r.rush.ended = nil
	return grants
}

// take puts a new lease for a on m. It carries floor, which may be less than
// was asked for.
func (r *Router) take(a *ask, v *verdict, floor float64) *Lease {
	m := v.model
	g := m.group
	b := g.backend
	l := a.req.Into
	if l == nil || l.group != nil { // a lease is one place, once
		l = new(Lease)
	}
	l.group, l.model, l.route, l.target = g, m, a.route, a.route.conf.Targets[v.index].Target
	l.placed, l.weight, l.prompt, l.stream = a.now, a.weight, a.toPrefill(m), a.req.Stream
	l.links.slot = -1
	l.tenant, l.probe = a.req.Tenant, b.health == Probing || m.resting(a.req.Tenant)
	m.leases++
	m.quota.spend(a, m)
	if b.health == Probing {
		b.probe, floor = l, 0
	}
	if m.rest.rests(a.req.Tenant) {
		m.rest.try(a.now)
	}
	if b.hung {
		b.try(a.now)
	}
	if a.weight == 0 {
		l.phase = holding
		b.idle++
		g.publish(a.now)
		return l
	}
	l.floor, l.asked, l.grace = floor, a.floor, a.route.grace()
	l.expected.ahead, l.expected.unsure = g.ahead(), a.unsure(m)
	g.price.blind = g.price.blind || l.expected.unsure.shared
	l.expected.prefill = seconds(m.ttft.Prefill(l.expected.ahead.PromptTokens + l.prompt))
	if m.timed {
		l.expected.ttft = seconds(m.ttft.Predict(l.expected.ahead, l.prompt))
	}
	if floor > 0 {
		m.floors.running.add(floor)
		m.tries.keeps(floor)
	}
	if !g.clearing.until.IsZero() && m.gets(a, a.req.shared()) {
		g.cleared()
	}
	a.save(g)
	a.use(l, v.index)
	b.own += l.weight
	g.own.waiting += l.weight
	g.own.prompt += l.prompt
	g.prefillUntil(a.now)
	g.price.usual.see(l.prompt)
	m.shares(a.cached(m))
	r.announce(l)
	if l.floor > 0 {
		m.floors.waiting.add(l.floor)
	}
	g.publish(a.now)
	if l.stream {
		g.own.unserved.push(l)
		return l
	}
	l.links.due = a.now.Add(seconds(m.ttft.Predict(l.expected.ahead, l.prompt)))
	r.pending.push(l)
	r.advance(a.now)
	return l
}

// decode counts a waiting lease as decoding from now on.
func (r *Router) decode(now time.Time, l *Lease) {
	g := l.group
	g.leaveWaiting(l)
	g.prefillUntil(now)
	l.phase = decoding
	l.first = max(now.Sub(l.placed), 0)
	g.price.prefills.done += float64(l.prompt)
	g.price.prefilling(now, l.prompt)
	l.prefilled = g.price.prefills.done
	l.seen, l.stalled = progress{last: l.first}, g.speed.stalled
	g.own.decoding += l.weight
	if l.stream {
		l.links.slot = len(g.own.streams)
		g.own.streams = append(g.own.streams, l)
		g.leads(now, l, l.seen) // the last look knows nothing of it
	}
	g.publish(now)
}

// leaveWaiting takes l out of everything that counts waiting leases.
func (g *group) leaveWaiting(l *Lease) {
	g.own.waiting -= l.weight
	g.own.prompt -= l.prompt
	if l.floor > 0 {
		l.model.floors.waiting.remove(l.floor)
	}
	if l.stream {
		g.own.unserved.remove(l)
	} else {
		g.router.pending.remove(l)
	}
}

// release ends l, whatever its phase.
func (r *Router) release(now time.Time, l *Lease, outputTokens float64) {
	g := l.group
	b := g.backend
	switch served := l.relayed.served.Load(); {
	case served && !(l.stream && l.phase == decoding): // else FirstToken has said so
		l.model.rest.serve(now, l.placed)
		l.model.rest.leave(now)
	case served || outputTokens > 0:
		l.model.rest.leave(now)
	}
	switch l.phase {
	case waiting:
		g.leaveWaiting(l)
	case decoding:
		if l.stream {
			p := l.progress()
			g.told.see(p, outputTokens)
			g.prefillUntil(now)
			g.follow(l, p, g.beside(now))
			l.model.tries.end(l)
			g.dropStream(l)
		} else {
			g.ramp.whole(g, l, now, outputTokens)
		}
		g.own.decoding -= l.weight
		g.forecast.check.ended += float64(l.weight)
		if outputTokens > 0 {
			g.ends += float64(l.weight)
		}
	case holding:
		b.idle--
	}
	l.phase = done
	l.unuse()
	b.own -= l.weight
	l.model.leases--
	if l.floor > 0 {
		l.model.floors.running.remove(l.floor)
	}
	if b.probe == l {
		b.probe = nil
	}
	if l.weight > 0 && outputTokens > 0 {
		l.route.lengths.add(outputTokens / float64(l.weight))
	}
	g.publish(now)
}

// dropStream removes l from the streams that are looked through. If its lead was
// the least, another one's is: the next decision looks.
func (g *group) dropStream(l *Lease) {
	last := len(g.own.streams) - 1
	g.own.streams[l.links.slot] = g.own.streams[last]
	g.own.streams[l.links.slot].links.slot = l.links.slot
	g.own.streams[last] = nil
	g.own.streams = g.own.streams[:last]
	l.links.slot = -1
	if g.least == l {
		g.scanAt, g.router.lookAt = time.Time{}, time.Time{}
	}
}
