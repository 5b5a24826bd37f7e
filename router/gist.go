package router

import (
	"math"
	"time"
)

// gist is what the rules read of a target between two changes of it, so that a
// decision over many targets reads two lines of memory of each, and not twenty. Only
// where nothing but speed, prompts and first tokens can speak against a request is it
// asked (plain); all else is weigh's to judge, and whom it does not clear at once it
// asks the same rules about.
//
// Invariant: while it is current, nothing changed that a field below rests on: who
// changes such a thing says so by changed. The zero value is not current. Guarded by
// Router.mu.
type gist struct {
	current bool
	plain   bool
	scarce  answer // of ask.scarce, of one sequence more with a floor below promised

	basis  Basis   // of bound
	m      int32   // sequences there
	prompt int     // tokens that wait for their prefill
	tokens float64 // mean output; 0 = the route says

	// See bound; of one sequence more.
	low, cost float64
	need      float64 // highest floor that must hold there, 0 = none
	promised  float64 // highest floor that a route promises there, 0 = none

	token   float64       // seconds that a prompt token takes off the leads, with safety
	lead    float64       // seconds that all who stream or wait there can pay; +Inf = nobody is in a hurry
	prefill float64       // seconds of a prompt token, for the first token
	base    float64       // seconds of a first token without a prompt
	wait    time.Duration // until a first token, for what stands before it
	due     time.Duration // since Router.began: of the first token of who waits longest; never = nobody waits

	slow slow
	mark mark // no part of it: what the request that is judged says of the target
}

// slow is what the rule of speed said of the last floor that was too high. Who waits
// in line asks again at every change elsewhere. The zero value has refused nobody.
type slow struct {
	floor  float64 // 0 = none was
	extraP float64
	low    float64
	basis  Basis
}

// answer is one that is found when somebody asks.
type answer uint8

const (
	notAsked answer = iota
	yes
	no
)

// never is after all that is due.
const never = time.Duration(math.MaxInt64 / 2)

// changed says that something changed which the rules read of the targets of b.
func (b *backend) changed() {
	for _, g := range b.groups {
		g.changed()
	}
}

func (g *group) changed() {
	for _, m := range g.models {
		m.gist.current = false
	}
}

// take makes s the gist of m.
func (s *gist) take(m *model) {
	g := m.group
	c := g.present()
	*s = gist{
		mark: s.mark, current: true, plain: m.plain(&c), m: int32(c.m), prompt: c.prompt, tokens: m.answer,
		need: m.protect(), promised: g.promised,
		token: leadSafety * g.price.token, lead: math.Inf(1), prefill: m.prefill, base: m.ttft.Base, due: never,
	}
	if !s.plain {
		return
	}
	switch k := c.m + 1; {
	case k == 1:
		s.low, s.cost, s.basis = m.idle, m.cost, ByCurve
	case m.lately.bound > 0:
		s.low, s.cost, s.basis = m.bound(k, 0), m.cost, ByLevel
		s.plain = k <= m.reach()
	default:
		s.low, s.cost, s.basis = m.curve.Low(k, 0), m.cost, ByCurve
	}
	if lead := g.leastLead(); lead < maxLead {
		s.lead = lead.Seconds()
	}
	if m.waitingFloor() > 0 {
		s.lead = min(s.lead, g.leastGrace.Seconds())
	}
	s.wait = g.untilServed(m, &c)
	if l := g.own.unserved.front; l != nil {
		s.due = l.placed.Add(l.expected.prefill).Sub(g.router.began)
	}
}

// plain reports whether nothing but speed, prompts and first tokens can speak against
// one more interactive sequence on m, beside c.
func (m *model) plain(c *present) bool {
	g := m.group
	b := g.backend
	if b.health != Up || b.hung || c.places < 1 || !m.known || m.guessed || g.ramp.recovered || !g.clearing.until.IsZero() || len(g.models) != 1 ||
		!m.rest.until.IsZero() || !m.quota.at.IsZero() {
		return false
	}
	for _, g := range b.groups {
		if len(g.held) > 0 {
			return false
		}
	}
	return true
}

