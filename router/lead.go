package router

import (
	"math"
	"time"
)

// A floor is kept over a whole stream, with its grace. So each running stream
// has a lead: how long it may stand still and keep its floor all the same. A
// prompt that is prefilled beside it stops it for about as long as the prefill
// takes, whoever is charged for it on average: it is admitted where every lead
// can pay for it.

const (
	// leadSafety is by how much a prefill is taken to be longer than predicted.
	leadSafety = 1.2

	// unheard is how many times a prompt counts where other replicas may be placing
	// one at the same moment.
	unheard = 1.3

	// lostLead is by how much a stream has missed its floor before nobody waits
	// for it any more.
	lostLead = 500 * time.Millisecond

	// The cost of a prompt token is what first tokens took of late, through the
	// origin, held to startCost, or what the fit says, as by one prompt of startPrompt tokens.
	// startCost is that of large models on several GPUs, where others have a tenth of
	// it: what is taken for too dear waits for a moment, what is taken for too cheap stops
	// all who stream.
	costMemory  = time.Minute
	startCost   = 400e-6
	startPrompt = 300.0
	startWeight = startPrompt * startPrompt

	// aloneEnough is how much prompts that were alone have to say for batches to be
	// left out: as much as one of 600 tokens.
	aloneEnough = 600 * 600

	// manyTokens at once were decoded before they came: the text of one may be as long
	// as that of four.
	manyTokens = 5

	// The first tokens of one batch move the cost by no more than this factor of
	// what was expected of them, and the time that one without a prompt may take.
	mostCost = 4.0
	bareTTFT = 0.25 // seconds
)

// prefills is what first tokens say of the seconds that a prompt token takes:
// sums that fade with costMemory. A line with a base of its own would be better
// where prompts differ, and is none under load: base and slope go together there,
// and the slope was seen at a hundredth of the truth. The zero value has seen none.
type prefills struct {
	sums  costSums  // as of at, without batch
	at    time.Time // when batch began
	front time.Time // when the last first token came
	heard time.Time // when the engine last hung: who was placed before waited for that
	batch batch
	done  float64 // prompt tokens that were prefilled since the start
}

// batch is the prompts that an engine prefilled at once, as first tokens tell that
// come at once: what the first of them took, all took together. A fresh gateway
// sees no others while everybody comes at the same time.
type batch struct {
	tokens, seconds float64
	cost            float64 // of a token, as it was known before
}

// prefills is what b adds to the sums. One batch moves the cost by no more than
// mostCost, and by the time that one without a prompt may take.
func (b batch) prefills() costSums {
	took := min(b.seconds, mostCost*b.cost*b.tokens+bareTTFT)
	return costSums{xy: b.tokens * took, xx: b.tokens * b.tokens}
}

// costSums are those sums: of seconds and of prompt tokens, each times the prompt
// tokens. The zero value has seen none.
type costSums struct {
	xy float64 // seconds·tokens
	xx float64 // tokens²
}

func (p costSums) plus(o costSums) costSums { return costSums{xy: p.xy + o.xy, xx: p.xx + o.xx} }

// cost is the seconds that a prompt token takes, begun with start.
func (p costSums) cost(start float64) float64 {
	return (p.xy + start*startWeight) / (p.xx + startWeight)
}

// all are the sums with the last batch, as of when that began.
func (p *prefills) all() costSums { return p.sums.plus(p.batch.prefills()) }

// kept are the sums as of now. They fade to startWeight: after a while without prompts
// to speak of, what they cost still counts as much as where one begins.
func (p *prefills) kept(now time.Time) costSums {
	if p.at.IsZero() {
		return costSums{}
	}
	keep, all := math.Exp(-now.Sub(p.at).Seconds()/costMemory.Seconds()), p.all()
	if all.xx > 0 {
		keep = max(keep, min(startWeight/all.xx, 1))
	}
	return costSums{xy: all.xy * keep, xx: all.xx * keep}
}

