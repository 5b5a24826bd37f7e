package arena

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/sim"
)

// engine is one backend: the engines of sim behind it, and what they did.
type engine struct {
	world *world
	conf  Backend
	index int
	ranks []*rank
	drift float64
	dead  bool
	lives uint64 // how often it was started

	front front

	visits  []*visit // that run or wait here
	tenants []*tenant

	mix   mix
	share float64            // of the requests, by weight; 0 = not worked out yet
	true  map[float64]*truth // by drift

	cap                        int // that somebody who knew would have set, see LeastCapped
	peakM                      int
	held                       time.Duration // len(visits) over the time that was counted, until heldTo
	heldTo                     time.Duration
	promptTokens, outputTokens int
	cachedTokens               int // of promptTokens
}

// rank is one engine of sim; most backends are one.
type rank struct {
	engine *engine
	sim    *sim.Engine
	count  int  // sequences that run or wait here
	dead   bool // while others of its engine live
}

func newEngine(w *world, index int, b Backend) (*engine, error) {
	e := &engine{world: w, conf: b, index: index, drift: 1, true: map[float64]*truth{}}
	e.mix = w.mixOn(b.Name)
	if err := e.start(); err != nil {
		return nil, err
	}
	e.cap = e.trueUsers(e.floor())
	return e, nil
}

// start makes fresh ranks.
func (e *engine) start() error {
	e.ranks = nil
	for i := range max(e.conf.Ranks, 1) {
		r, err := e.newRank(i)
		if err != nil {
			return err
		}
		e.ranks = append(e.ranks, r)
	}
	e.lives++
	e.dead = false
	e.front.begin(&e.conf.Front)
	return nil
}

// newRank makes the i-th rank.
func (e *engine) newRank(i int) (*rank, error) {
	o := e.conf.Engine
	if o.Seed == 0 {
		o.Seed = e.world.s.Seed*1000003 + uint64(e.index)*101 + uint64(i)*10007 + e.lives + 1
	}
	if lame := e.conf.Front.Lame; lame > 0 && i > 0 && i == e.conf.Ranks-1 {
		o.Speed = cmp.Or(o.Speed, 1) / lame
	}
	s, err := sim.NewEngine(o)
	if err != nil {
		return nil, fmt.Errorf("arena: backend %q: %w", e.conf.Name, err)
	}
	s.SetDrift(e.drift)
	return &rank{engine: e, sim: s}, nil
}

// emptiest is the rank on which the fewest sequences are, of those that live.
func (e *engine) emptiest() *rank {
	return slices.MinFunc(e.ranks, func(a, b *rank) int {
		switch {
		case a.dead && !b.dead:
			return 1
		case b.dead && !a.dead:
			return -1
		}
		return a.count - b.count
	})
}

// submit sends v to the engine; false when it can never run there.
func (e *engine) submit(v *visit) bool {
	r := e.pick(v)
	var blocks []uint64
	if size := e.conf.Engine.Block; size > 0 && v.arrival.Turn != nil {
		blocks = v.arrival.blocks(size)
	}
	s, ok := r.take(v.arrival.PromptTokens, v.arrival.OutputTokens, blocks, v)
	if !ok {
		return false
	}
	v.seat.engine, v.seat.rank, v.seat.sequence = e, r, s
	e.hold()
	v.seat.slot = len(e.visits)
	e.visits = append(e.visits, v)
	e.peakM = max(e.peakM, len(e.visits))
	return true
}

// take gives the rank a sequence, and begins a step if none is under way.
func (r *rank) take(prompt, output int, blocks []uint64, tag any) (*sim.Sequence, bool) {
	s, err := r.sim.SubmitText(prompt, output, blocks, tag)
	if err != nil {
		return nil, false
	}
	r.count++
	if _, busy := r.sim.Next(); !busy {
		r.sim.Step(r.engine.world.clock)
		r.plan()
	}
	return s, true
}

