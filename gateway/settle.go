package gateway

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/pacer-dev/pacer/gateway/limit"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
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
	if x.try != nil {
		x.endAttempt() // first of all: the backend's own slot
	}
	x.dropRival()
	x.letGo()
	x.forgetAccused()
	x.leaveLine()
	x.release(now, err == nil)
	x.budgets().give(x.held)
	if x.counted {
		x.g.running.Add(-1)
	}
	uncounted := x.guess()
	output, _ := x.billed()
	x.permit.Settle(now, float64(x.usedPrompt())+output)
	if x.hasUsage && x.route != nil {
		x.route.prompt.learn(x.bodyTokens, x.usage.PromptTokens)
	}
	x.perToken = x.learnText(err)
	account := func() {
		e := x.telemetry(now, err)
		x.g.metrics.Observe(e)
		x.writeLog(now, e, err)
	}
	if !uncounted || !x.countLater(account) {
		account()
	}
}

// release ends the measurement and gives the lease back. Calls after the first
// do nothing.
func (x *exchange) release(now time.Time, complete bool) {
	defer func() { x.giveBack(now, x.summary.Tokens) }() // also if the measurement panics
	if x.closed {
		return
	}
	x.closed = true
	switch {
	case x.meter != nil:
		x.summary = x.meter.Close(now, complete && !x.garbage)
	case x.hasUsage:
		x.summary = profiles.Summary{Tokens: float64(x.usage.CompletionTokens), Source: profiles.SourceUsage, TPS: math.NaN()}
	}
}

// giveBack gives the lease back, if there is one, and wakes those whom that
// lets go.
func (x *exchange) giveBack(now time.Time, outputTokens float64) {
	if l := x.lease; l != nil {
		x.lease = nil
		x.g.Deliver(l.Done(now, outputTokens))
	}
}

// learnText takes what a whole answer shows of its target's tokenizer. Reasoning
// that was counted and not shown is no text.
func (x *exchange) learnText(err error) float64 {
	if err != nil || !x.hasUsage || x.try == nil || x.usage.ReasoningTokens > 0 && !x.reasoned {
		return math.NaN()
	}
	return x.plan.texts[x.target].learn(x.text, x.usage.CompletionTokens)
}

// usedPrompt is the prompt as the backend counted it, else as estimated; 0
// when nothing went up.
func (x *exchange) usedPrompt() int {
	switch {
	case x.hasUsage:
		return x.usage.PromptTokens
	case x.sent.IsZero():
		return 0
	}
	return x.promptTokens
}

// inputTokens is the prompt as the metrics count it: as the backend told, or,
// of an answer that did not tell, as estimated.
func (x *exchange) inputTokens() float64 {
	if x.hasUsage || x.summary.Tokens > 0 {
		return float64(x.usedPrompt())
	}
	return 0
}

// billed is how many tokens of answer are paid for, and by whose count. What
// the backend counted beyond those that it showed, as hidden reasoning, is in no
// speed, and yet is paid for.
func (x *exchange) billed() (tokens float64, source profiles.Source) {
	tokens, source = x.summary.Tokens, x.summary.Source
	if counted := float64(x.usage.CompletionTokens); x.hasUsage && counted > tokens {
		tokens = counted
		if source != profiles.SourceContinuous {
			source = profiles.SourceUsage
		}
	}
	return tokens, source
}

// telemetry is the request as the metrics see it.
func (x *exchange) telemetry(now time.Time, err error) telemetry.Exchange {
	output, source := x.billed()
	e := telemetry.Exchange{
		Route:     "unknown",
		Class:     x.class.String(),
		Waited:    x.waited,
		Overhead:  x.own,
		TPS:       x.summary.TPS,
		Predicted: x.summary.Predicted,
		Hedge:     x.hedge,

		InputTokens:  x.inputTokens(),
		CachedTokens: float64(x.usage.CachedTokens),
		OutputTokens: output,
		Source:       source.String(),
	}
	if x.route != nil {
		e.Route = x.route.name
	}
	if x.try != nil {
		e.Backend = x.try.name
		if b := x.try.backend; b != nil {
			e.CostUSD = (e.InputTokens*b.price.Input + e.OutputTokens*b.price.Output) / 1e6
		}
		end := now
		if !x.ended.IsZero() {
			end = x.ended
		}
		if !x.sent.IsZero() {
			e.Duration = end.Sub(x.sent)
		}
	}
	if !x.firstToken.IsZero() {
		e.TTFT = x.firstToken.Sub(x.sent)
	}
	e.Outcome, e.Counted, e.Result, e.ShedReason = x.judge(err)
	return e
}

