package gateway

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/internal/continuation"
	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/internal/upstream"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/providers"
)

// maxContinued is how often a stream goes on elsewhere. One that so many backends
// have died under is let go: it may be what kills them.
const maxContinued = 2

// onward is the part of a stream that came from backends that died since. The zero
// value is that of a stream that ends with its backend.
type onward struct {
	thread *continuation.Thread // nil = it is not continued
	why    string               // it is not, though its route has it so; "" = its route has not

	from     []string // the backends that died, and were left behind
	passages []telemetry.Passage

	sent, arrived time.Time        // to the first of them, and its first token; zero = none came
	got           profiles.Summary // by that, of the first
	answer        float64          // tokens, by all of them
}

// begin says whether the answer is continued where its backend dies.
func (o *onward) begin(x *order) {
	if !x.route.conf.Continue || !x.request.streams() || x.request.body == nil {
		return
	}
	if x.request.carried != nil {
		o.why = "another proxy carries it, which sends it once"
		return
	}
	q, err := continuation.Read(x.request.end.Dialect, &x.request.parsed)
	if err != nil {
		o.why = err.Error()
		return
	}
	o.thread = continuation.Begin(q)
}

// ask is what usage the stream is asked for, and what of it is taken out again.
func (o *onward) ask(b *backend, r *request) (openai.Ask, providers.Strip) {
	if o.thread == nil {
		return b.Usage(r.path, &r.parsed)
	}
	return b.Exactly(r.path, &r.parsed)
}

// edits are those of the body, beside the ones that the backend needs anyhow.
func (o *onward) edits(b *backend, edits []openai.Splice) []openai.Splice {
	if o.thread == nil {
		return edits
	}
	return o.thread.Edits(b.Continues(), edits)
}

// meter looks on at the stream of t, which inner does too.
func (o *onward) meter(t *attempt, inner providers.Meter) providers.Meter {
	switch {
	case o.thread == nil || inner == nil:
		return inner
	case t.answer.form != formEvents || t.up.translation != nil:
		if len(o.from) == 0 { // what the dead ones gave is still to be counted
			o.thread, o.why = nil, "its backend speaks another dialect"
		}
		return inner
	}
	label := strconv.Itoa(o.thread.Times())
	if t.setup.expose {
		label += "; from=" + strings.Join(o.from, ",")
	}
	return o.thread.Meter(inner, label)
}

// goOn has the stream go on at another backend, where its own died with err: it
// reports whether the next attempt has begun its answer. If not, the stream ends as
// it would have without.
func (x *exchange) goOn(err error) bool {
	var cut *cutError
	if !errors.As(err, &cut) || errors.Is(err, errTotal) || errors.Is(err, errDraining) || !x.route.conf.Continue || !x.request.streams() {
		return false
	}
	o, t := &x.onward, x.attempt
	p := telemetry.Passage{From: t.name(), Fate: telemetry.ContinueLost}
	switch why := o.unfit(t); {
	case why != "":
		p.Fate = telemetry.Uncontinuable
		x.g.log.Info("a stream cannot go on at another backend", "request", requestID(x.request.http.Context()), "failed", t.name(), "why", why)
	case o.thread.Times() == maxContinued:
	case !isLost(cut.err) && !errors.Is(cut.err, errHung) && !x.g.retries.take(time.Now()): // its engine may be busy with it still
	default:
		x.leaveBehind(t, cut)
		if x.findNext(t) {
			p.Fate = telemetry.Continued
			x.attempt.up.timer.restart(x.attempt.up.first.at.Add(x.setup.conf.Timeouts.Silence), &errSilence)
		} else if x.attempt != t {
			x.attempt.end(time.Now(), false)
			x.attempt.abandon()
			x.attempt = t
		}
	}
	o.passages = append(o.passages, p)
	return p.Fate == telemetry.Continued
}

// unfit is why the stream, which t was the last to give, cannot be continued; "" = it can.
func (o *onward) unfit(t *attempt) string {
	switch {
	case o.thread == nil:
		return o.why
	case t.answer.form != formEvents:
		return "its stream is not read"
	}
	return o.thread.Unfit()
}

