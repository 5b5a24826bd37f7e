package telemetry

import (
	"math"
	"testing"
	"time"
)

func TestRouteFigures(t *testing.T) {
	m := New(map[string]string{"chat": "interactive"}, []string{"a"}, nil)
	empty := m.Route("chat")
	if empty.Offered != 0 || !math.IsNaN(empty.TPSP50) || !math.IsNaN(empty.TTFTP99) || !math.IsNaN(m.Route("nobody").TPSP10) {
		t.Errorf("before the first request got %+v, want zeros and NaN", empty)
	}
	for i := range 100 {
		m.Observe(Exchange{Route: "chat", Backend: "a", Outcome: "ok", Counted: true, Result: Met, TPS: float64(i + 1), TTFT: time.Duration(i+1) * 10 * time.Millisecond})
	}
	for _, r := range []Result{Missed, Missed, Unmeasured, Shed, Shed, Shed, Failed} {
		m.Observe(Exchange{Route: "chat", Outcome: "ok", Counted: true, Result: r})
	}
	s := m.Route("chat")
	if s.Offered != 107 || s.Met != 100 || s.Missed != 2 || s.Unmeasured != 1 || s.Shed != 3 || s.Failed != 1 {
		t.Errorf("got %+v, want 107 = 100 + 2 + 1 + 3 + 1", s)
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"tps p10", s.TPSP10, 10},
		{"tps p50", s.TPSP50, 50},
		{"tps p90", s.TPSP90, 90},
		{"ttft p50", s.TTFTP50, 0.5},
		{"ttft p90", s.TTFTP90, 0.9},
		{"ttft p99", s.TTFTP99, 0.99},
	} {
		if math.Abs(c.got/c.want-1) > 0.011 {
			t.Errorf("%s: got %.4g, want %.4g within 1 %%", c.name, c.got, c.want)
		}
	}
	if s.TPSCount != 100 || s.TTFTCount != 100 {
		t.Errorf("figures rest on %d and %d streams, want 100 and 100", s.TPSCount, s.TTFTCount)
	}
}
