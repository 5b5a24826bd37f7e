package sim

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// EngineOptions configures an Engine. Zero values mean the defaults.
type EngineOptions struct {
	Model        Model   // required
	MaxNumSeqs   int     // sequences with a slot; default 256; more wait
	PrefillBatch int     // prompt tokens per step; default 8192
	KVTokens     int     // room for prompts and answers together; default: no limit
	Noise        float64 // standard deviation of the AR(1) step noise; default 0.05; negative = none
	Seed         uint64
	Speed        float64 // default 1: how much faster than the model

	// Prefill is the seconds that p prompt tokens add to a step that decodes n
	// sequences, for engines whose cost is no straight line. Default: Model.D·p.
	Prefill func(n, p int) float64

	// Draft is how many further tokens speculative decoding proposes for each
	// sequence and step, at most 15; default 0. Acceptance is the chance that
	// one is taken, given that all before it were; default 0.7.
	Draft      int
	Acceptance float64

	// AcceptanceAt is Acceptance by the number n of sequences that decode in the
	// step, for engines that draft less under load. Default: Acceptance.
	AcceptanceAt func(n int) float64

	// AcceptanceOf is Acceptance by the Tag of a sequence, for drafts that suit one text
	// and not another. Default: AcceptanceAt.
	AcceptanceOf func(tag any) float64

	// Temper is how steps differ from the model for long. Default: not at all.
	Temper Temper

	// Order is who is served when. Default: prompts in order of arrival, beside all
	// that decode.
	Order Order

	// SharedBudget counts the tokens of the sequences that decode within
	// PrefillBatch, as chunked prefill does: what they leave, at least one, is
	// for prompts.
	SharedBudget bool

	// Preempt gives KV to a sequence as it grows, not all that it may need at
	// its start. When a step does not fit any more, the newest sequence loses
	// its cache and its slot; it goes to the head of the line, and prefills
	// again what it had read and written.
	Preempt bool

	// Block gives the engine a prefix cache of blocks of so many tokens, in what
	// KVTokens leaves beside the sequences that run. Default: none. It needs
	// KVTokens, and excludes Preempt.
	Block int

	// CacheTokens bounds what the cache keeps that no running sequence uses. Default: what
	// KVTokens leaves.
	CacheTokens int
}

// Order is how an engine differs from first come, first served.
type Order struct {
	// PrefillFirst has nobody decode in a step that prefills.
	PrefillFirst bool

	// Prefills is how many prompts are prefilled at a time. Default: as many as the
	// budget takes.
	Prefills int

	// NewestFirst gives slots to those who came last.
	NewestFirst bool
}

const (
	// maxSlots bounds what an engine allocates for its options.
	maxSlots = 65536
	// maxLag is how late a step may be noticed and still count as done on
	// time. Later than that the engine was held up, and does not catch up: it
	// would run faster than its curve.
	maxLag = 250 * time.Millisecond

	// minStep and maxStep bound a step, whatever the options make of it.
	minStep, maxStep = time.Microsecond, time.Hour
)

// ErrTooLong is returned for a sequence that could never run.
var ErrTooLong = errors.New("sim: prompt and answer exceed the KV cache")

// Engine is continuous batching, step by step: a step produces one token for
// every sequence whose prompt is prefilled, and prefills prompts in chunks, in
// order of arrival, as far as its budget of prompt tokens goes. The step that
// ends a sequence's prefill yields its first token.
//
// It reads no clock and starts nothing. Whoever drives it calls Step at the
// time that Next names, and once after a Submit while Next names none. It is
// not safe for concurrent use.
type Engine struct {
	o      EngineOptions
	base   []float64 // seconds of a step that decodes n sequences, by n
	drift  float64   // factor on every step
	noise  noise
	mood   mood
	drafts *rand.Rand // whether proposed tokens are taken
	record record

	line    list[*Sequence] // waiting, in order of arrival
	batch   []*Sequence     // running, in order of admission
	kvInUse int             // by the batch, without what it uses of the cache
	cache   blockCache

	busy bool      // a step is under way
	held bool      // nobody decodes in it
	due  time.Time // when it ends; only while busy
	work Work      // of it, or of the last one

	outputs  []Output // reused
	admitted []*Sequence
}