// cancel ends a sequence here.
func (r *rank) cancel(s *sim.Sequence) {
	if r.sim.Cancel(s) {
		r.count--
	}
}

// plan enters the end of the step that has begun.
func (r *rank) plan() {
	if due, busy := r.sim.Next(); busy {
		r.engine.world.agenda.enter(due.Sub(epoch), r)
	}
}

// leave takes v, which has ended, off the list.
func (e *engine) leave(v *visit) {
	e.hold()
	last := len(e.visits) - 1
	e.visits[v.seat.slot] = e.visits[last]
	e.visits[v.seat.slot].seat.slot = v.seat.slot
	e.visits[last] = nil
	e.visits = e.visits[:last]
}

// fire ends the step that is due and hands out what it made. The next step has
// begun by then: who may go because somebody has ended waits for the one after.
func (r *rank) fire(w *world) {
	e := r.engine
	due, busy := r.sim.Next()
	if !busy || due.After(w.clock) || e.dead || r.dead {
		return // a step of an engine that was killed meanwhile
	}
	step := r.sim.Step(w.clock)
	r.plan()
	counted := w.now >= w.s.Warmup && w.now < w.s.Duration
	for i := range step.Outputs {
		out := &step.Outputs[i]
		if out.Last {
			r.count--
		}
		v, ok := out.Sequence.Tag.(*visit)
		if !ok {
			out.Sequence.Tag.(*tenant).receive(out)
			continue
		}
		w.tokens += out.Tokens
		if counted {
			e.outputTokens += out.Tokens
			if out.First {
				e.promptTokens += v.arrival.PromptTokens
				e.cachedTokens += out.Sequence.Cached()
			}
		}
		v.bring(out)
	}
}

// hold counts for how long how many were here, within the time that is measured.
// It is called before their number changes.
func (e *engine) hold() {
	w := e.world
	if to := min(w.now, w.s.Duration); to > e.heldTo {
		e.held += time.Duration(len(e.visits)) * max(0, to-max(e.heldTo, w.s.Warmup))
		e.heldTo = to
	}
}

// slow makes every step from the next one on take factor times as long.
func (e *engine) slow(factor float64) {
	e.drift = factor
	for _, r := range e.ranks {
		r.sim.SetDrift(factor)
	}
}

// kill ends all that runs here: who has no token yet is sent elsewhere, who
// has is cut.
func (e *engine) kill() {
	if e.dead {
		return
	}
	e.dead = true
	e.hold()
	victims := e.visits
	e.visits = nil
	for _, v := range victims {
		v.cut()
	}
}

// revive starts a fresh engine at the same address.
func (e *engine) revive() {
	if !e.dead {
		return
	}
	if err := e.start(); err != nil {
		panic(err) // it started once with the same options
	}
}

// floor is the highest that a route promises here, 0 if none.
func (e *engine) floor() float64 {
	floor := 0.0
	for i := range e.world.s.Routes {
		if r := &e.world.s.Routes[i]; r.floored() && r.on(e.conf.Name) {
			floor = max(floor, r.SLO.MinTPS)
		}
	}
	return floor
}

func (e *engine) result() BackendResult {
	w := e.world
	measured := w.s.Duration - w.s.Warmup
	e.hold()
	r := BackendResult{
		Backend: e.conf.Name, MeanM: e.held.Seconds() / measured.Seconds(), PeakM: e.peakM,
		Floor: e.floor(), PromptTokens: e.promptTokens, CachedTokens: e.cachedTokens, OutputTokens: e.outputTokens,
		TokensUSD: (float64(e.promptTokens)*e.conf.Price.Input + float64(e.outputTokens)*e.conf.Price.Output) / 1e6,
		HourUSD:   e.conf.USDPerHour * measured.Hours(),
	}
	if r.Floor > 0 {
		r.TrueUsers = e.trueUsers(r.Floor)
		r.Users = e.learnedUsers(r.Floor)
	}
	return r
}
