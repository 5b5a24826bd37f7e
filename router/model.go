package router

import (
	"math"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// curve is what the router reads of a profiles.Curve.
type curve interface {
	Known() bool
	Borrowed() bool
	TPS(n int) float64
	Low(n int, extraP float64) float64 // Low(n, 0)/(1 + Low(n, 0)·SecondsPerPromptToken·extraP)
	Support() (lo, hi int)
	MeanOutput() float64
	SecondsPerPromptToken() float64
	Steps() float64
	Seen(n int) float64
	TTFT() profiles.TTFT
	AtRho(n int, rho float64) profiles.Point
	Shape(n float64) float64
	Shown() float64
	Scale() float64
	PriorTPS(n int) float64 // NaN without a configured prior
}

// model is one target of one backend incarnation: what is known of its speed,
// and what is promised there.
type model struct {
	group *group
	name  string // upstream name; "" = the client's
	gist  gist

	// The curve, and of it what every decision asks. Until the curve is known
	// the rest is zero.
	curve   curve
	before  curve // from before the engine became slower; nil = it did not, or nobody saw it
	known   bool
	guessed bool // it is that of other models on the engine
	support support
	ttft    profiles.TTFT
	timed   bool    // ttft rests on first tokens
	cost    float64 // seconds per prompt token, by the fit
	prefill float64 // seconds per prompt token, for the time to the first token
	idle    float64 // bound of a stream that is alone and stays so: no prompt is prefilled beside it
	alone   float64 // what that stream is expected to get, at least idle; NaN when unknown
	answer  float64 // mean output tokens; 0 = unknown
	solo    float64 // TPS(1), or more where that was seen; +Inf while unknown or guessed

	lately   lately
	floors   floors
	promised float64   // highest floor configured on an interactive route, 0 = none
	promises []float64 // all of them, the highest first
	reserve  int       // streams those routes want kept free
	leases   int       // that point here: the model outlives its configuration until 0

	tries tries
	rest  rest
	quota quota
}

// support is the range of n of which a curve has evidence, or a prior. Without
// either, it is zero.
type support struct {
	lo int
	hi int // 0 = nothing says how far
}

// lately is what streams of a target got of late, and what follows from it: see
// settle.
type lately struct {
	own   Level   // of this replica's streams
	moved bool    // there were any since the last look
	all   Level   // of all streams, as far as it is known
	step  float64 // seconds of a token beside as many as at the last look; 0 = unknown
	mean  float64 // what one sequence would get if a token took a second; 0 while all is not known
	bound float64 // the same less what streams have shown to be needed of a margin
}

// floors are those of the leases that run on a target.
type floors struct {
	running floorSet
	waiting floorSet // of those of them that have no first token yet
	bidding floorSet // of those in line who bid for a place, see bid
	remote  float64  // highest one that another replica runs here, 0 = none
}

// tries are those of a target with a floor that it is too slow for. The zero value is
// that there was none lately.
type tries struct {
	floor float64       // the lowest that was tried; what was too slow for it says nothing of a lower one
	after time.Duration // idle for so long, it is tried with that floor again, or a higher one; 0 = staleAfter
	got   float64       // tokens/s of the last one; up to it the next is due at once, and once
}

// due reports whether a target that has been idle for so long is tried with floor.
func (t *tries) due(floor float64, idle time.Duration) bool {
	after := staleAfter
	if floor >= t.floor {
		after = max(t.after, after)
	}
	return floor <= t.got || idle >= after
}

// begin notes a try.
func (t *tries) begin(floor float64) {
	if floor <= t.got {
		t.got = 0 // unless this one shows it, too
		return
	}
	if t.after == 0 || floor < t.floor {
		t.floor, t.after = floor, staleAfter
	}
	t.after = min(t.after*5/4, staleMost)
}

// keeps notes that a stream is let in with floor: the target is not too slow for it.
func (t *tries) keeps(floor float64) {
	if floor >= t.floor {
		t.after = 0
	}
}

// triedTokens and triedFor are what a try has to show: two tokens in one read are no speed.
const (
	triedTokens = 5
	triedFor    = 50 * time.Millisecond
)

// end notes what a stream got that did not carry the floor that it asked for. If it was
// enough, the next try is due at once: one short answer moves no curve.
func (t *tries) end(l *Lease) {
	p := l.progress()
	if took := p.last - l.first; l.asked > l.floor && !p.rough && p.tokens >= triedTokens && took >= triedFor {
		t.got = p.tokens / (float64(l.weight) * took.Seconds())
	}
}

// best is what a single stream got here before the engine became slow, if it did.
func (m *model) best() float64 {
	if m.curve == nil {
		return m.solo
	}
	return m.solo / min(m.curve.Scale(), 1)
}

// learn takes a new curve, or none.
func (m *model) learn(c curve) {
	m.remember(c)
	m.curve = c
	m.known = c != nil && c.Known()
	m.guessed = m.known && c.Borrowed()
	m.support = support{}
	m.answer, m.cost, m.idle, m.alone, m.solo = 0, 0, 0, math.NaN(), math.Inf(1)
	m.learnTTFT(c)
	defer func() {
		m.settle()
		m.group.reprice()
	}()
	if !m.known {
		return
	}
	m.cost = finite(c.SecondsPerPromptToken())
	m.support.lo, m.support.hi = c.Support()
	m.answer = finite(c.MeanOutput())
	m.believe()
	alone := c.AtRho(1, 0)
	if solo := max(alone.TPS, c.TPS(1), c.Seen(1)); solo > 0 && !m.guessed {
		m.solo = solo
	}
}

// believe works out what is said of a stream that is alone. It harms nobody but
// itself, and an engine that is kept empty shows nothing, so what says the most counts.
func (m *model) believe() {
	c := m.curve
	alone := c.AtRho(1, 0)
	m.idle = max(finite(alone.Low), c.Low(1, 0), finite(alone.TPS)*(1-c.Shown()))
	if tps := max(finite(alone.TPS), finite(c.TPS(1)), m.idle); tps > 0 {
		m.alone = tps
	}
}

// protect is the highest floor that the streams running here must keep, 0 if
// none. A floor above what the target gives a single stream protects nothing:
// nobody can keep it, and it would lock the backend for as long as it runs.
func (m *model) protect() float64 {
	floor := m.floors.running.highest(m.solo)
	if m.floors.remote > floor && m.floors.remote <= m.solo {
		floor = m.floors.remote
	}
	return floor
}

// carries reports whether each of k sequences here keeps need, while extraP
// prompt tokens per step come on top of the usual. bound is what the answer
// rests on, 0 when there is nothing, and basis where it comes from. It is the one
// rule of speed: whoever asks for room, for a reserve or for a way back asks it.
//
// While the curve is unknown the answer is slow start: yes up to the cap. While
// the level is known it decides, as far as it reaches; and beside streams that
// are well above need there is always room for one more. Else the curve decides,
// see byCurve.
func (m *model) carries(k int, extraP, need float64) (bound float64, basis Basis, ok bool) {
	if !m.known {
		return 0, BySlowStart, need <= 0 || k <= m.group.ramp.cap
	}
	k = max(k, 1)
	byLevel := m.lately.bound > 0 && k > 1
	if need > 0 && !byLevel {
		return m.byCurve(k, extraP, need)
	}
	basis = ByCurve
	if byLevel {
		basis = ByLevel
	}
	bound = m.bound(k, extraP)
	switch {
	case need <= 0:
		return bound, basis, true
	case bound >= need && m.within(k):
		return bound, basis, true
	case m.lately.all.tps()*m.group.told.share() >= oneMore*need && float64(k) < m.lately.all.n()+2:
		return max(bound, need), ByOneMore, true
	case m.untold(k, extraP, need):
		return max(bound, need), BySlowStart, true
	}
	return bound, basis, false
}

// untold reports whether k is the next number of sequences after the only one that
// was ever seen here, where those keep need: one level tells no slope, and that of a guess
// keeps nobody out for good. A configured prior is no guess. Where the next one is too much,
// two streams show it, once. The curve is asked, too: until three answers have ended streams
// say nothing of the level.
func (m *model) untold(k int, extraP, need float64) bool {
	hi := m.support.hi
	return k == hi+1 && float64(hi) < apart*float64(m.support.lo) && math.IsNaN(m.curve.PriorTPS(k)) && m.bound(hi, extraP) >= need
}

// farther is how far beyond the n that it was seen at a level says something.
const farther = 1.25

// reach is up to how many sequences the level says something: as many as were
// visited, as slow start found that there may be, or a few more than run.
func (m *model) reach() int {
	if m.support.hi == 0 {
		return math.MaxInt
	}
	reach := max(m.support.hi, m.group.ramp.cap)
	if m.lately.bound > 0 {
		reach = max(reach, int(farther*m.lately.all.n())+1)
	}
	return reach
}

// within reports whether so many sequences are no more than the level says something
// about: whoever waits for his prefill does not decode.
func (m *model) within(k int) bool {
	reach := m.reach()
	return k <= reach || m.together(k, reach) <= reach
}

// together is how many of k sequences decode at once, at most, where they are as fast as
// reach of them: beside those of now those whose prefill ends before a usual answer does.
func (m *model) together(k, reach int) int {
	g := m.group
	prefill, tps := g.price.first*g.price.usual.mean(), m.bound(reach, 0)
	if prefill <= 0 || tps <= 0 || g.price.prefills.all().xx < aloneEnough {
		return k
	}
	return int(min(float64(k), float64(g.n())+math.Ceil(m.usualAnswer()/tps/prefill)))
}

// byCurve is carries by the curve alone, for need above 0.
//
// It may be limited by evidence and not by speed: it answers 0 beyond
// twice what it visited, and takes 15 % off on the way there, which a backend
// whose growth costs more than that would never pass. So between visited and
// the cap, which grows only by what the streams themselves showed, the curve
// is asked at its edge instead, and its fit continues with the edge's margin.
// Below the lowest n with evidence the fit continues likewise: with fewer
// streams nobody gets slower. And up to
// the cap that slow start begins with, what the streams themselves were seen to
// get is believed against the fit: of a backend that was overrun before it was
// ever seen idle the fit says that not even one stream gets its floor, and
// nobody would be let in to show the contrary. What is only guessed lets in and
// keeps nobody out: what it refuses, slow start answers for.
func (m *model) byCurve(k int, extraP, need float64) (bound float64, basis Basis, ok bool) {
	g := m.group
	low := 0.0
	if k == 1 {
		low = m.bound(k, extraP)
	} else {
		low = m.curve.Low(k, extraP)
	}
	if low >= need {
		return low, ByCurve, true
	}
	if m.guessed && k <= g.ramp.cap {
		return need, BySlowStart, true
	}
	if k <= slowStartCap && m.seen(k, extraP) >= beaten*need {
		return need, BySeen, true
	}
	if m.untold(k, extraP, need) {
		return need, BySlowStart, true
	}
	if !m.outside(k) || k > m.support.hi && k > g.ramp.cap {
		return low, ByCurve, false
	}
	if grown := m.grown(k, extraP); grown >= need {
		return grown, ByEdge, true
	}
	return low, ByCurve, false
}

// starts reports whether slow start answers for the target, as long as it runs
// with a floor: nothing is known of its speed, or too little is guessed for what
// is promised there.
func (m *model) starts() bool {
	return !m.known || m.guessed && m.curve.Low(1, 0) < max(m.promised, m.floors.running.highest(math.Inf(1)))
}

// seen is what streams were seen to get with k or more of them there, once
// extraP prompt tokens per step come on top.
func (m *model) seen(k int, extraP float64) float64 {
	tps := m.curve.Seen(k)
	return tps / (1 + tps*m.curve.SecondsPerPromptToken()*extraP)
}

// outOfReach reports whether not even k sequences alone on the target would be
// admitted with floor, and that for its speed. Of what was never seen nobody
// can say so: a backend that has always had more to do is believed only about
// floors far beyond what its fit gives a single stream.
func (m *model) outOfReach(k int, floor float64) bool {
	if !m.known || m.thin(floor) || m.limitedByEvidence(k, floor) {
		return false
	}
	if k < m.support.lo && m.curve.Steps() > 0 && floor <= probeWithin*m.solo {
		return false
	}
	_, _, ok := m.byCurve(k, 0, floor)
	return !ok
}

// thinSteps is up to how many decode steps a curve was learned from too little to
// keep everybody out. Where prompts are long and answers short, the first steps are
// all beside prefills, and a curve of 40 of them has said 9 tokens/s of an engine
// that gives 65: it got no request any more, and so nothing showed the contrary.
const thinSteps = 300

// thin reports whether what speaks against floor here is no more than that.
func (m *model) thin(floor float64) bool {
	steps := m.curve.Steps()
	return steps > 0 && steps < thinSteps && floor <= probeWithin*m.solo
}

// outside reports whether k lies beyond the evidence, on either side.
func (m *model) outside(k int) bool {
	return m.support.hi > 0 && (k > m.support.hi || k < m.support.lo)
}

// grown continues the bound at the edge of the evidence by the fit. NaN where
// the fit says nothing.
func (m *model) grown(k int, extraP float64) float64 {
	edge := m.support.hi
	if k < m.support.lo {
		edge = m.support.lo
	}
	return m.curve.Low(edge, extraP) * m.curve.TPS(k) / m.curve.TPS(edge)
}

// limitedByEvidence reports whether k sequences would be refused only because
// nothing like it was ever seen.
func (m *model) limitedByEvidence(k int, need float64) bool {
	switch {
	case !m.known || m.guessed:
		return true
	case m.lately.bound > 0 && k > 1:
		return !m.within(k) && m.bound(k, 0) >= need
	}
	return m.outside(k) && m.grown(k, 0) >= need
}

// extraP spreads prompt tokens that wait for their prefill over the steps of
// an answer.
func extraP(prompt int, answer float64) float64 {
	if answer <= 0 {
		answer = usualAnswer
	}
	return float64(prompt) / max(answer, leastAnswer)
}

// finite returns x if it is a positive number, else 0.
func finite(x float64) float64 {
	if x > 0 && !math.IsInf(x, 1) {
		return x
	}
	return 0
}

// floorSet is a small multiset of floors: routes are few, and so are distinct
// floors. The zero value is empty.
//
// Invariant: sorted by floor, every count > 0.
type floorSet []floorCount

type floorCount struct {
	floor float64
	count int
}

// add counts floor once more; remove once less.
func (s *floorSet) add(floor float64) {
	i, found := s.find(floor)
	if !found {
		*s = slices.Insert(*s, i, floorCount{floor: floor})
	}
	(*s)[i].count++
}

func (s *floorSet) remove(floor float64) {
	i, found := s.find(floor)
	if !found {
		panic("router: a floor was given back that was not taken")
	}
	if (*s)[i].count--; (*s)[i].count == 0 {
		*s = slices.Delete(*s, i, i+1)
	}
}

func (s *floorSet) find(floor float64) (int, bool) {
	return slices.BinarySearchFunc(*s, floor, func(c floorCount, floor float64) int {
		switch {
		case c.floor < floor:
			return -1
		case c.floor > floor:
			return 1
		}
		return 0
	})
}

// highest returns the highest floor up to limit, 0 if none.
func (s floorSet) highest(limit float64) float64 {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i].floor <= limit {
			return s[i].floor
		}
	}
	return 0
}

// above counts the floors above low and up to limit.
func (s floorSet) above(low, limit float64) int {
	count := 0
	for i := len(s) - 1; i >= 0 && s[i].floor > low; i-- {
		if s[i].floor <= limit {
			count += s[i].count
		}
	}
	return count
}