// judge says what became of the request: for whom it counts, and how.
func (x *exchange) judge(err error) (outcome string, counted bool, result telemetry.Result, shedReason string) {
	var (
		shed     *shedError
		up       *upstreamError
		plain    *backendError
		cut      *cutError
		gone     *goneError
		exceeded *limit.Exceeded
	)
	switch {
	case err == nil && x.opaque && x.status >= 400, errors.As(err, &plain):
		if x.backendsFault {
			return outcomeUpstream, true, telemetry.Failed, ""
		}
		return outcomeRejected, false, telemetry.Failed, ""
	case err == nil && x.upError:
		return outcomeUpstream, true, telemetry.Failed, ""
	case err == nil:
		return outcomeOK, true, x.kept(), ""
	case errors.As(err, &shed) && shed.refusal.Reason != router.NoBackend:
		return outcomeShed, true, telemetry.Shed, shed.refusal.Reason.String()
	case errors.As(err, &gone), errors.Is(err, context.Canceled):
		if x.firstToken.IsZero() {
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
	if x.meter == nil {
		return telemetry.Unmeasured
	}
	p := promise{floor: x.floor, grace: x.route.conf.SLO.Grace, maxTTFT: x.maxTTFT}
	var ttft time.Duration
	if !x.firstToken.IsZero() {
		ttft = x.firstToken.Sub(x.arrived)
	}
	return p.judge(ttft, x.summary)
}

// writeLog writes the one access-log line of the request. It holds no text of
// prompts or answers, and no key.
func (x *exchange) writeLog(now time.Time, e telemetry.Exchange, err error) {
	attrs := []slog.Attr{
		slog.String("request", requestID(x.r.Context())),
		slog.String("client", x.plan.client(x.r)),
		slog.String("method", x.r.Method),
		slog.String("path", x.r.URL.Path),
		slog.String("tenant", x.tenant.name),
		slog.String("route", e.Route),
		slog.String("class", e.Class),
		slog.String("backend", e.Backend),
		slog.Int("status", x.status),
		slog.String("outcome", e.Outcome),
		slog.Bool("stream", x.stream),
		slog.Float64("waited_ms", milliseconds(x.waited)),
		slog.Float64("duration_ms", milliseconds(e.Duration)),
		slog.Int64("bytes", x.bytes),
	}
	if e.TTFT > 0 {
		attrs = append(attrs, slog.Float64("ttft_ms", milliseconds(e.TTFT)))
	}
	if known(e.TPS) {
		attrs = append(attrs, slog.Float64("tps", math.Round(e.TPS*10)/10))
	}
	if e.OutputTokens > 0 {
		attrs = append(attrs, slog.Float64("tokens", e.OutputTokens), slog.String("source", e.Source))
	}
	if hidden := e.OutputTokens - x.summary.Tokens; hidden > 0 {
		attrs = append(attrs, slog.Float64("hidden_tokens", hidden))
	}
	if !math.IsNaN(x.perToken) {
		attrs = append(attrs, slog.Float64("bytes_per_token", math.Round(x.perToken*100)/100))
	}
	if x.try != nil && x.try.encoding != "" { // why there are no tokens
		attrs = append(attrs, slog.String("unread", x.try.encoding))
	}
	if x.hasUsage {
		attrs = append(attrs, slog.Int("prompt_tokens", x.usage.PromptTokens), slog.Int("cached_tokens", x.usage.CachedTokens))
	}
	if x.try != nil {
		attrs = append(attrs, slog.Int("attempts", x.sends), slog.Int("n", x.decision.Chosen.N), slog.Int("m", x.decision.Chosen.M))
		if known(x.decision.Chosen.TPS) {
			attrs = append(attrs, slog.Float64("predicted_tps", math.Round(x.decision.Chosen.TPS*10)/10))
		}
		if x.hedgedTo != "" {
			attrs = append(attrs, slog.String("hedged", x.hedgedTo))
		}
		if x.decision.Spilled != "" {
			attrs = append(attrs, slog.String("spill", x.decision.Spilled))
		}
	}
	level := slog.LevelInfo
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	if e.Outcome == outcomeUpstream || e.Outcome == outcomeCut {
		level = slog.LevelWarn
	}
	x.g.access.LogAttrs(context.Background(), level, "request", attrs...)
}

func milliseconds(d time.Duration) float64 {
	return math.Round(float64(d.Microseconds())) / 1000
}
