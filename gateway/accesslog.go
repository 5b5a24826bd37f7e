package gateway

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/internal/telemetry"
)

// maxLogAttrs is how many attributes a line has at most.
const maxLogAttrs = 32

// writeLog writes the one access-log line of the request. It holds no text of
// prompts or answers, and no key. now is its time.
func (s *settlement) writeLog(now time.Time, e telemetry.Exchange) {
	x := s.x
	level := slog.LevelInfo
	if e.Outcome == outcomeUpstream || e.Outcome == outcomeCut {
		level = slog.LevelWarn
	}
	if !x.g.access.Enabled(context.Background(), level) {
		return
	}
	var room [maxLogAttrs]slog.Attr
	attrs := append(room[:0],
		slog.String("request", requestID(x.request.http.Context())),
		slog.String("client", x.setup.client(x.request.http)),
		slog.String("method", x.request.http.Method),
		slog.String("path", x.request.http.URL.Path),
		slog.String("tenant", x.tenant.name),
		slog.String("route", e.Route),
		slog.String("class", e.Class),
		slog.String("backend", e.Backend),
		slog.Int("status", x.down.status),
		slog.String("outcome", e.Outcome),
		slog.Bool("stream", x.request.parsed.Stream),
		slog.Float64("waited_ms", milliseconds(e.Waited)),
		slog.Float64("duration_ms", milliseconds(e.Duration)),
		slog.Int64("bytes", x.down.bytes),
	)
	if t := x.trace(); t.id != "" {
		attrs = append(attrs, slog.String("trace", t.id))
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
	if s.t != nil {
		attrs = s.logPlace(s.logAnswer(attrs, e))
	}
	switch {
	case s.err != nil:
		attrs = append(attrs, slog.String("error", s.err.Error()))
	case s.t != nil && s.t.measured.reportedError: // its words may be the user's
		attrs = append(attrs, slog.String("error", "the backend reported an error within its answer"))
	}
	// Not by LogAttrs, which would look for the caller's line in the source.
	line := slog.NewRecord(now, level, "request", 0)
	line.AddAttrs(attrs...)
	_ = x.g.access.Handler().Handle(context.Background(), line)
}

func milliseconds(d time.Duration) float64 {
	return math.Round(float64(d.Microseconds())) / 1000
}

// logAnswer adds what is known of the answer's tokens.
func (s *settlement) logAnswer(attrs []slog.Attr, e telemetry.Exchange) []slog.Attr {
	t, m := s.t, &s.t.measured
	if hidden := e.OutputTokens - t.up.onward.summary(t).Tokens; hidden > 0 {
		attrs = append(attrs, slog.Float64("hidden_tokens", hidden))
	}
	if !math.IsNaN(s.bytesPerToken) {
		attrs = append(attrs, slog.Float64("bytes_per_token", math.Round(s.bytesPerToken*100)/100))
	}
	if encoding := t.answer.encoding; encoding != "" { // why there are no tokens
		attrs = append(attrs, slog.String("unread", encoding))
	}
	if m.hasUsage {
		attrs = append(attrs, slog.Int("prompt_tokens", t.usedPrompt()), slog.Int("cached_tokens", m.usage.CachedTokens))
	}
	return attrs
}

// logPlace adds why the request went where it did.
func (s *settlement) logPlace(attrs []slog.Attr) []slog.Attr {
	x, d := s.x, &s.t.decision
	attrs = append(attrs, slog.Int("attempts", int(x.failover.sends)), slog.Int("n", d.Chosen.N), slog.Int("m", d.Chosen.M))
	if known(d.Chosen.TPS) {
		attrs = append(attrs, slog.Float64("predicted_tps", math.Round(d.Chosen.TPS*10)/10))
	}
	if x.hedge.backend != "" {
		attrs = append(attrs, slog.String("hedged", x.hedge.backend))
	}
	if len(x.onward.from) > 0 {
		attrs = append(attrs, slog.String("continued", strings.Join(x.onward.from, ",")))
	}
	if d.Spilled != "" {
		attrs = append(attrs, slog.String("spill", d.Spilled))
	}
	return attrs
}
