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
	now := time.Now()
	if x.attempt != nil {
		x.attempt.end(now, err == nil)
	}
	x.hedge.end()
	x.letGo()
	x.failover.faults.forget()
	x.placement.leave()
	x.memory.giveBack()
	x.coolDown()
	uncounted := x.guess()
	x.permit.Leave()
	x.learn(err)
	if !uncounted || !x.countLater(func() { x.account(now, err) }) {
		x.account(now, err)
	}
}

// account says what became of the request, whose tokens are known. What was
// estimated of them stays taken until then: given back before, it would let the
// key pass its limit.
func (x *exchange) account(now time.Time, err error) {
	x.permit.Settle(time.Now(), float64(x.usedPrompt())+x.outputTokens())
	e := x.telemetry(now, err)
	x.g.metrics.Observe(e)
	x.spend(now, usage.Dollars(e.CostUSD))
	x.writeLog(e, err)
	x.endSpan(now, &e)
}

// learn takes what the answer shows of its route's prompts and its target's
// tokenizer.
func (x *exchange) learn(err error) {
	if x.attempt == nil {
		return
	}
	m := &x.attempt.measured
	if m.hasUsage {
		x.route.prompt.learn(x.request.estimate, m.usage.PromptTokens)
	}
	m.bytesPerToken = math.NaN()
	if err == nil {
		m.bytesPerToken = m.learnText(x.plan.texts[x.attempt.target])
	}
}

// outputTokens are those that are paid for.
func (x *exchange) outputTokens() float64 {
	if x.attempt == nil {
		return 0
	}
	tokens, _ := x.attempt.measured.billed()
	return x.onward.output(x.attempt, tokens)
}

// usedPrompt is the prompt as the backend counted it, else as estimated; 0
// when nothing went up.
func (x *exchange) usedPrompt() int {
	switch {
	case x.failover.sends == 0:
		return 0
	case x.attempt.measured.hasUsage:
		return x.onward.prompt(x.attempt, x.attempt.measured.usage.PromptTokens)
	}
	return x.prompt.tokens
}

// sent is when the request went up to the backend that it ended at, or, if that
// was not sent it, to the one before; zero = to none.
func (x *exchange) sent() time.Time {
	if !x.onward.sent.IsZero() {
		return x.onward.sent
	}
	if x.attempt != nil && !x.attempt.up.sent.IsZero() {
		return x.attempt.up.sent
	}
	return x.failover.sent
}

// telemetry is the request as the metrics see it.
func (x *exchange) telemetry(now time.Time, err error) telemetry.Exchange {
	e := telemetry.Exchange{
		Route:    "unknown",
		Class:    x.objective.class.String(),
		Waited:   x.placement.waited,
		Overhead: x.overhead,
		Hedge:    x.hedge.result,
		Passages: x.onward.passages,
		Source:   profiles.Source(0).String(),
		TraceID:  x.trace().exemplar(),
	}
	if x.route != nil {
		e.Route = x.route.name
	}
	if t := x.attempt; t != nil {
		x.describe(&e, t, now)
	}
	e.Outcome, e.Counted, e.Result, e.ShedReason = x.judge(err)
	return e
}

// describe adds the attempt that the request ended at.
func (x *exchange) describe(e *telemetry.Exchange, t *attempt, now time.Time) {
	m := &t.measured
	e.Backend = t.name()
	whole := x.onward.summary(t)
	e.TPS, e.Predicted = whole.TPS, whole.Predicted
	if m.hasUsage || m.summary.Tokens > 0 {
		e.InputTokens = float64(x.usedPrompt())
	}
	e.CachedTokens, e.WarmTokens = float64(m.usage.CachedTokens), m.visit.Predicted()
	output, source := m.billed()
	output = x.onward.output(t, output)
	e.OutputTokens, e.Source = output, source.String()
	tokens, end := x.used(t, now)
	e.CostUSD = x.cost(tokens, end).USD()
	if sent := x.sent(); !sent.IsZero() {
		e.Duration = end.Sub(sent)
	}
	if sent, token := x.onward.first(t); !token.IsZero() {
		e.TTFT = token.Sub(sent)
	}
}

// judge says what became of the request: for whom it counts, and how.
func (x *exchange) judge(err error) (outcome string, counted bool, result telemetry.Result, shedReason string) {
	if err == nil && x.down.status < 400 && !x.attempt.measured.reportedError {
		return outcomeOK, true, x.kept(), ""
	}
	return x.judgeFailure(err)
}

// judgeFailure is judge of what did not end well.
func (x *exchange) judgeFailure(err error) (outcome string, counted bool, result telemetry.Result, shedReason string) {
	var (
		shed     *shedError
		up       *upstreamError
		plain    *backendError
		cut      *cutError
		gone     *goneError
		exceeded *limit.Exceeded
	)
	switch {
	case err == nil && x.down.status >= 400, errors.As(err, &plain):
		if x.attempt.kind == answerLastResort {
			return outcomeUpstream, true, telemetry.Failed, ""
		}
		return outcomeRejected, false, telemetry.Failed, ""
	case err == nil: // the backend reported an error within its answer
		return outcomeUpstream, true, telemetry.Failed, ""
	case errors.As(err, &shed) && shed.refusal.Reason != router.NoBackend:
		return outcomeShed, true, telemetry.Shed, shed.refusal.Reason.String()
	case errors.As(err, &gone), errors.Is(err, context.Canceled):
		if x.attempt == nil || x.attempt.measured.firstToken.IsZero() {
			return outcomeGone, false, telemetry.Unmeasured, ""
		}
		return outcomeGone, true, x.kept(), ""
	case errors.As(err, &cut):
		return outcomeCut, true, telemetry.Failed, ""
	case errors.As(err, &up), errors.As(err, &shed), errors.Is(err, errTotal):
		return outcomeUpstream, true, telemetry.Failed, ""
	case errors.Is(err, errDraining):
		return outcomeRejected, true, telemetry.Failed, ""
	case errors.Is(err, errPanicked):
		return outcomeUpstream, x.route != nil, telemetry.Failed, ""
	case errors.As(err, &exceeded):
		return outcomeRejected, false, telemetry.Failed, ""
	}
	return outcomeRejected, false, telemetry.Failed, ""
}

// kept judges the stream by what its request was promised.
func (x *exchange) kept() telemetry.Result {
	m := &x.attempt.measured
	if m.stream == nil {
		return telemetry.Unmeasured
	}
	var ttft time.Duration
	if _, token := x.onward.first(x.attempt); !token.IsZero() {
		ttft = token.Sub(x.request.arrived)
	}
	return x.objective.judge(ttft, x.onward.summary(x.attempt))
}
