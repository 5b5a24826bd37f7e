package gateway

import (
	"math"
	"net/http"
	"time"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/internal/tracing"
)

// operations are the words of OpenTelemetry for what endpoints do; of the others it
// is the path.
var operations = map[string]string{
	"/chat/completions": "chat", "/responses": "chat", "/messages": "chat",
	"/completions": "text_completion", "/embeddings": "embeddings", "/v2/embed": "embeddings",
}

func operation(end *endpoint.Endpoint) string {
	if word, ok := operations[end.Path]; ok {
		return word
	}
	return end.Path
}

// trace is the one that the request is part of: that of its own span, else the one
// that its client names.
func (o *order) trace() trace {
	if id, recorded := o.span.TraceID(); id != "" {
		return trace{id, recorded}
	}
	return traceOf(o.request.http.Header)
}

// followAttempt begins the span of t, which is about to be sent, and names it to the
// backend. hedges: it is the second of two.
func (t *attempt) followAttempt(hedges bool) {
	if t.order.span == nil {
		return
	}
	word := operation(t.request.end)
	t.span = t.order.span.Attempt(word+" "+t.up.call.Model, t.up.sent)
	t.span.Set(
		tracing.String("gen_ai.operation.name", word),
		tracing.String("gen_ai.request.model", t.up.call.Model),
		tracing.String("gen_ai.provider.name", t.backend.Kind()),
		tracing.String("pacer.backend", t.name()),
		tracing.Int("pacer.n", t.decision.Chosen.N),
		tracing.Int("pacer.m", t.decision.Chosen.M),
	)
	if t.decision.Spilled != "" {
		t.order.span.Event("spill", t.up.sent, tracing.String("pacer.route", t.decision.Spilled))
	}
	if hedges {
		t.order.span.Event("hedge", t.up.sent, tracing.String("pacer.backend", t.name()))
	}
	t.span.Inject(t.up.call.Header)
}

// followMove says that the request goes on to another backend.
func (o *order) followMove(failed *attempt) {
	if o.span != nil {
		o.span.Event("failover", time.Now(), tracing.String("pacer.backend", failed.name()), tracing.Int("http.response.status_code", failed.up.status()))
	}
}

// endSpan ends the span of t with what was measured.
func (t *attempt) endSpan(now time.Time) {
	if t.span == nil {
		return
	}
	m := &t.measured
	if status := t.up.status(); status > 0 {
		t.span.Set(tracing.Int("http.response.status_code", status))
	}
	if m.hasUsage {
		t.span.Set(tracing.Int("gen_ai.usage.input_tokens", m.usage.PromptTokens))
	}
	if tokens, _ := m.billed(); tokens > 0 {
		t.span.Set(tracing.Int("gen_ai.usage.output_tokens", int(math.Round(tokens))))
	}
	if !m.firstToken.IsZero() {
		t.span.Event("first token", m.firstToken)
		end := now
		if !m.ended.IsZero() {
			end = m.ended
		}
		t.span.Phase("stream", m.firstToken, end)
	}
	if t.kind != answerGood || m.garbage || m.reportedError {
		t.span.Fail("not_served")
	}
	t.span.End(now)
	t.span = nil
}

// endSpan ends the span of the request with what became of it.
func (f *settlement) endSpan(e *telemetry.Exchange) {
	x, s := f.x, f.x.span
	if s == nil {
		return
	}
	x.span = nil
	word := operation(x.request.end)
	s.Rename(word + " " + e.Route)
	if arrived := x.request.arrived; !arrived.IsZero() {
		s.Phase("read", s.Began, arrived)
		if e.Waited > 0 && int(x.failover.sends) <= 1 { // else it waited between two attempts
			s.Phase("line", arrived, arrived.Add(e.Waited))
		}
	}
	s.Set(
		tracing.String("http.request.method", x.request.http.Method),
		tracing.String("http.route", x.request.end.Addresses()[0].Path),
		tracing.Int("http.response.status_code", x.down.status),
		tracing.String("gen_ai.operation.name", word),
		tracing.String("gen_ai.request.model", e.Route),
		tracing.String("pacer.request_id", requestID(x.request.http.Context())),
		tracing.String("pacer.class", e.Class),
		tracing.String("pacer.outcome", e.Outcome),
		tracing.Int("pacer.attempts", int(x.failover.sends)),
	)
	if e.Backend != "" {
		s.Set(tracing.String("pacer.backend", e.Backend))
	}
	if e.Counted {
		s.Set(tracing.String("pacer.result", e.Result.String()))
	}
	for _, fact := range []struct {
		name  string
		value float64
	}{
		{"pacer.floor_tps", x.objective.floor},
		{"pacer.tps", e.TPS},
		{"pacer.predicted_tps", e.Predicted},
		{"pacer.ttft_s", e.TTFT.Seconds()},
		{"pacer.waited_s", e.Waited.Seconds()},
		{"pacer.cost_usd", e.CostUSD},
	} {
		if fact.value > 0 {
			s.Set(tracing.Float(fact.name, fact.value))
		}
	}
	if n := x.request.parsed.MaxTokens; n > 0 {
		s.Set(tracing.Int("gen_ai.request.max_tokens", n))
	}
	if e.OutputTokens > 0 {
		s.Set(tracing.Int("gen_ai.usage.input_tokens", int(e.InputTokens)), tracing.Int("gen_ai.usage.output_tokens", int(e.OutputTokens)))
	}
	switch {
	case e.ShedReason != "":
		s.Fail(e.ShedReason)
	case e.Outcome != outcomeOK && e.Outcome != outcomeGone && x.down.status >= http.StatusInternalServerError, e.Outcome == outcomeCut:
		s.Fail(e.Outcome)
	}
	s.End(f.at)
}
