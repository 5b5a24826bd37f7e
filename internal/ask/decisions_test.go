package ask

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/must"
)

func TestExplainSaysWhatIsWarm(t *testing.T) {
	d := api.Decision{Route: "chat", Candidates: []api.Candidate{
		{Backend: "a", Reason: "ok", Warm: &api.WarmPrompt{Tokens: 11_900, PromptTokens: 12_400, SavesS: 0.412}},
		{Backend: "b", Reason: "ok"},
	}}
	var out bytes.Buffer
	must.Do(t, PrintDecisions(&out, []api.Decision{d}, true, 200))
	if want := "warm: 11,900 of 12,400 tokens, saves 0.41 s"; strings.Count(out.String(), want) != 1 || strings.Count(out.String(), "warm") != 1 {
		t.Errorf("want %q once, in\n%s", want, out.String())
	}
}

func TestExplainPrintsNoControlCharacters(t *testing.T) {
	var out bytes.Buffer
	d := api.Decision{Route: "a\x1b[2J", RequestID: "\x07", Candidates: []api.Candidate{{Backend: "g\r", Reason: "\u009b1m"}}}
	if err := PrintDecisions(&out, []api.Decision{d}, true, 140); err != nil || strings.ContainsAny(out.String(), "\x1b\x07\r\u009b") {
		t.Errorf("%v; a control character reaches the terminal: %q", err, out.String())
	}
}
