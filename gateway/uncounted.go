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

// keepText has the meter keep the beginning of the answer, and letGo that of the
// prompt, in case that no usage comes and nothing is known of how many tokens a
// chunk holds. Their room is of the budget for bodies.
func (x *exchange) keepText() {
	keeper, ok := x.try.look.(providers.TextKeeper)
	if !ok || !x.end.Decodes || x.try.sse && x.g.book.Calibrated(x.target) || !x.hold(2*tokens.MaxText) {
		return
	}
	x.keepsText = true
	keeper.KeepText(tokens.MaxText)
}

// guess gives an answer whose tokens neither its backend nor its chunks tell as
// many as its bytes say, and reports whether a tokenizer could tell better: its
// target's own ratio of bytes to tokens is not known.
func (x *exchange) guess() (uncounted bool) {
	isCounted := x.meter != nil && x.summary.Source != profiles.SourceEstimate
	if x.hasUsage || isCounted || x.text == 0 || !x.end.Decodes {
		return false
	}
	perToken := x.plan.texts[x.target].bytesPerToken()
	if uncounted = math.IsNaN(perToken); uncounted {
		perToken = bytesPerToken
	}
	x.summary.Source = profiles.SourceEstimate
	x.summary.Tokens = max(1, math.Round(float64(x.text)/perToken))
	return uncounted
}

// countLater has the answer, and its prompt, counted by a tokenizer, and
// account called then: the client, which has its answer, does not wait for it.
// It returns false when that cannot be done.
func (x *exchange) countLater(account func()) bool {
	var answer []byte
	if keeper, ok := x.try.look.(providers.TextKeeper); ok {
		answer = keeper.Text()
	}
	if len(answer) == 0 {
		return false
	}
	x.try.look = nil // it may keep much, which must not wait in line
	return x.g.uncounted.do(func() {
		x.summary.Tokens = math.Round(tokens.Count(string(answer)) * float64(x.text) / float64(len(answer)))
		if len(x.prompt) > 0 {
			x.countPrompt()
		}
		account()
	})
}

// countPrompt counts a prompt by its beginning, and by how many bytes of the
// body that was found in. The estimate from the size of the body knows what of the
// rest is no text.
func (x *exchange) countPrompt() {
	n := tokens.Count(string(x.prompt)) * max(1, float64(x.bodyTokens)*bytesPerToken/float64(x.promptWithin))
	x.promptTokens = int(min(max(1, n), maxPromptTokens))
	x.route.prompt.learn(x.bodyTokens, x.promptTokens)
}
