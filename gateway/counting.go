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

// textScale is what is known of the tokens of t's target.
func (t *attempt) textScale() *textScale { return t.setup.texts[t.target] }

// keepText has the meter keep the beginning of the answer, and letGo that of the
// prompt, in case that no usage comes and nothing is known of how many tokens a
// chunk holds. Their room is of the budget for bodies.
func (t *attempt) keepText() {
	keeper, ok := t.answer.meter.(providers.TextKeeper)
	if !ok || !t.request.end.Decodes || t.answer.form == formEvents && t.g.book.Calibrated(t.target) && !t.textScale().sample() || t.memory.take(2*tokens.MaxText) != nil {
		return
	}
	t.prompt.keep = true
	keeper.KeepText(tokens.MaxText)
}

// guess gives an answer whose tokens neither its backend nor its chunks tell as
// many as its bytes say, at perToken bytes each. So it does where an answer broke off
// and its text has far more than was counted until then, unless that came with each chunk.
// It reports whether a tokenizer could tell better, since perToken is NaN: what its
// target's tokens hold is not known.
func (m *measurement) guess(perToken float64) (uncounted bool) {
	isWhole := m.hasUsage && !m.ended.IsZero()
	if isWhole || m.byText || m.text == 0 || m.summary.Source == profiles.SourceContinuous {
		return false
	}
	if uncounted = math.IsNaN(perToken); uncounted {
		perToken = bytesPerToken
	}
	byText := max(1, math.Round(float64(m.text)/perToken))
	isCounted := m.hasUsage || m.stream != nil && m.summary.Source != profiles.SourceEstimate
	if counted, _ := m.billed(); isCounted && byText <= profiles.HoldsMore*counted {
		return false
	}
	m.summary.Source = profiles.SourceEstimate
	m.summary.Tokens = byText
	return uncounted
}

// countLater has the answer, and its prompt, counted by a tokenizer, and
// account called then: the client, which has its answer, does not wait for it.
// It returns false when that cannot be done.
func (t *attempt) countLater(account func()) bool {
	var answer []byte
	if keeper, ok := t.answer.meter.(providers.TextKeeper); ok {
		answer = keeper.Text()
	}
	if len(answer) == 0 {
		return false
	}
	t.answer.meter = nil // it may keep much, which must not wait in line
	return t.g.uncounted.do(func() {
		m, count := &t.measured, tokens.Count(string(answer))
		part := float64(len(answer)) / float64(m.text)
		t.textScale().learnStandIn(len(answer), count, float64(m.chunks)*part)
		if !m.byText {
			m.summary.Tokens = math.Round(count / part)
		}
		if len(t.prompt.sample) > 0 {
			t.countPrompt()
		}
		account()
	})
}

// countPrompt counts a prompt by its beginning, and by how many bytes of the
// body that was found in. The estimate from the size of the body knows what of the
// rest is no text.
func (o *order) countPrompt() {
	p, estimate := &o.prompt, o.request.estimate
	n := tokens.Count(string(p.sample)) * max(1, float64(estimate)*bytesPerToken/float64(p.within))
	p.tokens = int(min(max(1, n), maxPromptTokens))
	o.route.prompt.learn(o.tenant.name, estimate, p.tokens)
}
