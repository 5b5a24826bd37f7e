package gateway

import (
	"net/http"
	"strconv"
	"time"

	"github.com/pacer-dev/pacer/gateway/limit"
	"github.com/pacer-dev/pacer/internal/openai"
)

// enter takes the request's place under the limits of its key, before a byte of
// its body is read: a key that may not send costs nothing but its head.
func (x *exchange) enter() (err error) {
	if err := x.afford(); err != nil {
		return err
	}
	if x.permit, err = x.tenant.limits.Enter(time.Now()); err != nil {
		x.tenant.limitHeaders(x.down.w.Header())
	}
	return err
}

// beginBody counts the request among those whose bodies its key is sending:
// where there are several keys, one may take half of the streams, and half of
// the connections, for bodies that come slowly.
func (o *order) beginBody() error {
	most := o.setup.conf.Limits.Streams
	if o.g.clients > 0 {
		most = min(most, o.g.clients)
	}
	if n := o.tenant.sending.Add(1); n > max(int64(most)/2, 1) && o.setup.several() {
		o.tenant.sending.Add(-1)
		return errManyBodies
	}
	return nil
}

// charge charges the request to its key, with the estimated prompt and the
// whole answer that it allows, and each sequence as one that runs.
func (x *exchange) charge() error {
	r := &x.request
	x.estimatePrompt()
	x.prompt.tokens = x.route.prompt.apply(x.tenant.name, r.estimate)
	answer := min(r.parsed.MaxTokens, maxPromptTokens) * max(r.parsed.Sequences, 1) // Sequences is bounded: no overflow
	sequences := 1
	if r.end.Decodes {
		sequences = r.parsed.Sequences
	}
	err := x.permit.Charge(time.Now(), x.prompt.tokens+answer, sequences)
	x.tenant.limitHeaders(x.down.w.Header())
	return err
}

// estimatePrompt estimates the tokens of the prompt, once. What is heard, fetched or counted
// is no prompt.
func (o *order) estimatePrompt() {
	r := &o.request
	if r.estimate == 0 && !r.parsed.Form() && !r.end.Stored && !r.end.Counts && !r.end.Socket {
		r.estimate = openai.EstimatePromptTokens(r.body.bytes())
	}
}

// limitHeaders says what the key has left, in the headers and the form that
// OpenAI uses.
func (t *tenant) limitHeaders(h http.Header) {
	if t.limits == nil {
		return
	}
	s := t.limits.State(time.Now())
	set := func(what string, l limit.Left) {
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