// see takes the first token of l, which is still counted as waiting. Who was alone
// tells what a prompt token takes. While nobody was lately, as when all come at
// once, a batch tells: it was prefilled since the first token before it, for an
// engine prefills in order. Where many tokens came at once all but one of them
// were decoded, and how long that took nobody knows well: they tell nothing. What was learned of
// first tokens tells apart what grows with the prompt.
func (p *prefills) see(now time.Time, l *Lease, tokens float64) {
	g, x := l.group, float64(l.prompt)
	before := p.front
	p.front = now
	if x <= 0 || tokens >= manyTokens || l.placed.Before(p.heard) || l.model.ttft.Slots > 0 && l.expected.ahead.Sequences >= l.model.ttft.Slots {
		return // it waited for a slot
	}
	soon := now.Sub(before).Seconds() < g.price.first*x/2
	if p.doubt(now, l, later(l.placed, before), soon && l.placed.Before(before)) {
		return
	}
	beside := max(l.expected.ahead.PromptTokens, g.promptWaiting()-l.prompt) // before it, and behind
	alone, began := float64(beside) <= x/4, later(l.placed, before)
	if p.batch.tokens <= 0 || !soon {
		p.sums, p.at, p.batch = p.kept(now), now, batch{cost: g.price.first}
		if alone {
			began = l.placed
		}
	}
	if p.batch.tokens <= 0 && !alone && p.sums.xx >= aloneEnough {
		return
	}
	y := now.Sub(began).Seconds()
	if m := l.model; m.known && p.batch.tokens <= 0 {
		y -= min(1/max(finite(m.expects(max(g.n(), 1))), 1), y) // the step that was under way
	}
	p.batch.tokens += x
	p.batch.seconds += y
	g.reprice()
}

// price is what a prompt costs in a group.
type price struct {
	prefills prefills
	first    float64  // seconds of a prompt token, by first tokens
	token    float64  // and what it costs the others
	fit      float64  // what it costs them by the curves alone
	told     costSums // of the other replicas, as they told last
	toldAt   time.Time
	usual    usualPrompts
	long     time.Time // when the prefill of one that was far longer than usual ended, or goes on

	// blind: prompts came that another replica may have sent, too. Until their usage comes
	// the fit takes them for computed, and says that prompts are free. It stays, as such
	// prompts go on to come: by what the fit says later more miss their floor, too.
	blind bool
}

// reprice works out what a prompt token takes in g, in seconds, when a first
// token or a curve says something new. First tokens begin with what curves say,
// within reason: they may have seen no prompts to speak of, or none that were computed. What a prompt
// costs those who stream meanwhile is the more of first tokens and the fit.
func (g *group) reprice() {
	fit, start := 0.0, startCost
	for _, m := range g.models {
		fit = max(fit, m.cost)
	}
	said := fit
	for _, m := range g.models {
		if m.timed {
			said = max(said, m.ttft.PerToken*m.ttft.Uncached)
		}
	}
	if said > 0 && !g.price.blind {
		start = min(max(said, startCost/8), startCost)
	}
	g.changed()
	g.price.first = g.price.prefills.all().plus(g.price.told).cost(start)
	g.price.token, g.price.fit = max(g.price.first, fit), fit
	for _, m := range g.models {
		m.prefill = max(m.ttft.PerToken*m.ttft.Uncached, g.price.first)
	}
}

// toldPriceLife is how long what others told of a prompt's cost holds when nobody tells any
// more: longer than it takes to start a gateway anew, or Redis. Those that live tell on.
const toldPriceLife = 10 * time.Minute

// shareRemotePrice adds what the other replicas saw of a prompt's cost: who sends only what
// is cached learns nothing of it, or that prompts are free. What was told last stays for
// toldPriceLife: the engine may be another one by then.
func (g *group) shareRemotePrice(now time.Time) {
	p := g.remote.Prefills
	switch {
	case p.Weight > 0:
		g.price.told, g.price.toldAt = costSums{xy: p.Time, xx: p.Weight}, now
	case g.price.told != costSums{} && now.Sub(g.price.toldAt) > toldPriceLife:
		g.price.told = costSums{}
	default:
		return
	}
	g.reprice()
}

// step is the seconds that a token takes beside as many as run; 0 = unknown.
func (m *model) step() float64 {
	if tps := finite(m.expects(max(m.group.n(), 1))); tps > 0 {
		return 1 / tps
	}
	return 0
}

// early is how much earlier than floor demands the next token comes: it is due 1/floor
// after the last one, and takes two steps at most, the one that is under way and its own.
// At usual floors that is nothing; far below the speed of the engine it is most of a lead.
func (m *model) early(floor float64) time.Duration {
	if m.lately.step > 0 {
		return seconds(max(1/floor-2*m.lately.step, 0))
	}
	return 0
}

