package gateway

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/pacer-dev/pacer/gateway/limit"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/usage"
)

// The outcomes of a request, as in pacer_requests_total.
const (
	outcomeOK       = "ok"
	outcomeGone     = "client_gone"
	outcomeUpstream = "upstream_error"
	outcomeCut      = "cut"
	outcomeRejected = "rejected"
	outcomeShed     = "shed"
)

// settle runs once for every exchange, whatever happened: it gives back what
// was taken, and says what became of the request.
func (x *exchange) settle(err error) {
	s := &settlement{x: x, t: x.attempt, at: time.Now(), err: err}
	if s.t != nil {
		s.t.measured.gone = isGone(err) && s.t.works()
		s.t.end(s.at, err == nil)
		s.t.abandon()
	}
	x.hedge.end()
	x.letGo()
	x.failover.faults.forget()
	x.placement.leave()
	x.memory.giveBack()
	x.coolDown()
	uncounted := s.t != nil && x.request.end.Decodes && (s.t.measured.guess(s.t.textScale().bytesPerToken()) || s.t.measured.byText)
	x.permit.Leave()
	if s.t != nil {
		s.learn()
	}
	if !uncounted || !s.t.countLater(s.account) {
		s.account()
	}
}

// settlement is what is said of an exchange that is over, once its tokens are known.
type settlement struct {
	x   *exchange
	t   *attempt // that it ended at; nil = it got no place
	at  time.Time
	err error // why it did not end well; nil = it did

	bytesPerToken float64 // of a whole answer, once learned from; NaN = unknown
}

// account says what became of the request, whose tokens are known. What was
// estimated of them stays taken until then: given back before, it would let the
// key pass its limit.
func (s *settlement) account() {
	tokens := 0.0
	if s.t != nil {
		tokens = float64(s.t.usedPrompt()) + s.t.outputTokens()
	}
	now := time.Now()
	s.x.permit.Settle(now, tokens)
	e := s.telemetry()
	s.x.g.metrics.Observe(e)
	if s.t != nil {
		s.t.spend(s.at, usage.Dollars(e.CostUSD))
	}
	s.x.letGoOfMoney()
	s.writeLog(now, e)
	s.endSpan(&e)
}

// learn takes what the answer shows of its route's prompts and its target's
// tokenizer.
func (s *settlement) learn() {
	t, m := s.t, &s.t.measured
	if m.hasUsage {
		t.route.prompt.learn(t.tenant.name, t.request.estimate, m.usage.PromptTokens)
	}
	s.bytesPerToken = math.NaN()
	if s.err == nil {
		s.bytesPerToken = m.learnText(t.textScale())
		if m.text > 0 && m.stream != nil && !m.reportedError && !m.garbage {
			t.textScale().told(m.hasUsage)
		}
	}
}

// outputTokens are those that are paid for.
func (t *attempt) outputTokens() float64 {
	tokens, _ := t.measured.billed()
	return t.up.onward.output(t, tokens)
}

// usedPrompt is the prompt as the backend counted it, else as estimated; 0
// when nothing went up.
func (t *attempt) usedPrompt() int {
	switch {
	case t.sentAt().IsZero():
		return 0
	case t.measured.hasUsage:
		return t.up.onward.prompt(t, t.measured.usage.PromptTokens)
	}
	return t.prompt.tokens
}

// works reports whether t's backend is at the request, as far as anybody knows.
func (t *attempt) works() bool {
	return t.phase >= phaseSent && t.phase < phaseFinished && t.kind <= answerGood
}

// paidPrompt is usedPrompt as far as it is paid for: an answer came of it, or its client
// did not wait for one. What a backend failed at is free.
func (t *attempt) paidPrompt() int {
	m := &t.measured
	isAnswered := m.hasUsage || m.summary.Tokens > 0 || t.outputTokens() > 0
	isRead := m.gone || t.kind == answerGood && !t.request.end.Decodes && !m.ended.IsZero()
	if isAnswered || isRead && t.request.estimate > 0 {
		return t.usedPrompt()
	}
	return 0
}

// sentAt is when the request went up to t's backend, or, if that was not sent it, to
// the one before; zero = to none.
func (t *attempt) sentAt() time.Time {
	switch {
	case !t.up.onward.sent.IsZero():
		return t.up.onward.sent
	case !t.up.sent.IsZero():
		return t.up.sent
	}
	return t.sentBefore
}

