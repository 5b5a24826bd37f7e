package router

import (
	"math"
	"time"
)

// Level is what the streams of one target got of late: sums that fade with
// levelMemory. A curve says how speed falls from one n to another, and how fast
// the engine is; the level says how fast it is at the moment. So after a
// disturbance nothing has to be learned anew, and no n that was seen only while
// the engine was slow keeps others out. The zero value has seen nothing.
type Level struct {
	Tokens  float64
	Seconds float64 // of one sequence
	AtN     float64 // Σ seconds·n
	Steps   float64 // Σ tokens/n
	Time    float64 // in which there were any, in seconds
}

// plus returns the level of the streams of both, which ran at the same time.
func (l Level) plus(o Level) Level {
	return Level{Tokens: l.Tokens + o.Tokens, Seconds: l.Seconds + o.Seconds, AtN: l.AtN + o.AtN, Steps: l.Steps + o.Steps, Time: max(l.Time, o.Time)}
}

const (
	levelMemory = 10 * time.Second

	// levelSteps and levelSeconds are what a level has to rest on: when a burst
	// begins, all are slow while the prompts of all are prefilled.
	levelSteps   = 20.0
	levelSeconds = 3.0

	// oneMore is by how much the running streams, as answers show them, have to be faster than the
	// floor for one more to be let in beside them, whatever the curve says of it.
	oneMore = 1.15
)

// fade ages l by d.
func (l *Level) fade(d time.Duration) {
	keep := math.Exp(-d.Seconds() / levelMemory.Seconds())
	l.Tokens *= keep
	l.Seconds *= keep
	l.AtN *= keep
	l.Steps *= keep
	l.Time *= keep
}

// see adds tokens that so many seconds of one sequence brought, beside n.
func (l *Level) see(tokens, seconds, n float64) {
	l.Tokens += tokens
	l.Seconds += seconds
	l.AtN += seconds * n
	l.Steps += tokens / n
}

// known reports whether enough was seen of late.
func (l *Level) known() bool { return l.Steps >= levelSteps && l.Time >= levelSeconds }

// tps is what one sequence got, n the level it got it at.
func (l *Level) tps() float64 { return l.Tokens / l.Seconds }
func (l *Level) n() float64   { return max(l.AtN/l.Seconds, 1) }

// level works out what the streams of all replicas say of each target of g. Targets share
// the engine: by as much as the streams of one are slower than its curve says, those of
// every other one are. A replica that has one target here tells of its tokens alone, and
// of which target they are only those know who have no other.
func (g *group) level() {
	if len(g.models) == 1 {
		m := g.models[0]
		m.lately.all = m.lately.own.plus(g.remote.Level).plus(m.asTokens(g.remote.Joint))
		m.settle()
		return
	}
	all := g.ofCurves().plus(g.remote.Joint)
	for _, m := range g.models {
		m.lately.all = m.asTokens(all)
		m.settle()
	}
}

// ofCurves is the level of the own streams of all targets, of what their curves say.
func (g *group) ofCurves() (all Level) {
	for _, m := range g.models {
		all = all.plus(m.ofCurve(m.lately.own))
	}
	return all
}

// ofCurve is l in seconds that its tokens should have taken by m's curve, in place of
// tokens: it says nothing where there is no curve.
func (m *model) ofCurve(l Level) Level {
	tps := m.atLevel(l)
	if tps <= 0 {
		return Level{}
	}
	l.Tokens /= tps
	return l
}

// asTokens is what ofCurve made of a level, as if all of it were m's.
func (m *model) asTokens(l Level) Level {
	tps := m.atLevel(l)
	if tps <= 0 {
		return Level{}
	}
	l.Tokens *= tps
	return l
}

// atLevel is what m's curve says of one sequence beside as many as l was seen at; 0 where
// it says nothing.
func (m *model) atLevel(l Level) float64 {
	if !m.known || l.Seconds <= 0 {
		return 0
	}
	return finite(m.curve.TPS(int(l.n() + 0.5)))
}

// settle works out what the level says of every other n. At k sequences each gets
// mean/Shape(k), Shape being the curve's seconds per token.
func (m *model) settle() {
	m.lately.mean, m.lately.bound = 0, 0
	if !m.known || !m.lately.all.known() {
		return
	}
	if shape := m.curve.Shape(m.lately.all.n()); shape > 0 {
		m.lately.mean = m.lately.all.tps() * shape * m.group.told.share()
		m.lately.bound = m.lately.mean * (1 - m.curve.Shown())
	}
}

