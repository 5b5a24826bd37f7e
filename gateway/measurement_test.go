package gateway

import (
	"math"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/providers"
)

// What was counted and never shown is paid for, whoever counted.
func TestHiddenTokensAreBilled(t *testing.T) {
	for name, c := range map[string]struct {
		m      measurement
		tokens float64
		source profiles.Source
	}{
		"nothing came":            {measurement{}, 0, profiles.Source(0)},
		"chunks alone":            {measurement{summary: profiles.Summary{Tokens: 12, Source: profiles.SourceChunks}}, 12, profiles.SourceChunks},
		"counted as shown":        {measurement{summary: profiles.Summary{Tokens: 12, Source: profiles.SourceUsage}, hasUsage: true, usage: profiles.Usage{CompletionTokens: 12}}, 12, profiles.SourceUsage},
		"hidden reasoning":        {measurement{summary: profiles.Summary{Tokens: 12, Source: profiles.SourceChunks}, hasUsage: true, usage: profiles.Usage{CompletionTokens: 40}}, 40, profiles.SourceUsage},
		"hidden, counted running": {measurement{summary: profiles.Summary{Tokens: 12, Source: profiles.SourceContinuous}, hasUsage: true, usage: profiles.Usage{CompletionTokens: 40}}, 40, profiles.SourceContinuous},
		"counted as less":         {measurement{summary: profiles.Summary{Tokens: 12, Source: profiles.SourceChunks}, hasUsage: true, usage: profiles.Usage{CompletionTokens: 3}}, 12, profiles.SourceChunks},
	} {
		if tokens, source := c.m.billed(); tokens != c.tokens || source != c.source {
			t.Errorf("%s: %v by %v, want %v by %v", name, tokens, source, c.tokens, c.source)
		}
	}
}

// A document is summed up by its usage; of text without one nothing is learned.
func TestAMeasurementOfADocument(t *testing.T) {
	var m measurement
	m.see(&providers.Seen{Chunks: 1, Bytes: 400})
	if got := m.learnText(&textScale{}); !math.IsNaN(got) {
		t.Errorf("%v bytes a token without a usage, want none", got)
	}
	m.count(&providers.Usage{PromptTokens: 7, CompletionTokens: 100, ReasoningTokens: 20})
	if got := m.learnText(&textScale{}); !math.IsNaN(got) {
		t.Errorf("%v bytes a token where reasoning was hidden, want none", got)
	}
	m.see(&providers.Seen{Reasoning: true, Error: true})
	scale := &textScale{}
	if got := m.learnText(scale); got != 4 || scale.bytesPerToken() != 4 {
		t.Errorf("%v and %v bytes a token, want 4", got, scale.bytesPerToken())
	}
	m.close(time.Now(), true)
	if m.summary.Tokens != 100 || m.summary.Source != profiles.SourceUsage || !math.IsNaN(m.summary.TPS) || !m.reportedError {
		t.Errorf("summed up as %+v, error %v; want 100 tokens by usage, no speed, an error", m.summary, m.reportedError)
	}
}
