package gateway

import (
	"math"
	"time"

	"github.com/pacer-dev/pacer/prefix"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/providers"
)

// measurement is what the relay learns of one answer.
type measurement struct {
	stream     *profiles.Stream // nil = not a stream that is measured
	text       int              // bytes of content seen
	chunks     int              // that they came in
	firstToken time.Time
	lastEvent  time.Time // when the last event of the stream, or a piece of it, was passed on

	gone          bool // its client hung up while the backend worked for it
	reasoned      bool // some of the text was reasoning
	reportedError bool // by the backend, within the answer
	garbage       bool // something came that is not of the dialect
	hasUsage      bool
	byText        bool // its tokens were counted by its text, as its target tells none

	waits *profiles.Waiting // for the first token of a stream; nil = nobody does
	visit prefix.Visit      // to the target's cache
	usage profiles.Usage
	ended time.Time // when the last event of all came

	summary profiles.Summary
}

// see takes note of what came by, but for tokens, which have a time.
func (m *measurement) see(seen *providers.Seen) {
	m.text += seen.Bytes
	m.chunks += seen.Chunks
	m.reasoned = m.reasoned || seen.Reasoning
	m.reportedError = m.reportedError || seen.Error
	if seen.Reasoning && m.stream != nil {
		m.stream.Reasoning()
	}
}

// count takes the backend's own count for true.
func (m *measurement) count(u *providers.Usage) {
	m.usage, m.hasUsage = profiles.Usage(*u), true
	if m.stream != nil {
		u := m.usage
		u.CachedTokens = m.visit.Trusted(u.PromptTokens, u.CachedTokens)
		m.stream.Usage(u)
	}
}

// countText counts the tokens of a stream whose target is silent by its text.
func (m *measurement) countText(scale *textScale) {
	if m.stream == nil || m.hasUsage || m.text == 0 {
		return
	}
	if count := scale.byText(m.text, m.chunks); !math.IsNaN(count) {
		m.byText = true
		m.stream.Usage(profiles.Usage{CompletionTokens: int(math.Round(count))})
	}
}

// block notes that what comes now is no evidence of the backend's speed.
func (m *measurement) block() {
	if m.stream != nil {
		m.stream.Blocked()
	}
}

// close sums up. complete = the answer came to its end.
func (m *measurement) close(now time.Time, complete bool) {
	m.waits.Over()
	switch {
	case m.stream != nil:
		if m.summary = m.stream.Close(now, complete && !m.garbage); m.byText {
			m.summary.Source = profiles.SourceEstimate
		}
	case m.hasUsage:
		m.summary = profiles.Summary{Tokens: float64(m.usage.CompletionTokens), Source: profiles.SourceUsage, TPS: math.NaN()}
	}
}

// billed is how many tokens of answer are paid for, and by whose count. What
// the backend counted beyond those that it showed, as hidden reasoning, is in no
// speed, and yet is paid for.
func (m *measurement) billed() (tokens float64, source profiles.Source) {
	tokens, source = m.summary.Tokens, m.summary.Source
	if counted := float64(m.usage.CompletionTokens); m.hasUsage && counted > tokens {
		tokens = counted
		if source != profiles.SourceContinuous {
			source = profiles.SourceUsage
		}
	}
	return tokens, source
}

// learnText returns how many bytes a token of a whole answer has, and has scale
// learn it; NaN if that cannot be told. Reasoning that was counted and not shown
// is no text.
func (m *measurement) learnText(scale *textScale) float64 {
	if !m.hasUsage || m.usage.ReasoningTokens > 0 && !m.reasoned {
		return math.NaN()
	}
	return scale.learn(m.text, m.usage.CompletionTokens)
}
