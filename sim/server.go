package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Options configures a Server. Zero values mean the defaults.
type Options struct {
	Names        []string // model names it answers to; required
	Model        Model    // required
	MaxNumSeqs   int      // default 256; more wait in a queue
	PrefillBatch int      // prompt tokens per step; default 8192
	KVTokens     int      // room for prompts and answers; default: no limit
	Block        int      // tokens in a block of the prefix cache; default: there is none; needs KVTokens
	Noise        float64  // standard deviation of the AR(1) step noise; default 0.05; negative = none
	Seed         uint64
	Speed        float64  // default 1: how much faster than real time
	Behaviours   []string // see Behaviours
	Faults       []string // "drift:1.5@30s": kind, value, how long after the start of Run; see Faults
}

// queueLimit is how many sequences may wait for a slot. vLLM queues without
// limit, and so does this engine for all practical purposes; beyond it answers
// 503, unless it behaves as unbounded-queue.
const queueLimit = 10_000

// Server speaks OpenAI over HTTP in front of one Engine, plus /sim/truth,
// /sim/set and /sim/reset. Run drives the engine; requests that come before it
// wait, and requests that are there when it ends are cut. It is safe for
// concurrent use.
//
// The engine never waits for a client. A handler is told how many tokens its
// sequences have, and writes what it has not yet written, so a slow client
// costs one counter and delays only itself.
type Server struct {
	names    []string
	quirks   quirks
	block    int          // tokens in a block of the prefix cache, 0 = there is none
	schedule []timedFault // by time; Run takes from it

	mu                     sync.Mutex // guards engine and writes to faults; a leaf
	engine                 *Engine
	tenant                 tenant
	exported, staleMetrics exported
	faults                 atomic.Pointer[faultState] // replaced as a whole
	coldSince              time.Time                  // when a slow start began; zero = not yet

	stored   idSet // ids of the answers to /v1/responses
	requests atomic.Uint64
	ids      uint64        // what tells this server's request ids from another's
	wake     chan struct{} // there may be work for Run; holds one
	started  atomic.Bool
	loading  atomic.Bool   // everything but /sim is answered 503
	stopped  chan struct{} // closed when Run has ended
}

// NewServer checks o.
func NewServer(o Options) (*Server, error) {
	if len(o.Names) == 0 || slices.Contains(o.Names, "") {
		return nil, errors.New("sim: Options.Names needs the model's name")
	}
	quirks, err := parseBehaviours(o.Behaviours)
	if err != nil {
		return nil, err
	}
	if quirks.curve != nil {
		o.Model.Table = quirks.curve
	}
	if quirks.prefillStalls {
		o.PrefillBatch = math.MaxInt32
	}
	engine, err := NewEngine(EngineOptions{
		Model: o.Model, MaxNumSeqs: o.MaxNumSeqs, PrefillBatch: o.PrefillBatch, KVTokens: o.KVTokens, Block: o.Block,
		Noise: o.Noise, Seed: o.Seed, Speed: o.Speed,
	})
	if err != nil {
		return nil, err
	}
	s := &Server{
		tenant: tenant{random: rand.New(rand.NewPCG(o.Seed, 2))},
		names:  slices.Clone(o.Names), quirks: quirks, engine: engine, block: o.Block, ids: o.Seed,
		wake: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	s.loading.Store(quirks.loading)
	if s.schedule, err = parseFaults(o.Faults); err != nil {
		return nil, err
	}
	s.faults.Store(&faultState{Drift: 1})
	for len(s.schedule) > 0 && s.schedule[0].after == 0 {
		s.applyNext()
	}
	return s, nil
}

// Run steps the engine until ctx ends. It may be called once.
func (s *Server) Run(ctx context.Context) error {
	if !s.started.CompareAndSwap(false, true) {
		return errors.New("sim: Run was called before")
	}
	defer close(s.stopped)
	start := time.Now()
	if s.quirks.loading {
		loaded := time.AfterFunc(loadingTime, func() { s.loading.Store(false) })
		defer loaded.Stop()
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		case <-timer.C:
		}
		if next, ok := s.advance(start); ok {
			timer.Reset(time.Until(next))
		} else {
			timer.Stop()
		}
	}
}

// advance does everything that is due, and returns when there will be more.
func (s *Server) advance(start time.Time) (next time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for len(s.schedule) > 0 && now.Sub(start) >= s.schedule[0].after {
		s.applyNext()
	}
	turn := s.moveTenant(now)
	if !s.faults.Load().Stall {
		s.engine.SetDrift(s.slowness(now))
		next, ok = s.step(now)
	}
	if !turn.IsZero() && (!ok || turn.Before(next)) {
		next, ok = turn, true
	}
	if len(s.schedule) > 0 {
		if t := start.Add(s.schedule[0].after); !ok || t.Before(next) {
			next, ok = t, true
		}
	}
	return next, ok
}

// step lets the engine take the steps due at now, tells the handlers, and
// returns when the step under way ends. The caller holds s.mu.
func (s *Server) step(now time.Time) (next time.Time, ok bool) {
	for {
		if next, ok = s.engine.Next(); ok && next.After(now) {
			return next, true
		}
		step := s.engine.Step(now)
		for _, o := range step.Outputs {
			if c, ok := o.Sequence.Tag.(*choice); ok {
				c.deliver(o.Tokens)
			} else if o.Last {
				s.tenant.leaves(o.Sequence)
			}
		}
		for _, seq := range step.Admitted {
			if c, ok := seq.Tag.(*choice); ok {
				c.admit()
			}
		}
		s.export(step)
		if _, busy := s.engine.Next(); !busy {
			return time.Time{}, false
		}
	}
}

// nudge tells Run that there may be work.
func (s *Server) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Truth returns the record so far.
func (s *Server) Truth() Truth {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.engine.Truth()
	t.Model = s.names[0]
	return t
}

// Reset clears the record.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engine.Reset()
}

// submit puts all choices of a generation in line, or none.
func (s *Server) submit(g *generation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.engine.Waiting() + len(g.choices)
	if s.quirks.shortQueue && waiting-s.engine.Free() > shortQueueLimit {
		return &apiError{status: http.StatusTooManyRequests, kind: "TooManyRequestsError", message: fmt.Sprintf("The queue is full: %d sequences wait.", s.engine.Waiting())}
	}
	if waiting > queueLimit && !s.quirks.unboundedQueue {
		return &apiError{status: 503, kind: "ServiceUnavailableError", message: fmt.Sprintf("The queue is full: %d sequences wait.", s.engine.Waiting())}
	}
	for i := range g.choices {
		c := &g.choices[i]
		var err error
		if c.sequence, err = s.engine.SubmitText(c.promptTokens, g.maxTokens, g.hashes, c); err != nil {
			s.withdraw(g)
			return badRequest("", "%v", err)
		}
	}
	s.exported.waiting = s.engine.Waiting()
	s.nudge()
	return nil
}

// cancel ends what is left of a generation.
func (s *Server) cancel(g *generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.withdraw(g)
}

// withdraw cancels what was submitted of g. The caller holds s.mu.
func (s *Server) withdraw(g *generation) {
	for i := range g.choices {
		if seq := g.choices[i].sequence; seq != nil {
			s.engine.Cancel(seq)
		}
	}
}