// telemetry is the request as the metrics see it.
func (s *settlement) telemetry() telemetry.Exchange {
	x := s.x
	e := telemetry.Exchange{
		Route:    "unknown",
		Class:    x.objective.class.String(),
		Waited:   x.placement.req.Stood,
		Back:     x.placement.back,
		Key:      x.tenant.name,
		Overhead: x.overhead,
		Hedge:    x.hedge.result,
		Passages: x.onward.passages,
		Source:   profiles.Source(0).String(),
		TraceID:  x.trace().exemplar(),
	}
	if x.route != nil {
		e.Route = x.route.name
	}
	if s.t != nil {
		s.describe(&e)
	}
	e.Outcome, e.Counted, e.Result, e.ShedReason = s.judge()
	return e
}

// describe adds what the attempt has to say at which the request ended.
func (s *settlement) describe(e *telemetry.Exchange) {
	t, m := s.t, &s.t.measured
	e.Backend = t.name()
	whole := t.up.onward.summary(t)
	e.TPS, e.Predicted = whole.TPS, whole.Predicted
	e.InputTokens = float64(t.paidPrompt())
	e.CachedTokens, e.WarmTokens = float64(m.usage.CachedTokens), m.visit.Predicted()
	output, source := m.billed()
	output = t.up.onward.output(t, output)
	e.OutputTokens, e.Source = output, source.String()
	tokens, end := t.used(s.at)
	e.CostUSD = t.cost(tokens, end).USD()
	if sent := t.sentAt(); !sent.IsZero() {
		e.Duration = end.Sub(sent)
	}
	if sent, token := t.up.onward.first(t); !token.IsZero() {
		e.TTFT, e.Unsent = token.Sub(sent), sent.Sub(t.request.arrived)
	}
}

// judge says what became of the request: for whom it counts, and how.
func (s *settlement) judge() (outcome string, counted bool, result telemetry.Result, shedReason string) {
	if s.err == nil && s.x.down.status < 400 && !s.t.measured.reportedError {
		return outcomeOK, true, s.kept(), ""
	}
	return s.judgeFailure()
}

// judgeFailure is judge of what did not end well.
func (s *settlement) judgeFailure() (outcome string, counted bool, result telemetry.Result, shedReason string) {
	var (
		shed     *shedError
		up       *upstreamError
		plain    *backendError
		cut      *cutError
		gone     *goneError
		exceeded *limit.Exceeded
	)
	switch {
	case s.err == nil && s.x.down.status >= 400, errors.As(s.err, &plain):
		if s.t.kind == answerLastResort {
			return outcomeUpstream, true, telemetry.Failed, ""
		}
		return outcomeRejected, false, telemetry.Failed, ""
	case s.err == nil: // the backend reported an error within its answer
		return outcomeUpstream, true, telemetry.Failed, ""
	case errors.As(s.err, &shed) && shed.refusal.Reason != router.NoBackend:
		return outcomeShed, true, telemetry.Shed, shed.refusal.Reason.String()
	case errors.As(s.err, &gone), errors.Is(s.err, context.Canceled):
		if s.t == nil || s.t.measured.firstToken.IsZero() {
			return outcomeGone, false, telemetry.Unmeasured, ""
		}
		return outcomeGone, true, s.kept(), ""
	case errors.As(s.err, &cut):
		return outcomeCut, true, telemetry.Failed, ""
	case errors.As(s.err, &up), errors.As(s.err, &shed), errors.Is(s.err, errTotal):
		return outcomeUpstream, true, telemetry.Failed, ""
	case errors.Is(s.err, errDraining):
		return outcomeRejected, true, telemetry.Failed, ""
	case errors.Is(s.err, errPanicked):
		return outcomeUpstream, s.x.route != nil, telemetry.Failed, ""
	case errors.As(s.err, &exceeded):
		return outcomeRejected, false, telemetry.Failed, ""
	}
	return outcomeRejected, false, telemetry.Failed, ""
}

// kept judges the stream by what its request was promised.
func (s *settlement) kept() telemetry.Result {
	t := s.t
	if t.measured.stream == nil {
		return telemetry.Unmeasured
	}
	var ttft time.Duration
	if _, token := t.up.onward.first(t); !token.IsZero() {
		ttft = token.Sub(t.request.arrived)
	}
	return t.objective.judge(ttft, t.up.onward.summary(t))
}