// lead is how long l may get no token and keep its floor, as of now. A stream of
// which nobody knows how many tokens its chunks are has at least half its grace, as
// far as that was not spent on prompts beside it.
func (l *Lease) lead(now time.Time, p progress) time.Duration {
	lead := seconds(p.tokens/(l.floor*float64(l.weight))) + l.grace + l.model.early(l.floor) - (now.Sub(l.placed) - l.first)
	if p.rough {
		spent := l.group.price.token * (l.group.price.prefills.done - l.prefilled)
		lead = max(lead, l.grace/2-seconds(spent))
	}
	return lead
}

// leads notes the lead of l if it is the least. A floor that its target cannot
// give does not count, nor a stream that is stuck or lost. Until the level is known
// a stream below its floor, grace or not, can pay for nobody.
func (g *group) leads(now time.Time, l *Lease, p progress) {
	if l.floor <= 0 || l.floor > l.model.solo || now.Sub(l.placed)-p.last > stuckAfter {
		return
	}
	lead := l.lead(now, p)
	if !l.model.lately.all.known() && l.averagesBelow(l.floor, now, p) {
		lead = 0 // nothing says yet how fast it is going to be
	}
	if lead <= -lostLead {
		return
	}
	g.floored++
	if lead < g.lead {
		g.lead, g.least = lead, l
	}
}

// leastLead is for how long all streams with a floor that decode in g may stand
// still, of all replicas that tell.
func (g *group) leastLead() time.Duration {
	if far := g.remote.Leads; far.Streams > 0 {
		return min(g.lead, far.Least)
	}
	return g.lead
}

// usualAnswer is the length of an answer, in tokens of one sequence.
func (m *model) usualAnswer() float64 {
	if m.answer > 0 {
		return m.answer
	}
	return usualAnswer
}

// pays reports whether those who run beside target, and those who wait there, can
// pay for a's prompt: of this replica, and of the others as far as they tell.
func (a *ask) pays(target *model, c *present) bool {
	if a.prompt <= 0 {
		return true
	}
	g := target.group
	cost := leadSafety * g.price.token
	own := float64(a.toPrefill(target))
	waiting, prompt := float64(c.prompt), own
	prompt *= g.router.peers.unheard()
	front := 0.0
	switch l := g.own.unserved.front; {
	case l != nil:
		front = float64(l.prompt)
	case c.alike > 0:
		front = own
	}
	if lead := g.leastLead(); lead < maxLead && cost*(waiting-g.prefilled(a.now)+prompt) > lead.Seconds() {
		return false
	}
	for _, m := range g.models {
		floor := m.waitingFloor()
		if m == target && c.alike > 0 && a.floor <= m.solo {
			floor = max(floor, a.floor)
		}
		if floor > 0 && cost*(waiting-front+prompt) > (g.leastGrace+m.early(floor)).Seconds() {
			return false
		}
	}
	return true
}

// unheard is how many times a prompt counts, see there.
func (p *peers) unheard() float64 {
	if p.load.Replicas > 1 {
		return unheard
	}
	return 1
}

// prefilled is how many tokens of the own prompt that waited longest must be done by now.
func (g *group) prefilled(now time.Time) float64 {
	l := g.own.unserved.front
	if l == nil {
		return 0
	}
	return min(g.prefilling(now, l)/g.price.token, float64(l.prompt))
}

// prefilling is for how many seconds l, which waited longest, has been prefilled.
func (g *group) prefilling(now time.Time, l *Lease) float64 {
	return max(now.Sub(later(l.placed, g.price.prefills.front)).Seconds(), 0)
}

const (
	// overdueTimes and overdueAfter are how much longer than predicted a prefill may take
	// before nobody waits for what it brings: the engine may hang.
	overdueTimes = 2.0
	overdueAfter = time.Second
)

// prefills reports whether prompts are prefilled in g, as far as anybody knows: one
// waits, and the own one that waited longest is not overdue.
func (g *group) prefills(now time.Time) bool {
	if l := g.own.unserved.front; l != nil {
		return g.prefilling(now, l) <= overdueTimes*g.price.token*float64(l.prompt)+overdueAfter.Seconds()
	}
	return g.promptWaiting() > 0
}

// prefillLeft is how long it takes until the prompts that wait are prefilled.
func (g *group) prefillLeft(now time.Time) time.Duration {
	return seconds(max(float64(g.promptWaiting())-g.prefilled(now), 0) * g.price.token)
}

// waitingFloor is the highest floor of those who wait for their first token here,
// 0 if none. Of the others' it is that of all that they run.
func (m *model) waitingFloor() float64 {
	floor := m.floors.waiting.highest(m.solo)
	if m.group.remote.Waiting > 0 && m.floors.remote <= m.solo {
		floor = max(floor, m.floors.remote)
	}
	return floor
}