// Output is what one step gave one sequence.
type Output struct {
	Sequence *Sequence
	Tokens   int  // at least 1
	First    bool // the end of its prefill
	Last     bool // the sequence is finished
}

// Step is what happened at one instant: the end of one step and the start of
// the next. Its slices hold until the engine is used again.
type Step struct {
	At       time.Time   // when the step ended; zero if none did
	Outputs  []Output    // of the step that ended
	Work     Work        // of the step that ended
	Admitted []*Sequence // got a slot in the step that starts
}

// Work is what a step was planned to do.
type Work struct {
	Decoding int     // sequences that decode
	Prefill  int     // prompt tokens
	Seconds  float64 // how long that takes without noise, as drift and speed have it
}

// NewEngine checks o.
func NewEngine(o EngineOptions) (*Engine, error) {
	if err := o.Model.check(); err != nil {
		return nil, err
	}
	for _, c := range []struct {
		name          string
		value         *int
		standard, max int
	}{
		{"MaxNumSeqs", &o.MaxNumSeqs, 256, maxSlots},
		{"PrefillBatch", &o.PrefillBatch, 8192, math.MaxInt32},
		{"KVTokens", &o.KVTokens, math.MaxInt, math.MaxInt},
	} {
		if *c.value < 0 || *c.value > c.max {
			return nil, fmt.Errorf("sim: %s is %d, must be from 1 to %d", c.name, *c.value, c.max)
		}
		if *c.value == 0 {
			*c.value = c.standard
		}
	}
	switch {
	case o.Noise == 0:
		o.Noise = 0.05
	case o.Noise < 0:
		o.Noise = 0
	case !(o.Noise <= 1):
		return nil, fmt.Errorf("sim: Noise is %v, must be at most 1", o.Noise)
	}
	if o.Speed == 0 {
		o.Speed = 1
	}
	if !(o.Speed > 0) || math.IsInf(o.Speed, 0) {
		return nil, fmt.Errorf("sim: Speed is %v, must be positive", o.Speed)
	}
	if err := o.checkDraft(); err != nil {
		return nil, err
	}
	if err := o.Temper.check(); err != nil {
		return nil, err
	}
	if o.Order.Prefills < 0 {
		return nil, fmt.Errorf("sim: Order.Prefills is %d, must be 0 or more", o.Order.Prefills)
	}
	if o.Block < 0 || o.Block > 0 && (o.Preempt || o.KVTokens == math.MaxInt) {
		return nil, fmt.Errorf("sim: Block is %d, must be 0 or more, with KVTokens and without Preempt", o.Block)
	}
	if o.Prefill == nil {
		d := o.Model.D
		o.Prefill = func(_, p int) float64 { return d * float64(p) }
	}
	e := &Engine{o: o, drift: 1, record: newRecord(o.MaxNumSeqs)}
	e.cache = blockCache{size: o.Block, blocks: map[uint64]*block{}}
	e.noise = newNoise(o.Noise, rand.New(rand.NewPCG(o.Seed, 0)))
	e.drafts = rand.New(rand.NewPCG(o.Seed, 1))
	e.mood = newMood(o.Temper, rand.New(rand.NewPCG(o.Seed, 2)))
	e.base = make([]float64, o.MaxNumSeqs+1)
	for n := range e.base {
		e.base[n] = o.Model.decodeSeconds(max(n, 1))
	}
	return e, nil
}

// Submit puts a sequence at the end of the line. Less than one token, of
// prompt or answer, counts as one.
func (e *Engine) Submit(promptTokens, maxTokens int, tag any) (*Sequence, error) {
	return e.SubmitText(promptTokens, maxTokens, nil, tag)
}