// leaveBehind ends t, whose backend died, and notes what it gave.
func (x *exchange) leaveBehind(t *attempt, cut *cutError) {
	o, m := &x.onward, &t.measured
	t.end(time.Now(), false)
	tokens, prompt := m.summary.Tokens, 0
	if m.hasUsage {
		prompt = m.usage.PromptTokens
		tokens = max(tokens, float64(m.usage.CompletionTokens))
	}
	if o.sent.IsZero() {
		o.sent = t.up.sent
	}
	if o.arrived.IsZero() && !m.firstToken.IsZero() {
		o.arrived, o.got = m.firstToken, m.summary
	}
	text := o.thread.Text()
	o.thread.GoOn(int(tokens+0.5), prompt)
	o.answer = float64(o.thread.Tokens())
	o.from = append(o.from, t.name())
	p := &x.placement
	p.req.Arrived = time.Now() // it waits anew
	p.req.PromptTokens = x.prompt.tokens + o.thread.Tokens()
	p.req.MaxTokens = max(p.req.MaxTokens-int(tokens), min(p.req.MaxTokens, 1))
	x.request.estimate += (text + bytesPerToken - 1) / bytesPerToken
	x.failover.spared = x.failover.sends
	p.exclude(x.uncontinuing()...)
	x.g.log.Warn("a stream goes on at another backend", "request", requestID(x.request.http.Context()),
		"failed", t.name(), "error", cut.err, "tokens", o.thread.Tokens())
}

// uncontinuing are the backends that continue nobody's stream.
func (x *exchange) uncontinuing() (names []string) {
	for name, b := range x.setup.backends {
		if b.Continues() == upstream.NoContinue || x.translates(b, x.modelAt(b)) {
			names = append(names, name)
		}
	}
	return names
}

// findNext sends the request on, and waits for the first byte of a stream.
func (x *exchange) findNext(t *attempt) bool {
	next := x.rescued(t)
	if next == nil {
		d, err := x.placement.again(x.request.http.Context(), t.name())
		if err != nil || d.Lease == nil {
			return false
		}
		next = x.newAttempt(d)
	}
	x.attempt = next
	if err := x.deliver(); err != nil {
		return false
	}
	next = x.attempt
	return next.kind == answerGood && next.answer.form == formEvents && next.answer.meter != nil
}

// lost reports whether nobody took the stream after its backend died: its client has
// not been told yet.
func (o *onward) lost() bool {
	n := len(o.passages)
	return n > 0 && o.passages[n-1].Fate == telemetry.ContinueLost
}

// ended reports whether what t gave is among what the dead backends gave.
func (o *onward) ended(t *attempt) bool { return slices.Contains(o.from, t.name()) }

// prompt is how many tokens the prompt of the client has, where t counted so many.
func (o *onward) prompt(t *attempt, counted int) int {
	if len(o.from) == 0 || o.ended(t) && len(o.from) == 1 {
		return counted
	}
	return o.thread.Prompt(counted)
}

// output is how many tokens the answer has, where t gave so many.
func (o *onward) output(t *attempt, tokens float64) float64 {
	switch {
	case o.ended(t):
		return max(o.answer, tokens)
	case len(o.from) > 0 && o.thread.Absorbs(): // the token that was asked for was not passed on
		return o.answer
	}
	return o.answer + tokens
}

// first is when the first token came, of those from t, and to which attempt that had
// been sent.
func (o *onward) first(t *attempt) (sent, token time.Time) {
	if o.arrived.IsZero() {
		return t.up.sent, t.measured.firstToken
	}
	return o.sent, o.arrived
}

// summary is that of the whole stream, whose last part is of t.
func (o *onward) summary(t *attempt) profiles.Summary {
	m := &t.measured
	s := m.summary
	if o.arrived.IsZero() || o.ended(t) {
		return s
	}
	whole := o.got
	whole.Tokens, whole.Predicted = o.output(t, s.Tokens), 0
	whole.Measured = whole.Measured || s.Measured
	if !m.firstToken.IsZero() {
		whole.Decode = m.firstToken.Add(s.Decode).Sub(o.arrived)
	}
	if whole.Measured && whole.Decode > 0 {
		whole.TPS = (whole.Tokens - whole.FirstTokens) / whole.Decode.Seconds()
	}
	return whole
}
