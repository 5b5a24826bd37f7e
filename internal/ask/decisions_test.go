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

// What other gateways may have placed meanwhile stands beside what is known to run.
func TestExplainSaysWhoIsThoughtToCome(t *testing.T) {
	d := api.Decision{Route: "chat", Candidates: []api.Candidate{{Backend: "a", M: 4, Reason: "ok"}, {Backend: "b", M: 40, Unheard: 6, Reason: "ok"}}}
	var out bytes.Buffer
	must.Do(t, PrintDecisions(&out, []api.Decision{d}, true, 200))
	for _, want := range []string{" 40+6 ", " 4 ", "m of b: 40 run there, and 6 more are thought to, of others who have not told of them yet"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "m of a") || strings.Contains(out.String(), "4+") {
		t.Errorf("nobody is thought to come to a:\n%s", out.String())
	}
}