// SubmitText is Submit for an engine with a prefix cache: hashes stand for the
// blocks of the prompt and of the answer to it, one behind the other, each for
// its own block and all before it.
func (e *Engine) SubmitText(promptTokens, maxTokens int, hashes []uint64, tag any) (*Sequence, error) {
	s := &Sequence{Tag: tag, prompt: max(promptTokens, 1), left: max(maxTokens, 1)}
	if e.o.Block > 0 {
		s.hashes = hashes
	}
	s.context = s.prompt
	// The whole answer is reserved, so no running sequence is ever put back.
	s.cache = s.prompt + s.left
	if s.cache > e.o.KVTokens {
		return nil, ErrTooLong
	}
	if e.o.Preempt {
		s.cache = s.prompt
	}
	e.line.push(s)
	return s, nil
}

// Cancel ends a sequence wherever it is. A step under way goes on for as long
// as it was going to. It reports false, and does nothing, if s had ended.
func (e *Engine) Cancel(s *Sequence) bool {
	switch s.state {
	case ended:
		return false
	case waiting:
		e.line.remove(s)
	case running:
		i := slices.Index(e.batch, s)
		e.batch = slices.Delete(e.batch, i, i+1)
		e.release(s)
	}
	s.state = ended
	e.record.cancelled++
	return true
}

// Forget empties the prefix cache, but for what those who run use of it.
func (e *Engine) Forget() { e.cache.evict(e.cache.held()) }

// Running is how many sequences have a slot, prefilling or decoding.
func (e *Engine) Running() int { return len(e.batch) }

// Free is how many slots nobody runs in. Who waits gets one at the next step.
func (e *Engine) Free() int { return e.o.MaxNumSeqs - len(e.batch) }

// Waiting is how many sequences are in line for a slot.
func (e *Engine) Waiting() int { return e.line.count }

// SetDrift makes every step from the next one on take factor times as long as
// the model says. factor must be positive.
func (e *Engine) SetDrift(factor float64) { e.drift = factor }

// Next is when the step under way ends; false while none is.
func (e *Engine) Next() (time.Time, bool) { return e.due, e.busy }

// Step ends the step under way, if it is due, and starts the next one if there
// is work. Before the due time it does nothing.
//
// The next step starts when the last one was due, not when the caller noticed,
// so that timers which fire late do not slow the engine down.
func (e *Engine) Step(now time.Time) Step {
	if e.busy && now.Before(e.due) {
		return Step{}
	}
	var s Step
	if e.busy {
		s.At = e.due
		if now.Sub(s.At) > maxLag {
			s.At = now
		}
		e.finish(s.At)
		s.Outputs, s.Work = e.outputs, e.work
		now = s.At
	}
	e.begin(now)
	s.Admitted = e.admitted
	return s
}

// finish hands out the tokens of the step that ended at now.
func (e *Engine) finish(now time.Time) {
	e.busy = false
	e.outputs = e.outputs[:0]
	var decoded, tokens int
	var seconds float64 // that the decoded tokens were waited for
	kept := e.batch[:0]
	for _, s := range e.batch {
		first := s.chunk > 0 && s.prompt == s.chunk && !s.resumed
		decodes := s.prompt == 0 && !e.held
		s.resumed = s.resumed && s.prompt > s.chunk
		s.prompt -= s.chunk
		s.chunk = 0
		got := 1
		if decodes {
			got = e.accepted(s, e.work.Decoding)
			decoded++
			tokens += got
			seconds += now.Sub(s.last).Seconds()
		}
		if first || decodes {
			s.last = now
			s.left -= got
			s.context += got
			if e.o.Preempt {
				s.cache += got
				e.kvInUse += got
			}
			e.outputs = append(e.outputs, Output{Sequence: s, Tokens: got, First: first, Last: s.left == 0})
		}
		e.keep(s)
		if s.left == 0 {
			s.state = ended
			e.release(s)
			continue
		}
		kept = append(kept, s)
	}
	clear(e.batch[len(kept):])
	e.batch = kept
	e.record.step(decoded, tokens, seconds)
}

