package ask

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/api"
)

func TestExplainPrintsNoControlCharacters(t *testing.T) {
	var out bytes.Buffer
	d := api.Decision{Route: "a\x1b[2J", RequestID: "\x07", Candidates: []api.Candidate{{Backend: "g\r", Reason: "\u009b1m"}}}
	if err := PrintDecisions(&out, []api.Decision{d}, true, 140); err != nil || strings.ContainsAny(out.String(), "\x1b\x07\r\u009b") {
		t.Errorf("%v; a control character reaches the terminal: %q", err, out.String())
	}
}
