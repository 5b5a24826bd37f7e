package arena

import (
	"cmp"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// mix is what prompts and answers are like on one backend.
type mix struct {
	lengths         []length
	prompts, answer float64 // means
}

type length struct{ prompt, answer int }

// mixOn looks at the requests that were peeked at and may go to the backend.
func (w *world) mixOn(backend string) mix {
	on := map[string]bool{}
	for i := range w.s.Routes {
		on[w.s.Routes[i].Name] = w.s.Routes[i].on(backend)
	}
	var m mix
	for _, a := range w.ahead {
		if on[a.Route] {
			m.lengths = append(m.lengths, length{max(a.PromptTokens, 1), max(a.OutputTokens, 1)})
		}
	}
	if len(m.lengths) == 0 {
		m.lengths = []length{{200, 200}}
	}
	for _, l := range m.lengths {
		m.prompts += float64(l.prompt) / float64(len(m.lengths))
		m.answer += float64(l.answer) / float64(len(m.lengths))
	}
	return m
}

// rho is the prompt tokens for each token after the first of an answer.
func (m *mix) rho() float64 { return m.prompts / max(m.answer-1, 1) }

// stepSeconds is how long a step of the engine takes as it is now, without
// noise: n sequences decode in it and p prompt tokens are prefilled, on all
// ranks together.
func (e *engine) stepSeconds(n int, p float64) float64 {
	o := &e.conf.Engine
	if ranks := max(e.conf.Ranks, 1); ranks > 1 {
		n, p = (n+ranks-1)/ranks, p/float64(ranks)
	}
	s := o.Model.StepSeconds(n, p)
	if o.Prefill != nil {
		s = o.Model.StepSeconds(n, 0) + o.Prefill(n, int(p+0.5))
	}
	s += o.Model.E * float64(n) * (e.mix.prompts + e.mix.answer/2)
	s *= o.Temper.Usual(n, e.world.age())
	if lame := e.conf.Front.Lame; lame > 0 && e.conf.Ranks > 1 {
		s *= 1 + (lame-1)/float64(e.conf.Ranks)
	}
	return s * e.drift / cmp.Or(o.Speed, 1)
}

// age is what engines are taken to be in the midst of a scenario.
func (w *world) age() time.Duration {
	if w == nil {
		return 0
	}
	return w.s.Duration / 2
}

// tokenSeconds is how long one of n streams waits for a token while load prompt
// tokens are prefilled beside each.
func (e *engine) tokenSeconds(n int, load float64) float64 {
	perStep := e.perStep(n)
	return e.stepSeconds(n, load*perStep) / perStep
}

// trueTPS is what one of n streams gets, for ever, each answer followed by the
// next prompt.
func (e *engine) trueTPS(n int) float64 { return 1 / e.tokenSeconds(n, float64(n)*e.mix.rho()) }

// perStep is the tokens that a sequence gets of a step beside n in all.
func (e *engine) perStep(n int) float64 {
	o := &e.conf.Engine
	share := cmp.Or(o.Acceptance, 0.7)
	if ranks := max(e.conf.Ranks, 1); o.AcceptanceAt != nil {
		share = o.AcceptanceAt((n + ranks - 1) / ranks)
	}
	tokens, chance := 1.0, 1.0
	for range o.Draft {
		chance *= share
		tokens += chance
	}
	return tokens
}

// slots is how many sequences the engine runs at once: those that it has a place
// for, and whose prompts and half of whose answers fit into the cache.
func (e *engine) slots() int {
	o := &e.conf.Engine
	slots := cmp.Or(o.MaxNumSeqs, 256)
	if o.KVTokens > 0 {
		slots = min(slots, int(float64(o.KVTokens)/(e.mix.prompts+e.mix.answer/2)))
	}
	return slots * max(e.conf.Ranks, 1)
}

// trueUsers is the highest n at which every stream keeps floor.
func (e *engine) trueUsers(floor float64) int {
	n := 0
	for n < e.slots() && e.trueTPS(n+1) >= floor {
		n++
	}
	return n
}

// learnedUsers is the same by what the first gateway has learned.
func (e *engine) learnedUsers(floor float64) int {
	g := e.world.gateways[0]
	if g.book == nil {
		return 0
	}
	users := 0
	for _, t := range e.world.targets() {
		if c := g.book.Curve(t); t.Backend == e.conf.Name && c.Known() {
			n := 0
			_, hi := c.Support()
			for n < 2*hi && c.AtRho(n+1, e.mix.rho()).TPS >= floor {
				n++
			}
			users = max(users, n)
		}
	}
	return users
}

// weight is the share of requests that somebody would give the backend who
// knew what it carries: its users at the floor, or its tokens/s at half its
// slots where nothing is promised.
func (e *engine) weight() float64 {
	if e.share == 0 {
		if floor := e.floor(); floor > 0 {
			e.share = float64(e.trueUsers(floor)) + 0.5
		} else {
			n := max(e.slots()/2, 1)
			e.share = float64(n) * e.trueTPS(n)
		}
	}
	return e.share
}

// noMargin is a margin of nothing: a Book takes 0 for its default.
const noMargin = 1e-9

// truth is the true curve of a backend, as a Book knows it that has seen each
// level of concurrency for long and without noise. It is not the formula of
// the engine: a Curve also says what prompts cost, what answers are like and
// when first tokens come, and the router reads all of it.
type truth struct {
	sums   profiles.Sums
	curves map[truthKey]*profiles.Curve
}

type truthKey struct {
	target profiles.Target
	margin float64
}

// truth returns the true curve of the engine as it is now.
func (e *engine) truth() *truth {
	t := e.true[e.drift]
	if t == nil {
		t = e.study()
		e.true[e.drift] = t
	}
	return t
}

// study shows a book every level that has a bin, up to half of the lowest floor
// promised here.
func (e *engine) study() *truth {
	least := 0.0
	for i := range e.world.s.Routes {
		if r := &e.world.s.Routes[i]; r.floored() && r.on(e.conf.Name) && (least == 0 || r.SLO.MinTPS < least) {
			least = r.SLO.MinTPS
		}
	}
	s := studio{
		engine: e, book: profiles.NewBook(profiles.Options{}), target: profiles.Target{Backend: e.conf.Name},
		clock: epoch, folded: epoch,
	}
	s.book.Fold(epoch)
	s.answerFirst()
	for bin := range profiles.NumBins {
		_, n := profiles.BinBounds(bin)
		if n > e.slots() || n > 8 && e.trueTPS(n) < least/2 {
			break
		}
		s.watch(n)
	}
	return &truth{sums: s.sums, curves: map[truthKey]*profiles.Curve{}}
}

// curve is the truth as the router is told it.
func (t *truth) curve(target profiles.Target, margin float64) *profiles.Curve {
	key := truthKey{target, margin}
	if c := t.curves[key]; c != nil {
		return c
	}
	book := profiles.NewBook(profiles.Options{Margin: margin})
	book.Ensure(target)
	book.Apply(epoch, map[profiles.Target]profiles.Sums{target: t.sums}, nil)
	t.curves[key] = book.Curve(target)
	return t.curves[key]
}
