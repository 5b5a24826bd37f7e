package accuracy

import (
	"container/heap"
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

// start is when every world begins.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// target is the one that all books learn.
var target = profiles.Target{Backend: "engine", Model: "m"}

// maxN is the highest n of a world: the slots that an engine has by default.
const maxN = 256

// setup is an engine, what comes to it and how its tokens travel.
type setup struct {
	engine sim.EngineOptions // but Seed
	load   load
	jitter time.Duration // the chunks of a step arrive within it
	chunk  int           // tokens that a chunk holds at least, but the first and the last one; 0 = 1
	late   bool          // the first chunk holds as many as the others
	opens  int           // tokens that the first chunk holds at least; 0 = as late says
	sizes  []int         // chunk of each request in turn; nil = chunk
	tells  bool          // the engine counts at every chunk; there is no usage at the end
	users  int           // each of whom sends his next request when his last has ended; 0 = requests come by themselves
	leave  float64       // share of clients that leave in the midst of their answer
	hidden float64       // mean sequences of a tenant that Pacer does not see
	alike  bool          // its requests are like those that Pacer sees; else they have no prompt and no end
	signal bool          // but for the engine's own count of them, read every second

	collects time.Duration // tokens after the first are held until the oldest has waited so long; 0 = not
	mood     mood          // in which the engine is at times

	seesFew int // levels that the truth may not be smoothed over: see truth
	ranks   int // engines behind the one URL, each of which decodes by itself; 0 = 1
}

// watcher is one replica of Pacer.
type watcher struct {
	book *profiles.Book
	occ  *profiles.Occupancy
	n    *router.Router // counts n, where the engine reports; nil = the world does
	sums profiles.Sums  // of all deltas, nothing forgotten

	sees      func(request int) bool // nil = all
	blind     bool                   // is not told of prompts
	usage     func(request int) int  // 1 comes, 0 never comes, −1 comes after the stream was closed; nil = comes
	staleness time.Duration          // of the other watchers' part of n; 0 = exact
	store     profiles.Store         // shared with others; nil = its book is alone
	name      string                 // of the replica, in a store
	seq       uint64                 // of its last push

	opened func(r *request)                     // a request was sent; nil = nobody
	closed func(r *request, s profiles.Summary) // and its stream ended

	site    *site         // the gateways that it is one of; nil = it is none
	place   int           // in site
	tellsAt time.Duration // its next exchange with the others

	own    int // decoding streams of this watcher
	others int // of the other ones, as last heard
	heard  time.Duration
}

// request is one request and what was seen of it.
type request struct {
	index          int
	prompt, answer int
	guess          int // of prompt, from its bytes
	leaveAt        int // tokens after which the client leaves; 0 = it stays
	sequence       *sim.Sequence
	engine         *sim.Engine        // that serves it
	streams        []*profiles.Stream // by watcher; nil = does not see it
	leases         []*router.Lease    // by watcher, of those with a router
	arrived        int                // in flight when it was sent

	sent, first, last time.Duration
	delivered         time.Duration // when its newest chunk arrives
	held, got         int           // tokens not in a chunk yet; arrived
	collecting, whole bool          // a chunk waits for its time; the engine has made the last token
	text              text          // what its tokens say
	firstTokens       int
	produced, over    bool // the engine has made a token; the stream has ended
}

// level is what was done at one n: by visible sequences.
type level struct {
	steps, seconds, prompts, tokens float64 // seconds as planned, without noise
}

// world is a run.
type world struct {
	setup
	random   *rand.Rand
	words    *rand.Rand    // how long tokens are
	engines  []*sim.Engine // ranks of them
	next     source
	coming   arrival
	now      time.Duration
	folded   time.Duration
	second   time.Duration
	scraped  time.Duration // when the engine's report is read next
	watchers []*watcher
	chunks   chunkHeap
	decoding int // first token arrived, last not: what Pacer sees
	running  int // the same as the engines see it
	inFlight int
	prompts  int // tokens of the prompts that wait for their first token, as guessed
	firsts   *firsts
	requests int
	idle     int // users without a request

	hiddenRunning []*request
	hiddenTurn    time.Duration
	moody         bool // the engine is slow
	moodTurn      time.Duration
	leaving       []*request // reused
	lives         *lifetimes // nil = nobody asks

	tokens float64
	levels []level
	usual  map[int]float64 // the usual estimator: EWMA of request averages at arrival concurrency
}

// mood is an engine that takes longer for a while, again and again: it shares a
// host with others, or is throttled. The zero value has none.
type mood struct {
	factor float64       // on every step of a spell
	spell  time.Duration // mean length of a spell, and of the time between two; exponential
}

// chunk is content on its way. Where tokens is 0 it holds what has been collected
// by the time it is sent.
type chunk struct {
	at     time.Duration
	order  int
	to     *request
	tokens int
	bytes  int // of text
	last   bool
}

// text is what the tokens of an answer say. Answers differ in how long their tokens
// are, and within each the kind of text changes: words, code, figures.
type text struct{ language, kind float64 }

// write returns the bytes of so many tokens.
func (t *text) write(r *rand.Rand, tokens int) (bytes int) {
	if t.language == 0 {
		t.language, t.kind = math.Exp(0.25*r.NormFloat64()), 1
	}
	for range tokens {
		if r.IntN(60) == 0 {
			t.kind = [...]float64{0.6, 1, 1, 1.4}[r.IntN(4)]
		}
		usual := [...]float64{1, 1, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 11}[r.IntN(14)]
		bytes += max(int(usual*t.language*t.kind+0.5), 1)
	}
	return bytes
}

type chunkHeap []chunk

func (h chunkHeap) Len() int { return len(h) }
func (h chunkHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h chunkHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *chunkHeap) Push(x any)   { *h = append(*h, x.(chunk)) }
func (h *chunkHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	*h = (*h)[:last]
	return c
}

func newWorld(s setup, seed uint64, watchers ...*watcher) *world {
	w := &world{
		setup: s, random: rand.New(rand.NewPCG(seed, 7)), words: rand.New(rand.NewPCG(seed, 9)), watchers: watchers,
		levels: make([]level, maxN+1), usual: map[int]float64{},
	}
	for rank := range uint64(max(s.ranks, 1)) {
		s.engine.Seed = seed + rank<<32
		e, err := sim.NewEngine(s.engine)
		if err != nil {
			panic(err)
		}
		w.engines = append(w.engines, e)
	}
	w.next = s.load(rand.New(rand.NewPCG(seed, 8)))
	w.coming = w.next()
	w.idle = s.users
	w.beckon()
	for _, o := range watchers {
		if o.book == nil {
			o.book = profiles.NewBook(profiles.Options{})
		}
		o.occ = profiles.NewOccupancy(start)
		o.book.Fold(start) // all cut their windows at the same instants
		switch {
		case o.site != nil:
			o.n = newGateway(len(o.site.gateways))
		case s.signal:
			o.n = newRouter()
		}
	}
	return w
}

func at(d time.Duration) time.Time { return start.Add(d) }

// run goes on until so many more tokens have been decoded.
func (w *world) run(tokens float64) {
	for goal := w.tokens + tokens; w.tokens < goal; {
		w.advance()
	}
}

// until goes on for so long.
func (w *world) until(end time.Duration) {
	for w.now < end {
		w.advance()
	}
}

// drain lets everything end that has begun, and closes all windows.
func (w *world) drain() {
	w.coming.at = math.MaxInt64
	w.hidden = 0
	for w.inFlight > 0 {
		w.advance()
	}
	w.now += 20 * time.Second
	w.fold()
}

// advance does what comes next.
func (w *world) advance() {
	step := time.Duration(math.MaxInt64)
	var stepping *sim.Engine
	for _, e := range w.engines {
		if due, busy := e.Next(); busy && due.Sub(start) < step {
			step, stepping = due.Sub(start), e
		}
	}
	next := min(step, w.coming.at)
	if len(w.chunks) > 0 {
		next = min(next, w.chunks[0].at)
	}
	if len(w.watchers) > 0 {
		next = min(next, w.second)
	}
	if w.signal && len(w.watchers) > 0 {
		next = min(next, w.scraped)
	}
	told, teller := w.nextTold()
	if teller != nil {
		next = min(next, told)
	}
	w.now = max(w.now, next)
	switch {
	case teller != nil && told == next:
		teller.tell(at(w.now))
	case len(w.chunks) > 0 && w.chunks[0].at == next:
		w.arrive(heap.Pop(&w.chunks).(chunk))
	case step == next:
		w.step(stepping)
	case w.coming.at == next:
		w.submit(w.coming)
		w.coming = w.next()
		w.beckon()
	case w.signal && w.scraped == next:
		w.scrape()
	default:
		w.second += time.Second
		w.fold()
	}
}

func (w *world) fold() {
	w.folded = w.now
	for _, o := range w.watchers {
		deltas := o.book.Fold(at(w.now))
		for _, d := range deltas {
			o.sums.Add(d, 0)
		}
		if o.store != nil {
			o.exchange(deltas, at(w.now))
		}
		if o.site != nil {
			o.n.Update(at(w.now), router.Curves{ByTarget: map[router.Target]*profiles.Curve{target: o.book.Curve(target)}})
		}
	}
}

// exchange pushes deltas to the store, and rests the curve on what it holds.
func (o *watcher) exchange(deltas []profiles.Delta, now time.Time) {
	o.seq++
	if err := o.store.Push(context.Background(), o.name, o.seq, deltas); err != nil {
		panic(err)
	}
	sums, err := o.store.Load(context.Background(), []profiles.Target{target})
	if err != nil {
		panic(err)
	}
	o.book.Apply(now, sums, deltas)
}

// beckon lets the next request come at once, if a user has nothing to wait for, and never
// if all have. Without users it comes as the load says.
func (w *world) beckon() {
	switch {
	case w.users == 0:
	case w.idle > 0:
		w.coming.at = w.now
	default:
		w.coming.at = math.MaxInt64
	}
}

// ended says that a request is over, by its end or because its client left.
func (w *world) ended() {
	w.inFlight--
	if w.users > 0 {
		w.idle++
		w.beckon()
	}
}

// submit sends a request.
func (w *world) submit(a arrival) {
	r := &request{index: w.requests, prompt: a.prompt, answer: a.answer, sent: w.now, arrived: w.inFlight}
	w.requests++
	w.inFlight++
	w.idle--
	if w.leave > 0 && w.random.Float64() < w.leave {
		r.leaveAt = 1 + w.random.IntN(a.answer)
	}
	// Before usage comes, the size of a prompt is a guess from its bytes.
	r.guess = max(int(float64(a.prompt)*(0.75+0.3*w.random.Float64())), 1)
	ahead := profiles.Ahead{Known: true, PromptTokens: w.prompts, Sequences: w.inFlight - 1}
	w.prompts += r.guess
	w.firsts.foretell(w, r, ahead)
	for _, o := range w.watchers {
		var s *profiles.Stream
		var l *router.Lease
		if o.sees == nil || o.sees(r.index) {
			open := profiles.Open{Sent: at(w.now), Occupancy: o.occ, PromptTokens: r.guess, Ahead: ahead}
			if o.n != nil {
				l = o.n.Place(at(w.now), router.Request{Route: "r", Stream: true, Sequences: 1, PromptTokens: r.guess}).Lease
				open.Occupancy = l.Occupancy()
			}
			if o.blind {
				open.PromptTokens = 0
			}
			s = o.book.Open(target, open)
		}
		r.streams, r.leases = append(r.streams, s), append(r.leases, l)
		if o.opened != nil {
			o.opened(r)
		}
	}
	w.start(r)
}

// start gives r to the engine that has least to do.
func (w *world) start(r *request) {
	r.engine = w.engines[0]
	for _, e := range w.engines[1:] {
		if e.Running()+e.Waiting() < r.engine.Running()+r.engine.Waiting() {
			r.engine = e
		}
	}
	s, err := r.engine.Submit(r.prompt, r.answer, r)
	if err != nil {
		panic(err)
	}
	r.sequence = s
	if _, busy := r.engine.Next(); !busy {
		r.engine.Step(at(w.now))
	}
}

// cancel ends r at its engine.
func (w *world) cancel(r *request) {
	if r.engine.Cancel(r.sequence) && r.produced {
		w.running--
	}
}

// slow makes every step take factor times as long.
func (w *world) slow(factor float64) {
	for _, e := range w.engines {
		e.SetDrift(factor)
	}
}

// step ends a step of e and sends what it made on its way.
func (w *world) step(e *sim.Engine) {
	if w.mood.factor > 0 && w.now >= w.moodTurn {
		w.moodTurn = w.now + seconds(w.mood.spell.Seconds()*w.random.ExpFloat64())
		if w.moody = !w.moody; w.moody {
			w.slow(w.mood.factor)
		} else {
			w.slow(1)
		}
	}
	s := e.Step(at(w.now))
	visible, tokens, all, begun, over, asked := 0, 0, 0, 0, 0, 0
	var ended []*request
	for _, out := range s.Outputs {
		r := out.Sequence.Tag.(*request)
		if !out.First {
			all += out.Tokens
		}
		if r.index < 0 {
			if out.Last {
				ended = append(ended, r)
			}
			continue
		}
		if out.First {
			asked += r.prompt
		} else {
			visible++
			tokens += out.Tokens
		}
		if out.First && !out.Last {
			begun++
			r.produced = true
		} else if out.Last && !out.First {
			over++
		}
		w.send(r, out)
	}
	for _, r := range w.leaving {
		w.cancel(r)
	}
	w.leaving = w.leaving[:0]
	n, made := visible, tokens
	if w.hidden == 0 || w.signal {
		n, made = s.Work.Decoding, all // with those that left meanwhile
	}
	if w.hidden > 0 {
		w.moveHidden(ended)
	}
	seconds, steps, prompts := s.Work.Seconds, 1.0, s.Work.Prefill
	switch {
	case len(w.engines) > 1: // a step of one rank is a share of one of all that decode
		n = min(max(w.running, n), maxN)
		steps = float64(s.Work.Decoding) / float64(n)
		seconds *= steps
	case w.engine.Preempt: // who lost the cache waits among those who decode
		n = min(max(w.running, n), maxN)
		steps = float64(s.Work.Decoding) / float64(n)
		prompts = asked
	}
	if n > 0 && (visible > 0 || w.hidden == 0) {
		l := &w.levels[n]
		l.steps += steps
		l.seconds += seconds
		l.prompts += float64(prompts)
		l.tokens += float64(made)
		w.tokens += float64(tokens)
	}
	w.running += begun - over
}

// send puts what a step made of r on its way, if it fills a chunk.
func (w *world) send(r *request, out sim.Output) {
	if len(w.watchers) == 0 {
		r.got += out.Tokens
		leaves := !out.Last && r.leaveAt > 0 && r.got >= r.leaveAt
		if leaves {
			w.leaving = append(w.leaving, r)
		}
		if out.Last || leaves {
			w.ended()
		}
		return
	}
	r.held += out.Tokens
	if w.collects > 0 && !out.First {
		if r.whole = out.Last; !r.collecting {
			r.collecting = true
			heap.Push(&w.chunks, chunk{at: w.now + w.collects, order: w.random.Int(), to: r})
		}
		return
	}
	if r.held < w.chunkOf(r) && (!out.First || w.late || w.opens > 0) && !out.Last {
		return
	}
	r.delivered = max(w.now+time.Duration(w.random.Float64()*float64(w.jitter)), r.delivered)
	heap.Push(&w.chunks, chunk{at: r.delivered, order: w.random.Int(), to: r, tokens: r.held, bytes: r.text.write(w.words, r.held), last: out.Last})
	r.held = 0
}

// chunkOf is how many tokens the next chunk of r holds at least.
func (w *world) chunkOf(r *request) int {
	switch {
	case w.opens > 0 && r.delivered == 0:
		return w.opens
	case len(w.sizes) > 0:
		return w.sizes[r.index%len(w.sizes)]
	}
	return w.chunk
}

// arrive is what the relay does with a chunk.
func (w *world) arrive(c chunk) {
	r := c.to
	if r.over {
		return
	}
	if c.tokens == 0 {
		c.tokens, c.bytes, c.last = r.held, r.text.write(w.words, r.held), r.whole
		r.held, r.collecting = 0, false
	}
	if r.got == 0 {
		r.first, r.firstTokens = w.now, c.tokens
		w.prompts -= r.guess
		w.firsts.see(r)
		w.decode(r, 1) // before Read: the exposure opens at the n that includes this stream
	}
	r.got += c.tokens
	r.last = w.now
	for i, s := range r.streams {
		if s == nil {
			continue
		}
		o := w.watchers[i]
		w.hear(o)
		s.Text(c.bytes)
		if w.tells {
			s.ReadCounted(at(w.now), 1, r.got)
			u := w.usageOf(o, r)
			u.CompletionTokens = r.got
			s.Usage(u)
			continue
		}
		s.Read(at(w.now), 1)
		if o.site != nil {
			count, _, last := s.Decoding()
			r.leases[i].Progress(last, count)
		}
		if c.last && (o.usage == nil || o.usage(r.index) > 0) {
			s.Usage(w.usageOf(o, r))
		}
	}
	switch {
	case c.last:
		w.end(r, true)
	case r.leaveAt > 0 && r.got >= r.leaveAt:
		w.cancel(r)
		w.end(r, false)
	}
}

func (w *world) usageOf(o *watcher, r *request) profiles.Usage {
	u := profiles.Usage{PromptTokens: r.prompt, CompletionTokens: r.answer}
	if o.blind {
		u.PromptTokens = 0
	}
	return u
}

// end closes r.
func (w *world) end(r *request, complete bool) {
	r.over = true
	for i, s := range r.streams {
		if s == nil {
			continue
		}
		o := w.watchers[i]
		if summary := s.Close(at(w.now), complete); o.closed != nil {
			o.closed(r, summary)
		}
		if complete && o.usage != nil && o.usage(r.index) < 0 {
			s.Usage(w.usageOf(o, r))
		}
	}
	w.decode(r, -1)
	w.ended()
	if complete && r.last > r.first {
		n := r.arrived + 1
		tps := float64(r.got-r.firstTokens) / (r.last - r.first).Seconds()
		if old, ok := w.usual[n]; ok {
			tps = old + 0.1*(tps-old)
		}
		w.usual[n] = tps
	}
}

// decode tells the watchers that one more stream decodes, or one less.
func (w *world) decode(r *request, change int) {
	w.decoding += change
	if w.lives != nil {
		w.lives.turn(w.now, w.decoding, r, change > 0)
	}
	for i, o := range w.watchers {
		if r.streams[i] != nil {
			o.own += change
		}
		n := w.decoding
		if o.n != nil {
			if r.leases[i] == nil {
				continue
			}
			if change > 0 {
				r.leases[i].FirstToken(at(w.now))
			} else {
				r.leases[i].Done(at(w.now), 0)
			}
			continue
		}
		if o.staleness > 0 {
			n = o.own + o.others
			if r.streams[i] == nil {
				continue
			}
		}
		o.occ.Set(at(w.now), n)
	}
}

// hear brings a stale watcher what the others publish.
func (w *world) hear(o *watcher) {
	if o.staleness > 0 && w.now-o.heard >= o.staleness {
		o.heard = w.now
		if others := w.decoding - o.own; others != o.others {
			o.others = others
			o.occ.Set(at(w.now), o.own+others)
		}
	}
}

// visited are the levels with at least 1 % of the exposure of the run.
func (w *world) visited() []int {
	var all float64
	for n := range w.levels {
		all += float64(n) * w.levels[n].seconds
	}
	var list []int
	for n := range w.levels {
		if s := float64(n) * w.levels[n].seconds; s > 0 && s >= 0.01*all {
			list = append(list, n)
		}
	}
	return list
}
