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
	chains sync.Pool // of *prefix.Chain
}

// warmth is what of a request's prompt may be in the caches of targets.
type warmth struct {
	chain   *prefix.Chain // nil = nothing of it can be, or nobody asks
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
	bySession := o.route.conf.Affinity == "session"
	salt := [3]string{"auto", r.parsed.Model} // without affinity, too; and replicas of before that tell the same
	if bySession {
		salt[0] = "session"
	}
	if o.route.conf.Isolation == "key" {
		salt[2] = o.tenant.name
	}
	c, _ := o.g.caching.chains.Get().(*prefix.Chain)
	if c == nil {
		c = new(prefix.Chain)
	}
	c.Begin(salt[:]...)
	if bySession {
		c.Add([]byte(r.session()))
	} else {
		r.parsed.Parts(c.Add)
	}
	if c.Empty() {
		o.g.caching.chains.Put(c)
		return
	}
	o.warmth.chain = c
	req.Warm, req.Caches = o.Warm(time.Now(), nil), o
}

// Warm is what the caches have of the prompt as of now. While the request stands in line
// the router asks, and nobody else does.
func (o *order) Warm(now time.Time, into []router.Warmth) []router.Warmth {
	o.warmth.targets = o.g.caching.index.Look(now, o.warmth.chain, o.prompt.tokens, o.route.targets, into)
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
	if c := t.warmth.chain; c != nil {
		t.measured.visit = t.g.caching.index.Send(t.up.sent, t.target, c, t.prompt.tokens)
	}
}

// coolDown lets go of the chain. Calls after the first do nothing.
func (o *order) coolDown() {
	if o.warmth.chain != nil {
		o.g.caching.chains.Put(o.warmth.chain)
		o.warmth.chain = nil
	}
}

// settleVisit teaches what the target's cache had.
func (t *attempt) settleVisit() {
	m := &t.measured
	o := prefix.Outcome{PromptTokens: m.usage.PromptTokens, CachedTokens: m.usage.CachedTokens, Took: time.Since(t.up.sent)}
	if m.usage.ReasoningTokens == 0 { // what was thought does not come back
		o.AnswerTokens = m.usage.CompletionTokens
	}
	if first := m.firstToken; !first.IsZero() && !t.failover {
		o.TTFT, o.Ahead = first.Sub(t.up.sent), t.lease().Ahead().PromptTokens
	}
	m.visit.Settle(o)
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
