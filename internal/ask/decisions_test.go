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
	for _, want := range []string{" 40+6 ", " 4 ", "m of b: 40 run there, and room is left for 6 more: other gateways may have placed them, or the engine runs them beside what it reported"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "m of a") || strings.Contains(out.String(), "4+") {
		t.Errorf("nobody is thought to come to a:\n%s", out.String())
	}
}

// A speed that is shown is known a little: too little to decide by it.
func TestExplainSaysHowMuchIsKnownOfASpeed(t *testing.T) {
	for _, c := range []struct {
		tps  api.Number
		want string
	}{{api.Unknown(), "its speed is not known yet"}, {170.4, "too little is known of its speed yet"}} {
		got := reasonOf(&api.Candidate{Reason: "ok", Floor: 30, TPS: c.tps, Headroom: api.Unknown()})
		if got != c.want {
			t.Errorf("%v tokens/s: %q, want %q", c.tps, got, c.want)
		}
	}
}

// Who is refused though a candidate is ok reads that others in line have that place.
func TestExplainSaysWhoStandsInLine(t *testing.T) {
	floor, full := "floor", "queue_full"
	for _, c := range []struct {
		reason *string
		behind int
		ok     string // the reason of the candidate
		want   string
	}{
		{&floor, 3, "ok", "refused: no place is left for it, behind 3 in line, who have the place that is ok\n"},
		{&full, 3, "ok", "refused: the line is full, behind 3 in line, who have the place that is ok\n"},
		{&floor, 3, "cap", "refused: no target keeps every floor with it\n"},
		{&floor, 0, "ok", "refused: no target keeps every floor with it\n"},
		{nil, 3, "ok", "waits in line, at most 2.0 s, behind 3 in line, who have the place that is ok\n"},
	} {
		d := api.Decision{Route: "chat", Outcome: "shed", ShedReason: c.reason, Behind: c.behind, RetryAfterS: api.Unknown(), Candidates: []api.Candidate{{Backend: "a", Reason: c.ok}}}
		if c.reason == nil {
			d.Outcome, d.MayWaitS = "queued", 2
		}
		var out bytes.Buffer
		must.Do(t, PrintDecisions(&out, []api.Decision{d}, false, 200))
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("no %q in\n%s", c.want, out.String())
		}
	}
}