// plain reports whether a is a request of which gists say something.
func (a *ask) plain() bool {
	return a.weight == 1 && a.class == Interactive && len(a.req.Exclude) == 0
}

// bound is what each is believed to get with one sequence more, as model.bound says
// it, while extraP prompt tokens per step come on top of the usual.
func (s *gist) bound(extraP float64) float64 { return s.low / (1 + s.low*(s.cost*extraP)) }

// judge is weigh for a plain request, where v.model, whose gist s is, is plain; ok is false
// elsewhere, and where one shows what it takes.
func (s *gist) judge(a *ask, v *verdict) (ok bool) {
	m := v.model
	if !s.current {
		s.take(m)
	}
	if !s.plain {
		return false
	}
	prefill, own := a.toPrefill(m), true
	v.m, v.low, v.basis = s.m, s.bound(0), s.basis
	if s.prompt > 0 {
		v.low = s.bound(extraP(s.prompt, a.output(s.tokens)))
	}
	switch {
	case a.floor <= 0:
		v.basis = NoBasis
	case v.low >= a.floor:
		v.headroom = v.low / a.floor
	default:
		if own = s.fast(a, v); !own && m.thin(a.floor) && m.group.leased() <= 0 {
			return false
		}
		v.headroom = v.low / a.floor
	}
	by, kept := s.protects(a, v, prefill)
	switch {
	case !own:
		v.reason = ReasonOwnFloor
	case !kept:
		v.reason, v.basis = ReasonProtects, by
	case !s.pays(a, prefill) && !m.paysNow(a):
		v.reason, v.basis = ReasonProtects, ByLead
	case !s.inTime(a, prefill) && !m.inTimeNow(a):
		v.reason = ReasonTTFT
	}
	return true
}

// fast is rule 2 where the bound does not do: other evidence may. It notes in v what
// the answer rests on.
func (s *gist) fast(a *ask, v *verdict) (ok bool) {
	before := extraP(s.prompt, a.output(s.tokens))
	if s.slow.floor == a.floor && s.slow.extraP == before {
		v.low, v.basis = s.slow.low, s.slow.basis
		return false
	}
	v.low, v.basis, ok = a.keeps(v.model, int(s.m)+1, before, a.floor)
	if !ok {
		s.slow = slow{floor: a.floor, extraP: before, low: v.low, basis: v.basis}
	}
	return ok
}

// protects is ask.protects, of the only target there, beside a prompt of so many tokens.
func (s *gist) protects(a *ask, v *verdict, prefill int) (by Basis, ok bool) {
	if s.need <= 0 {
		return NoBasis, true
	}
	v.protect = s.need
	after := extraP(s.prompt+prefill, s.tokens)
	bound, by, ok := s.bound(after), s.basis, true
	if bound < s.need {
		bound, by, ok = a.keeps(v.model, int(s.m)+1, after, s.need)
	}
	v.headroom = min(v.headroom, bound/s.need)
	return by, ok
}

// pays reports whether every lead can pay for a prompt of so many tokens, although
// nothing of those before it were done.
func (s *gist) pays(a *ask, prefill int) bool {
	return a.prompt <= 0 || s.token*(float64(s.prompt)+a.unheard*float64(prefill)) <= s.lead
}

func (m *model) paysNow(a *ask) bool {
	c := m.group.present()
	return a.pays(m, &c)
}

// inTime reports whether a has its first token in time, its own prefill included.
func (s *gist) inTime(a *ask, prefill int) bool {
	if a.maxTTFT <= 0 {
		return true
	}
	wait := max(s.wait, a.at-s.due) + reckoned(a.waited)
	if a.prompt > 0 {
		wait += seconds(s.base + s.prefill*float64(prefill))
	}
	return wait <= a.maxTTFT
}

func (m *model) inTimeNow(a *ask) bool {
	c := m.group.present()
	return a.inTime(m, &c)
}
