package arena

import (
	"fmt"
	"time"

	"github.com/pacer-dev/pacer/sim"
)

// engine is one backend: the engine of sim, and what it did.
type engine struct {
	world *world
	conf  Backend
	index int
	sim   *sim.Engine
	drift float64
	dead  bool
	lives uint64 // how often it was started

	visits []*visit // that run or wait here
	stepAt time.Duration

	mix   mix
	share float64            // of the requests, by weight; 0 = not worked out yet
	true  map[float64]*truth // by drift

	cap                        int // that somebody who knew would have set, see LeastCapped
	peakM                      int
	busy                       time.Duration
	promptTokens, outputTokens int
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

// start makes a fresh engine.
func (e *engine) start() error {
	o := e.conf.Engine
	if o.Seed == 0 {
		o.Seed = e.world.s.Seed*1000003 + uint64(e.index)*101 + e.lives + 1
	}
	e.lives++
	s, err := sim.NewEngine(o)
	if err != nil {
		return fmt.Errorf("arena: backend %q: %w", e.conf.Name, err)
	}
	s.SetDrift(e.drift)
	e.sim, e.dead = s, false
	return nil
}

// submit sends v to the engine; false when it can never run there.
func (e *engine) submit(v *visit) bool {
	s, err := e.sim.Submit(v.arrival.PromptTokens, v.arrival.OutputTokens, v)
	if err != nil {
		return false
	}
	v.engine, v.sequence = e, s
	v.slot = len(e.visits)
	e.visits = append(e.visits, v)
	e.peakM = max(e.peakM, len(e.visits))
	if _, busy := e.sim.Next(); !busy {
		e.sim.Step(e.world.clock)
		e.plan()
	}
	return true
}

// plan enters the end of the step that has begun.
func (e *engine) plan() {
	if due, busy := e.sim.Next(); busy {
		e.stepAt = e.world.now
		e.world.agenda.enter(due.Sub(epoch), e)
	}
}

// leave takes v, which has ended, off the list.
func (e *engine) leave(v *visit) {
	last := len(e.visits) - 1
	e.visits[v.slot] = e.visits[last]
	e.visits[v.slot].slot = v.slot
	e.visits[last] = nil
	e.visits = e.visits[:last]
}

// fire ends the step that is due and hands out what it made. The next step has
// begun by then: who may go because somebody has ended waits for the one after.
func (e *engine) fire(w *world) {
	due, busy := e.sim.Next()
	if !busy || due.After(w.clock) || e.dead {
		return // a step of an engine that was killed meanwhile
	}
	e.work(e.stepAt, w.now)
	step := e.sim.Step(w.clock)
	e.plan()
	counted := w.now >= w.s.Warmup && w.now < w.s.Duration
	for i := range step.Outputs {
		out := &step.Outputs[i]
		v := out.Sequence.Tag.(*visit)
		w.tokens += out.Tokens
		if counted {
			e.outputTokens += out.Tokens
			if out.First {
				e.promptTokens += v.arrival.PromptTokens
			}
		}
		v.receive(out)
	}
}

// work counts the part of a step that lies in the time that is measured.
func (e *engine) work(from, to time.Duration) {
	from, to = max(from, e.world.s.Warmup), min(to, e.world.s.Duration)
	if to > from {
		e.busy += to - from
	}
}

// slow makes every step from the next one on take factor times as long.
func (e *engine) slow(factor float64) {
	e.drift = factor
	e.sim.SetDrift(factor)
}

// kill ends all that runs here: who has no token yet is sent elsewhere, who
// has is cut.
func (e *engine) kill() {
	if e.dead {
		return
	}
	e.dead = true
	if _, busy := e.sim.Next(); busy {
		e.work(e.stepAt, e.world.now)
	}
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
	r := BackendResult{
		Backend: e.conf.Name, Busy: e.busy, Utilisation: e.busy.Seconds() / measured.Seconds(), PeakM: e.peakM,
		Floor: e.floor(), PromptTokens: e.promptTokens, OutputTokens: e.outputTokens,
		TokensUSD: (float64(e.promptTokens)*e.conf.Price.Input + float64(e.outputTokens)*e.conf.Price.Output) / 1e6,
		HourUSD:   e.conf.USDPerHour * measured.Hours(),
	}
	if r.Floor > 0 {
		r.TrueUsers = e.trueUsers(r.Floor)
		r.Users = e.learnedUsers(r.Floor)
	}
	return r
}
