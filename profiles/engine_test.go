package profiles

import (
	"math"
	"math/rand"
	"slices"
	"time"
)

// start is when the tests' clocks begin.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// engine is a continuous-batching engine in closed form: a step with n
// sequences in decode and p prompt tokens in prefill takes
// fit.tpot(n, p)·noise. What it does is driven through Books as a gateway
// would: one Occupancy per engine, one Stream per request.
type engine struct {
	fit      Fit
	uneven   func(n int) float64 // factor on the step time, for curves of another shape; nil = 1
	budget   float64             // prompt tokens prefilled per step
	noise    float64             // CV of the step time, AR(1) with ρ = 0.5
	jitter   time.Duration
	chunk    int     // tokens per chunk
	rate     float64 // requests/s on average
	prompts  func(*rand.Rand) int
	outputs  func(*rand.Rand) int
	maxBatch int

	rng     *rand.Rand
	now     time.Duration
	occ     *Occupancy
	books   []*Book // requests go to them in turn
	target  Target
	running []*request
	waiting []*request
	ar      float64
	burst   float64 // present rate
	turn    time.Duration
	next    time.Duration
	folded  time.Duration
	served  int

	tokens  float64 // decoded so far
	truth   map[int]*record
	control map[int]float64 // the usual estimator: EWMA of request averages at arrival concurrency
}

// record is the engine's own record of one n.
type record struct{ seconds, streamSeconds, tokens, steps, prompts float64 }

type request struct {
	stream         *Stream
	prompt, left   int
	out            int
	total          int
	sent           time.Duration
	first, last    time.Duration
	atArrival, got int
	held           int // tokens of a chunk not sent yet
}

func newEngine(seed int64, books ...*Book) *engine {
	return &engine{
		fit: Fit{A: 0.008, B: 0.0012, C: 0.0004, D: 30e-6}, budget: 2048, noise: 0.1,
		jitter: 200 * time.Microsecond, chunk: 1, rate: 2.7, maxBatch: 256,
		prompts: func(r *rand.Rand) int { return lognormal(r, 1000, 1.0, 8000) },
		outputs: func(r *rand.Rand) int { return lognormal(r, 180, 0.8, 1500) },
		rng:     rand.New(rand.NewSource(seed)), occ: NewOccupancy(start), books: books,
		target: Target{Backend: "engine", Model: "m"},
		truth:  map[int]*record{}, control: map[int]float64{}, burst: 1,
	}
}

func lognormal(r *rand.Rand, median, sigma float64, most int) int {
	return min(max(int(median*math.Exp(sigma*r.NormFloat64())), 2), most)
}

func (e *engine) at(d time.Duration) time.Time { return start.Add(d) }

// run goes on until so many tokens were decoded.
func (e *engine) run(tokens float64) {
	for goal := e.tokens + tokens; e.tokens < goal; {
		e.arrive()
		e.step()
		if e.now-e.folded >= time.Second {
			e.folded = e.now
			for _, b := range e.books {
				b.Fold(e.at(e.now))
			}
		}
	}
}

// drain serves what is there, admits nothing more, and folds all windows.
func (e *engine) drain() {
	for len(e.running)+len(e.waiting) > 0 {
		e.step()
	}
	for _, b := range e.books {
		b.Fold(e.at(e.now + 2*windowLength))
	}
}

// arrive lets requests come in: a two-state burst process.
func (e *engine) arrive() {
	if len(e.running)+len(e.waiting) == 0 {
		e.now = max(e.now, e.next)
	}
	for e.next <= e.now {
		if e.next >= e.turn {
			e.burst = 0.35
			if e.rng.Float64() < 0.25 {
				e.burst = 3
			}
			e.turn = e.next + time.Duration((5+10*e.rng.ExpFloat64())*float64(time.Second))
		}
		r := &request{prompt: e.prompts(e.rng), out: e.outputs(e.rng), sent: e.next, atArrival: len(e.running) + len(e.waiting)}
		r.left, r.total = r.prompt, r.out
		if len(e.books) > 0 { // else nobody looks on
			b := e.books[e.served%len(e.books)]
			r.stream = b.Open(e.target, Open{Sent: e.at(r.sent), Occupancy: e.occ, PromptTokens: r.prompt})
		}
		e.served++
		e.waiting = append(e.waiting, r)
		e.next += time.Duration(e.rng.ExpFloat64() / (e.rate * e.burst) * float64(time.Second))
	}
}

// step runs one step: a part of the waiting prompts and one token for each
// running sequence, all of which arrive within the jitter.
func (e *engine) step() {
	n := len(e.running)
	budget, prefilled := int(e.budget), 0
	var fresh []*request
	for len(e.waiting) > 0 && prefilled < budget && n+len(fresh) < e.maxBatch {
		r := e.waiting[0]
		part := min(r.left, budget-prefilled)
		prefilled += part
		r.left -= part
		if r.left > 0 {
			break
		}
		fresh = append(fresh, r)
		e.waiting = e.waiting[1:]
	}
	if n == 0 && prefilled == 0 {
		e.now = max(e.now, e.next)
		return
	}
	e.ar = 0.5*e.ar + e.noise*math.Sqrt(0.75)*e.rng.NormFloat64()
	seconds := e.fit.tpot(float64(n), float64(prefilled)) * math.Exp(e.ar-e.noise*e.noise/2)
	if e.uneven != nil {
		seconds *= e.uneven(n)
	}
	if n == 0 {
		seconds = e.fit.A + e.fit.D*float64(prefilled)
	}
	e.now += time.Duration(seconds * float64(time.Second))
	if n > 0 {
		l := e.truth[n]
		if l == nil {
			l = &record{}
			e.truth[n] = l
		}
		l.seconds += seconds
		l.streamSeconds += seconds * float64(n)
		l.tokens += float64(n)
		l.steps++
		l.prompts += float64(prefilled)
	}
	e.tokens += float64(n)
	e.deliver(fresh)
}

// deliver hands the tokens of a step to the streams, one after the other
// within the jitter: streams end in the midst of it.
func (e *engine) deliver(fresh []*request) {
	order := e.rng.Perm(len(e.running))
	batch := slices.Clone(e.running)
	for i, j := range order {
		r := batch[j]
		at := e.now + e.jitter*time.Duration(i)/time.Duration(len(order))
		r.got++
		r.held++
		r.out--
		if r.held < e.chunk && r.out > 0 {
			continue
		}
		if r.stream != nil {
			r.stream.Read(e.at(at), 1)
		}
		r.held, r.last = 0, at
		if r.out <= 0 {
			e.finish(r, at)
		}
	}
	for _, r := range fresh {
		at := e.now + e.jitter
		e.running = append(e.running, r)
		e.occ.Set(e.at(at), len(e.running))
		if r.stream != nil {
			r.stream.Read(e.at(at), 1)
		}
		r.first, r.last = at, at
		r.out--
		r.got++
		if r.out <= 0 {
			e.finish(r, at)
		}
	}
}

func (e *engine) finish(r *request, at time.Duration) {
	e.running = slices.DeleteFunc(e.running, func(o *request) bool { return o == r })
	e.occ.Set(e.at(at), len(e.running))
	if r.stream != nil {
		r.stream.Usage(Usage{PromptTokens: r.prompt, CompletionTokens: r.total})
		r.stream.Close(e.at(at), true)
	}
	if r.got > 1 && r.last > r.first {
		n := max(r.atArrival, 1)
		tps := float64(r.got-1) / (r.last - r.first).Seconds()
		if old, ok := e.control[n]; ok {
			tps = old + 0.1*(tps-old)
		}
		e.control[n] = tps
	}
}
