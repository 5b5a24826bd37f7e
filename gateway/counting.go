package gateway

import (
	"math"

	"github.com/pacer-dev/pacer/internal/tokens"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/providers"
)

// bytesPerToken is what a token of an answer is taken for while nothing is
// known of its target's tokenizer.
const bytesPerToken = 4

// promptEstimate is how many tokens the prompt of a request has, as long as no
// backend tells.
type promptEstimate struct {
	tokens int    // by the size of the body, and what the route's prompts have shown
	keep   bool   // the beginnings of prompt and answer are kept for a tokenizer
	sample []byte // that of the prompt
	within int    // bytes of the body that the sample was found in
}

// keepText has the meter keep the beginning of the answer, and letGo that of the
// prompt, in case that no usage comes and nothing is known of how many tokens a
// chunk holds. Their room is of the budget for bodies.
func (x *exchange) keepText(t *attempt) {
	keeper, ok := t.answer.meter.(providers.TextKeeper)
	if !ok || !x.request.end.Decodes || t.answer.form == formEvents && x.g.book.Calibrated(t.target) || x.memory.take(2*tokens.MaxText) != nil {
		return
	}
	x.prompt.keep = true
	keeper.KeepText(tokens.MaxText)
}

// guess gives an answer whose tokens neither its backend nor its chunks tell as
// many as its bytes say, and reports whether a tokenizer could tell better: its
// target's own ratio of bytes to tokens is not known.
func (x *exchange) guess() (uncounted bool) {
	if x.attempt == nil {
		return false
	}
	m := &x.attempt.measured
	isCounted := m.stream != nil && m.summary.Source != profiles.SourceEstimate
	if m.hasUsage || isCounted || m.text == 0 || !x.request.end.Decodes {
		return false
	}
	perToken := x.plan.texts[x.attempt.target].bytesPerToken()
	if uncounted = math.IsNaN(perToken); uncounted {
		perToken = bytesPerToken
	}
	m.summary.Source = profiles.SourceEstimate
	m.summary.Tokens = max(1, math.Round(float64(m.text)/perToken))
	return uncounted
}

// countLater has the answer, and its prompt, counted by a tokenizer, and
// account called then: the client, which has its answer, does not wait for it.
// It returns false when that cannot be done.
func (x *exchange) countLater(account func()) bool {
	var answer []byte
	t := x.attempt
	if keeper, ok := t.answer.meter.(providers.TextKeeper); ok {
		answer = keeper.Text()
	}
	if len(answer) == 0 {
		return false
	}
	t.answer.meter = nil // it may keep much, which must not wait in line
	return x.g.uncounted.do(func() {
		m := &t.measured
		m.summary.Tokens = math.Round(tokens.Count(string(answer)) * float64(m.text) / float64(len(answer)))
		if len(x.prompt.sample) > 0 {
			x.countPrompt()
		}
		account()
	})
}

// countPrompt counts a prompt by its beginning, and by how many bytes of the
// body that was found in. The estimate from the size of the body knows what of the
// rest is no text.
func (x *exchange) countPrompt() {
	p, estimate := &x.prompt, x.request.estimate
	n := tokens.Count(string(p.sample)) * max(1, float64(estimate)*bytesPerToken/float64(p.within))
	p.tokens = int(min(max(1, n), maxPromptTokens))
	x.route.prompt.learn(estimate, p.tokens)
}
