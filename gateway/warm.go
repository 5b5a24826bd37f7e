package gateway

import (
	"sync"
	"time"

	"github.com/pacer-dev/pacer/prefix"
	"github.com/pacer-dev/pacer/router"
)

// caching is what the gateway expects of the caches of targets, for all requests.
type caching struct {
	index  *prefix.Index
	chains sync.Pool // of *chains
}

// chains are those of one request.
type chains struct {
	prompt    prefix.Chain
	session   prefix.Chain // empty without a name
	bySession bool         // it goes only to caches where its session went
}

// warmth is what of a request's prompt may be in the caches of targets.
type warmth struct {
	chains  *chains // nil = nothing of it can be, or nobody asks
	targets []router.Warmth
}

// followCaches tells req which targets of the route, and of those that it spills to, are
// expected to have the prompt in their caches. Without affinity that is told, too: what a
// prompt takes an engine depends on it, wherever it goes.
func (o *order) followCaches(req *router.Request) {
	r := &o.request
	if !r.end.Decodes || r.parsed.Sequences > 1 || r.body == nil {
		return
	}
	salt := [3]string{"auto", r.parsed.Model} // whatever the affinity; and replicas of before that tell the same
	if o.route.conf.Isolation == "key" {
		salt[2] = o.tenant.name
	}
	c, _ := o.g.caching.chains.Get().(*chains)
	if c == nil {
		c = new(chains)
	}
	c.prompt.Begin(salt[:]...)
	r.parsed.Parts(c.prompt.Add)
	if c.prompt.Empty() {
		o.g.caching.chains.Put(c)
		return
	}
	if c.bySession = o.route.conf.Affinity == "session"; c.bySession {
		salt[0] = "session"
		c.session.Begin(salt[:]...)
		c.session.Add([]byte(r.session()))
	}
	o.warmth.chains = c
	req.Warm, req.Caches = o.Warm(time.Now(), nil), o
}

// Warm is what the caches have of the prompt as of now. By sessions it goes for that
// only where its own went before. While the request stands in line
// the router asks, and nobody else does.
func (o *order) Warm(now time.Time, into []router.Warmth) []router.Warmth {
	c := o.warmth.chains
	o.warmth.targets = o.g.caching.index.Look(now, &c.prompt, o.prompt.tokens, o.route.targets, into)
	if c.bySession {
		for i := range o.warmth.targets {
			w := &o.warmth.targets[i]
			w.Aside = !o.g.caching.index.Knows(w.Target, &c.session)
		}
	}
	return o.warmth.targets
}

// cached is how many tokens of the prompt, as estimated, the target is expected to
// have.
func (o *order) cached(t router.Target) int {
	for _, w := range o.warmth.targets {
		if w.Target == t && o.prompt.tokens > 0 {
			return int(float64(w.Likely) / float64(o.prompt.tokens) * float64(o.request.estimate))
		}
	}
	return 0
}

// visit notes that the request goes to the attempt's target.
func (t *attempt) visit() {
	c := t.warmth.chains
	if c == nil {
		return
	}
	t.measured.visit = t.g.caching.index.Send(t.up.sent, t.target, &c.prompt, t.prompt.tokens)
	if c.bySession {
		t.g.caching.index.Visited(t.up.sent, t.target, &c.session)
	}
}

// coolDown lets go of the chains. Calls after the first do nothing.
func (o *order) coolDown() {
	if o.warmth.chains != nil {
		o.g.caching.chains.Put(o.warmth.chains)
		o.warmth.chains = nil
	}
}

// settleVisit teaches what the target's cache had.
func (t *attempt) settleVisit() { t.measured.visit.Settle(t.outcome()) }

// outcome is what the answer shows of the target's cache.
func (t *attempt) outcome() prefix.Outcome {
	m := &t.measured
	o := prefix.Outcome{PromptTokens: m.usage.PromptTokens, CachedTokens: m.usage.CachedTokens, Took: time.Since(t.up.sent)}
	if m.usage.ReasoningTokens == 0 { // what was thought does not come back
		o.AnswerTokens = m.usage.CompletionTokens
	}
	if first := m.firstToken; !first.IsZero() && !t.unusual() {
		o.TTFT, o.Ahead = first.Sub(t.up.sent), t.lease().Ahead().PromptTokens
	}
	return o
}

// Returned says that a backend is back after it was out of service: its engine's cache
// may be empty.
func (g *Gateway) Returned(backend string) { g.caching.index.Returned(time.Now(), backend) }

// Warm is what is known of a target's cache.
func (g *Gateway) Warm(t router.Target) prefix.Counts { return g.caching.index.Counts(t) }

// Tell is what other replicas are to hear of the prompts that were sent of late.
func (g *Gateway) Tell(now time.Time) map[router.Target][]byte { return g.caching.index.Tell(now) }

// Hear takes what another replica told of the prompts that it sent to t.
func (g *Gateway) Hear(now time.Time, t router.Target, text []byte) {
	g.caching.index.Hear(now, t, text)
}
