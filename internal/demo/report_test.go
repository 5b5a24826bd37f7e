package demo

import (
	"strings"
	"testing"
	"time"
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

// Kept is met of the offered, whoever was shed counts against it; and a machine
// that had no time for the engines is told of.
func TestWhatKeptMeans(t *testing.T) {
	tally := newTally(floorTPS, grace)
	tally.routes["chat"] = &routeTally{offered: 110, met: 60, missed: 20, unmeasured: 10, shed: 15, failed: 5}
	if got, want := tally.report("chat").Kept, 0.6; got != want {
		t.Errorf("kept = %v, want %v: 60 of 100", got, want)
	}
	var l lateness
	for i := range 100 {
		l.saw(time.Duration(i%10) * time.Millisecond)
	}
	if got, want := l.share(), 0.4; got != want { // 6, 7, 8 and 9 ms
		t.Errorf("late = %v, want %v", got, want)
	}
	for late, warned := range map[float64]bool{0: false, 0.05: false, 0.4: true} {
		var out strings.Builder
		Report{Late: late}.print(&out, 100)
		if got := strings.Contains(out.String(), "too busy"); got != warned {
			t.Errorf("%v of the timers late: warned is %v, want %v", late, got, warned)
		}
	}
}