// begin plans the step that starts at now: every prefilled sequence decodes,
// and prompts get what the budget has, first come first served.
func (e *Engine) begin(now time.Time) {
	e.admitted = e.admitted[:0]
	e.preempt()
	var decoding, context int
	for _, s := range e.batch {
		if s.prompt == 0 {
			decoding++
			context += s.context
		}
	}
	whole := e.o.PrefillBatch
	if e.o.SharedBudget {
		whole = max(whole-decoding, 1)
	}
	budget, reading := whole, 0
	for _, s := range e.batch {
		if s.chunk = 0; s.prompt > 0 && e.mayRead(reading) {
			s.chunk = min(s.prompt, budget)
			budget -= s.chunk
			reading++
		}
	}
	for budget > 0 && e.line.count > 0 && len(e.batch) < e.o.MaxNumSeqs && e.mayRead(reading) {
		s := e.line.first
		if e.o.Order.NewestFirst {
			s = e.line.last
		}
		if !e.fits(s) {
			break // those behind it wait too, or a long one would wait for ever
		}
		e.line.remove(s)
		s.state = running
		e.kvInUse += s.cache
		s.chunk = min(s.prompt, budget)
		budget -= s.chunk
		reading++
		e.batch = append(e.batch, s)
		e.admitted = append(e.admitted, s)
	}
	prefill := whole - budget
	if decoding == 0 && prefill == 0 {
		return
	}
	if e.held = e.o.Order.PrefillFirst && prefill > 0; e.held {
		decoding, context = 0, 0
	}
	seconds := e.base[decoding] + e.o.Prefill(decoding, prefill) + e.o.Model.E*float64(context)
	seconds *= e.drift / e.o.Speed
	e.work = Work{Decoding: decoding, Prefill: prefill, Seconds: seconds}
	seconds *= e.noise.next()
	seconds = e.mood.takes(now, len(e.batch), seconds)
	e.busy = true
	// Time must go on, and may not overflow.
	seconds = min(max(seconds, minStep.Seconds()), maxStep.Seconds())
	e.due = now.Add(time.Duration(math.Round(seconds * 1e9)))
}

// mayRead reports whether one more prompt may be prefilled in a step beside so many.
func (e *Engine) mayRead(reading int) bool {
	return e.o.Order.Prefills == 0 || reading < e.o.Order.Prefills
}

// fits makes room for s in the KV cache, and reports whether there is enough. What
// the prefix cache has of it needs no room, and no prefill.
func (e *Engine) fits(s *Sequence) bool {
	if e.o.Block == 0 {
		return s.cache <= e.o.KVTokens-e.kvInUse
	}
	cached := e.cache.find(s) * e.o.Block
	e.cache.evict(e.kvInUse + e.cache.held() + s.cache - cached - e.o.KVTokens)
	if e.kvInUse+e.cache.held()+s.cache-cached > e.o.KVTokens {
		e.cache.leave(s)
		return false
	}
	e.cache.counts.Prompt += s.prompt
	e.cache.counts.Cached += cached
	s.cached = cached
	s.prompt -= cached
	s.cache -= cached
	return true
}

// keep puts what s has computed into the prefix cache.
func (e *Engine) keep(s *Sequence) {
	if e.o.Block == 0 || len(s.hashes) == len(s.held) {
		return
	}
	computed := s.context - s.prompt
	if s.prompt == 0 {
		computed-- // the newest token is read in the next step
	}
	moved := e.cache.grow(s, computed)
	s.cache -= moved
	e.kvInUse -= moved
}

// release gives back what s had of the KV cache.
func (e *Engine) release(s *Sequence) {
	e.kvInUse -= s.cache
	if e.o.Block == 0 {
		return
	}
	e.cache.leave(s)
	if most := e.o.CacheTokens; most > 0 {
		e.cache.evict(e.cache.idle.count*e.o.Block - most)
	}
}
