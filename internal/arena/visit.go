package arena

import (
	"time"

	"github.com/pacer-dev/pacer/prefix"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

const (
	// maxSends is how many backends a request is sent to before the client is
	// told that it failed, as in the gateway.
	maxSends = 3

	// minArrivals and minDecode are what a stream needs to be judged by a
	// floor, as in profiles.
	minArrivals = 5
	minDecode   = 20 * time.Millisecond
)

// visit is one request of a client, from its arrival to its end.
type visit struct {
	world   *world
	arrival Arrival
	key     uint64 // by which a gateway recognises it when it comes back
	route   *routeTally
	counts  bool          // it came after the warm-up
	arrived time.Duration // for a retry: when it came back

	floor   float64
	maxTTFT time.Duration

	gateway  *gateway
	ticket   *router.Ticket
	lease    *router.Lease
	stream   *profiles.Stream // nil where nobody learns
	warm     []router.Warmth
	caching  prefix.Visit
	excluded []string
	sends    int
	retries  int
	manner   Manner
	back     back
	seat     position
	seen     seen
	held     collected
	waited   time.Duration
}

// back is how a client comes back that was refused.
type back struct {
	away bool // it comes at at
	at   time.Duration
	told bool // it is away until it was told to come back, or has just come back then
}

// position is where an engine serves a visit.
type position struct {
	engine   *engine
	rank     *rank
	sequence *sim.Sequence
	slot     int // in engine.visits
}

// seen is what the client sees of its answer.
type seen struct {
	sent, first, last   time.Duration
	arrivals            int
	tokens, firstTokens int
}

func newVisit(w *world, route *routeTally, a Arrival) *visit {
	w.ever++
	v := &visit{world: w, arrival: a, key: w.ever, route: route, counts: a.At >= w.s.Warmup}
	class, floor := route.route.Class, route.route.SLO.MinTPS
	v.maxTTFT = route.route.SLO.MaxTTFT
	if a.Class != nil {
		class = *a.Class
	}
	if a.MinTPS != nil {
		floor = *a.MinTPS
	}
	if a.MaxTTFT != nil {
		v.maxTTFT = *a.MaxTTFT
	}
	if class == router.Interactive {
		v.floor = max(floor, 0)
	}
	v.manner = w.manner()
	route.offer(v)
	return v
}

// come brings the request to a gateway.
func (v *visit) come(w *world) {
	v.gateway = w.anyGateway()
	v.arrived = w.now
	v.excluded, v.sends = nil, 0
	v.gateway.place(v)
}

// fire is called when a wait in line is over, and when the client comes back.
func (v *visit) fire(w *world) {
	switch {
	case v.ticket != nil && !v.ticket.Deadline().After(w.clock):
		t := v.ticket
		v.ticket = nil
		v.answer(t.Expire(w.clock))
	case v.back.away && v.back.at <= w.now:
		v.back.away = false
		v.come(w)
	}
}

// answer takes what was decided.
func (v *visit) answer(d router.Decision) {
	w := v.world
	switch {
	case d.Ticket != nil:
		v.ticket = d.Ticket
		w.agenda.enter(d.Ticket.Deadline().Sub(epoch), v)
		v.gateway.someoneWaits()
		v.gateway.hasten()
	case d.Refusal != nil:
		v.refused(d.Refusal)
	default:
		v.lease, v.waited = d.Lease, w.now-v.arrived
		v.gateway.hasten()
		v.send()
	}
}

// refused ends the request, or sends the client away until it may come back.
func (v *visit) refused(r *router.Refusal) {
	w := v.world
	if w.refused != nil {
		w.refused(v, r)
	}
	v.route.back(v, false)
	d, told, ok := v.comeBack(r)
	switch {
	case r.Reason == router.NoBackend || v.sends > 0:
		v.end(failed)
	case !ok:
		v.end(shed)
	default:
		if v.manner == Disguised {
			v.disguise()
		}
		v.retries++
		v.back.away, v.back.at, v.back.told = true, w.now+d, told
		w.agenda.enter(v.back.at, v)
	}
}

// send gives the request to the backend of its lease.
func (v *visit) send() {
	w, g := v.world, v.gateway
	e := w.byName[v.lease.Target().Backend]
	v.seen.sent, v.held = w.now, collected{}
	v.sends++
	if e.dead {
		g.failure(e)
		v.moveOn(e)
		return
	}
	if wait, ok := e.front.takes(&e.conf.Front, w.now, v.arrival.PromptTokens); !ok {
		if !e.conf.Front.Told {
			wait = 0
		}
		v.lease.Full(w.clock, wait)
		v.moveOn(e)
		return
	}
	v.route.back(v, true)
	v.route.place(v)
	if v.arrival.Turn != nil {
		v.arrival.chain(&g.chain)
		v.caching = g.prefixes.Send(w.clock, v.lease.Target(), &g.chain, v.arrival.PromptTokens)
		if w.s.Sessions {
			v.arrival.sessionChain(&g.chain)
			g.prefixes.Visited(w.clock, v.lease.Target(), &g.chain)
		}
	}
	if g.book != nil {
		v.stream = g.book.Open(v.lease.Target(), profiles.Open{
			Sent: w.clock, Occupancy: v.lease.Occupancy(), PromptTokens: v.arrival.guess(), Sequences: 1, Ahead: v.lease.Ahead(),
			CachedTokens: int(v.caching.Predicted()),
		})
	}
	if !e.submit(v) { // the engine says 400: too long for it
		v.close(false)
		v.end(failed)
		g.deliver(g.done(v))
	}
}

// moveOn sends the request to another backend, if there is one.
func (v *visit) moveOn(e *engine) {
	g := v.gateway
	v.close(false)
	g.deliver(g.done(v))
	v.excluded = append(v.excluded, e.conf.Name)
	if v.sends >= maxSends {
		v.end(failed)
		return
	}
	g.place(v)
}

// cut is what the client sees when the backend dies.
func (v *visit) cut() {
	g, e := v.gateway, v.seat.engine
	v.seat.rank.cancel(v.seat.sequence)
	g.failure(e)
	if v.seen.arrivals == 0 {
		v.moveOn(e)
		return
	}
	v.close(false)
	v.end(failed)
	g.deliver(g.done(v))
}

// abandon is what happens to a stream whose gateway ends: its client is cut off,
// and the engine stops working for it.
func (v *visit) abandon() {
	e := v.seat.engine
	v.seat.rank.cancel(v.seat.sequence)
	e.leave(v)
	v.close(false)
	v.lease = nil
	v.end(failed)
}

// close ends the measurement of a stream that will not be whole.
func (v *visit) close(complete bool) {
	if v.stream != nil {
		v.stream.Close(v.world.clock, complete)
		v.stream = nil
	}
}

// receive takes what a step made of the answer, as the relay does.
func (v *visit) receive(out *sim.Output) {
	w, g, e := v.world, v.gateway, v.seat.engine
	if out.First {
		v.seen.first, v.seen.firstTokens = w.now, out.Tokens
		v.caching.First(v.seen.first-v.seen.sent, v.lease.Ahead().PromptTokens)
		v.lease.FirstTokens(w.clock, v.shows(out.Tokens)) // before Read: the exposure opens at the n that includes this stream
		g.success(e)
	}
	v.seen.tokens += out.Tokens
	v.seen.arrivals++
	v.seen.last = w.now
	if v.seen.arrivals > 1 {
		v.shows(out.Tokens)
	}
	if v.stream != nil {
		v.stream.Read(w.clock, 1)
		v.lease.Progress(w.clock, v.stream.Count())
	}
	switch hangsUp := v.arrival.HangsUp; {
	case out.Last:
	case hangsUp > 0 && v.seen.tokens >= hangsUp:
		v.hangUp()
		return
	default:
		return
	}
	if v.stream != nil {
		cached := v.caching.Trusted(v.arrival.PromptTokens, v.tells())
		v.stream.Usage(profiles.Usage{PromptTokens: v.arrival.PromptTokens, CachedTokens: cached, CompletionTokens: v.seen.tokens})
		v.close(true)
	}
	v.learn()
	e.leave(v)
	v.end(v.judge())
	g.heard(v)
	g.deliver(g.done(v))
}

// shows is how many tokens an arrival holds as the gateway sees it, which reads its text
// where a proxy has collected it, and where the engine drafts.
func (v *visit) shows(tokens int) float64 {
	c := &v.seat.engine.conf.Front
	if c.Flush <= 0 && c.Chunk <= 1 || v.stream == nil {
		if v.stream != nil && v.seat.engine.conf.Engine.Draft > 0 { // else each chunk is a token, and its text is not asked
			v.stream.Text(v.text(tokens))
		}
		return float64(tokens)
	}
	bytes := 0
	for range tokens {
		bytes += 1 + v.world.random.IntN(2*bytesPerToken-1)
	}
	v.stream.Text(bytes)
	if v.seen.arrivals == 0 {
		return v.stream.FirstTokens(0)
	}
	return float64(tokens)
}

// text is how many bytes the last tokens hold: of an answer each has three to five in the
// mean, and one less than a third of that or more than its half again.
func (v *visit) text(tokens int) int {
	unit := func(x uint64) float64 { return float64(mixed64(x)>>11) / (1 << 53) }
	bytes := 0.0
	for i := range tokens {
		bytes += 0.3 + 1.4*unit(v.key<<24+uint64(v.seen.tokens+i))
	}
	return int((3 + 2*unit(v.key)) * bytes)
}

// hangUp is what a client does who has enough: the engine stops working for it. It is
// judged by what it got.
func (v *visit) hangUp() {
	g, e := v.gateway, v.seat.engine
	v.seat.rank.cancel(v.seat.sequence)
	v.close(false)
	e.leave(v)
	v.end(v.judge())
	g.deliver(g.done(v))
}

// learn teaches what the cache had of the prompt.
func (v *visit) learn() {
	v.caching.Settle(prefix.Outcome{
		PromptTokens: v.arrival.PromptTokens, CachedTokens: v.tells(), AnswerTokens: v.seen.tokens,
		Took: v.world.now - v.seen.sent, TTFT: v.seen.first - v.seen.sent, Ahead: v.lease.Ahead().PromptTokens,
	})
}

// outcome is what became of a request.
type outcome uint8

const (
	met outcome = iota
	missed
	unmeasured
	shed
	failed
)

// end is the end of the request, and where its client asks again, the next one is on its way.
func (v *visit) end(o outcome) {
	w := v.world
	v.route.end(v, o)
	w.open--
	if w.s.follow == nil {
		return
	}
	if next, ok := w.s.follow(w.now, &v.arrival); ok {
		w.open++ // so that there is somebody to wait for
		w.agenda.enter(max(next.At, w.now), &coming{arrival: next, follows: true})
	}
}

// judge says whether a whole stream got what it was promised, as the gateway
// does: the floor is kept when the last token came no later than
// first token + (tokens − first chunk's)/floor + grace.
func (v *visit) judge() outcome {
	switch {
	case v.late():
		return missed
	case v.floor <= 0:
		return met
	case !v.measured():
		return unmeasured
	}
	allowed := float64(v.seen.tokens-v.seen.firstTokens)/v.floor + v.route.route.Grace.Seconds()
	if (v.seen.last - v.seen.first).Seconds() > allowed {
		return missed
	}
	return met
}

// late reports whether the first token came later than was promised.
func (v *visit) late() bool { return v.maxTTFT > 0 && v.seen.first-v.arrived > v.maxTTFT }

// measured reports whether the stream has a speed.
func (v *visit) measured() bool {
	return v.seen.arrivals >= minArrivals && v.seen.last-v.seen.first >= minDecode
}

// tps is the speed of the stream while decoding, in tokens/s.
func (v *visit) tps() float64 {
	return float64(v.seen.tokens-v.seen.firstTokens) / (v.seen.last - v.seen.first).Seconds()
}