// told is how many tokens finished streams were counted to have, and had: sums that fade
// with levelMemory. Where a chunk holds several tokens, and fewer under load, streams
// pass for faster than they are until the count has followed. The zero value has seen none.
type told struct {
	counted, had float64 // after the first chunk
}

const (
	// toldTokens is how much is taken to have been counted rightly.
	toldTokens = 1000.0

	// leastTold is from how many tokens on an answer says how well it was counted: what
	// its first chunk held is not known.
	leastTold = 50.0
)

// see adds a stream that was counted to have p, and had so many tokens in all.
func (t *told) see(p progress, tokens float64) {
	if p.rough || p.tokens < leastTold || tokens < leastTold {
		return
	}
	t.counted += p.tokens
	t.had += tokens - 1
}

func (t *told) fade(d time.Duration) {
	keep := math.Exp(-d.Seconds() / levelMemory.Seconds())
	t.counted *= keep
	t.had *= keep
}

// share is what part of the tokens that are counted are there, at most 1.
func (t *told) share() float64 { return min((t.had+toldTokens)/(t.counted+toldTokens), 1) }

// bound is what each of k sequences is believed to get at least, while extraP
// prompt tokens per step come on top of the usual: by the level where it is
// known and something decodes, else by the curve. A single sequence gets what the
// curve says: a level seen beside others is no measure of an idle engine.
func (m *model) bound(k int, extraP float64) float64 {
	low := m.idle
	switch {
	case k > 1 && m.lately.bound > 0 && m.group.n() > 0:
		low = m.lately.bound / m.curve.Shape(float64(k))
	case k > 1:
		return m.curve.Low(k, extraP)
	}
	return low / (1 + low*(m.cost*extraP))
}

// expects is what each of k sequences is expected to get, NaN when unknown: of a
// single one, as for its bound, while no prompt is prefilled beside it.
func (m *model) expects(k int) float64 {
	switch {
	case !m.known:
		return math.NaN()
	case k <= 1:
		return m.alone
	case m.lately.bound > 0:
		return m.lately.mean / m.curve.Shape(float64(k))
	}
	return m.curve.TPS(k)
}

// usualPrompts is the mean prompt of those that came last, each counting a
// promptShare. The zero value has seen none.
type usualPrompts struct {
	tokens float64
	count  int
}

const promptShare = 64

func (u *usualPrompts) see(tokens int) {
	u.count = min(u.count+1, promptShare)
	u.tokens += (float64(tokens) - u.tokens) / float64(u.count)
}

func (u *usualPrompts) mean() float64 { return u.tokens }

// shares takes off the usual prompt what w says is prefilled once for many, the first time
// that somebody comes behind it: the next ones do not bring that. Else a shared prompt of
// 16,000 tokens counts as if each of the first four had one of 4,000, and slow start lets
// nobody in after them. Once the curve is known it says what prompts take.
func (m *model) shares(w *Warmth) {
	l := m.group.own.unserved.front
	if m.known || !w.comes() || l == nil || l.shared || l.prompt < w.Soon {
		return
	}
	l.shared = true
	u := &m.group.price.usual
	u.tokens = max(u.tokens-float64(w.Soon)/float64(u.count), 0)
}

// longer is how many times as long as the usual prompt one is that explains by itself why all
// who stream beside it are slow, for longest at most: one that waits longer does not.
const (
	longer  = 4
	longest = 10 * time.Second
)

// long reports whether a prompt is that much longer than the usual one.
func (u *usualPrompts) long(tokens int) bool { return float64(tokens) > longer*u.tokens }

// prefilling notes that a prompt far longer than usual is prefilled, or was until now.
func (p *price) prefilling(now time.Time, tokens int) {
	if p.usual.long(tokens) {
		p.long = now
	}
}

// areaUntil is ∫n dt since the last look, in seconds.
func (g *group) areaUntil(now time.Time) float64 {
	return g.area + float64(g.noted.n)*now.Sub(g.areaAt).Seconds()
}

// beside is the mean of n since the last look.
func (g *group) beside(now time.Time) float64 {
	if d := now.Sub(g.lookedAt).Seconds(); d > 0 && !g.lookedAt.IsZero() {
		return max(g.areaUntil(now)/d, 1)
	}
	return float64(max(g.n(), 1))
}
