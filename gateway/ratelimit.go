package gateway

import (
	"net/http"
	"strconv"
	"time"

	"github.com/pacer-dev/pacer/gateway/limit"
	"github.com/pacer-dev/pacer/internal/openai"
)

// takeLimits charges the request to its key, with the estimated prompt and the
// whole answer that it allows.
func (x *exchange) takeLimits() error {
	if !x.req.Form() && !x.end.stored && !x.end.counts { // what is heard, fetched or counted is no prompt
		x.bodyTokens = openai.EstimatePromptTokens(x.body)
	}
	x.promptTokens = x.route.prompt.apply(x.bodyTokens)
	answer := min(x.req.MaxTokens, maxPromptTokens) * max(x.req.Sequences, 1) // Sequences is bounded: no overflow
	permit, err := x.tenant.limits.Take(time.Now(), x.promptTokens+answer)
	x.permit = permit
	x.tenant.limitHeaders(x.w.Header())
	return err
}

// limitHeaders says what the key has left, in the headers and the form that
// OpenAI uses.
func (t *tenant) limitHeaders(h http.Header) {
	s := t.limits.State(time.Now())
	set := func(what string, l limit.Level) {
		if l.Limit == 0 {
			return
		}
		h.Set("X-Ratelimit-Limit-"+what, strconv.Itoa(l.Limit))
		h.Set("X-Ratelimit-Remaining-"+what, strconv.Itoa(l.Remaining))
		h.Set("X-Ratelimit-Reset-"+what, l.Reset.Round(time.Millisecond).String())
	}
	set("Requests", s.Requests)
	set("Tokens", s.Tokens)
}
