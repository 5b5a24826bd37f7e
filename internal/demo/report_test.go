package demo

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What the demo says at its end fits the terminal: a narrow one shows fewer
// columns.
func TestTheDemosReportFitsTheTerminal(t *testing.T) {
	r := Report{
		Policy: "round-robin", Load: "ramp to 50, spike to 200, one backend killed and back", Seconds: 125, FloorTPS: 30,
		Routes: []RouteReport{{Route: "chat", Offered: 12345, Met: 12000, Kept: 0.995, TPSP10: 140.9, TPSP50: 169}, {Route: "nightly", Offered: 265}},
		Backends: []BackendReport{
			{Backend: "llama-3-1-70b-h200", Tokens: 357712, AtFloor: 265, Levels: []LevelError{{N: 30, True: 80.3, Learned: 80.2}, {N: 134, True: 143.9, Learned: 144.3}}},
			{Backend: "glm-5-h200"},
		},
	}
	for width, more := range map[int]bool{80: false, 200: true} {
		var out strings.Builder
		r.print(&out, width)
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns on %d: %q", n, width, line)
			}
		}
		for _, always := range []string{"99.5 %", "TTFT p99", "streams at floor", "357712"} {
			if !strings.Contains(out.String(), always) {
				t.Errorf("%d columns: no %q in\n%s", width, always, out.String())
			}
		}
		for _, wide := range []string{"unmeasured", "30: 80.3 → 80.2  134: 143.9 → 144.3\n", "nothing learned yet"} {
			if strings.Contains(out.String(), wide) != more {
				t.Errorf("%d columns: %q is shown: %v, want %v, in\n%s", width, wide, !more, more, out.String())
			}
		}
	}
}
