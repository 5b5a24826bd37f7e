package telemetry

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestQuantilesAreWithinOnePercent(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, count := range []int{1, 2, 10, 1000} {
		var a aged
		var values []float64
		for range count {
			v := math.Exp(rng.NormFloat64()*2 + 1)
			values = append(values, v)
			a.add(noon, v)
		}
		slices.Sort(values)
		shares := []float64{0, 0.1, 0.5, 0.9, 0.99, 1}
		got, n := a.quantiles(noon, shares...)
		if n != uint64(count) {
			t.Fatalf("counted %d, want %d", n, count)
		}
		for i, share := range shares {
			want := values[max(int(math.Ceil(share*float64(count))), 1)-1]
			if math.Abs(got[i]/want-1) > 0.0101 {
				t.Errorf("p%g of %d values: got %.4g, want %.4g within 1 %%", share*100, count, got[i], want)
			}
		}
	}
}

func TestQuantilesOfNothing(t *testing.T) {
	var a aged
	for _, v := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		a.add(noon, v)
	}
	if got, n := a.quantiles(noon, 0.5); n != 0 || !math.IsNaN(got[0]) {
		t.Errorf("got %g of %d, want NaN of 0", got[0], n)
	}
}

func TestValuesOutsideTheRangeCountAtItsEdges(t *testing.T) {
	var a aged
	a.add(noon, 1e-9)
	a.add(noon, 1e12)
	got, n := a.quantiles(noon, 0.5, 1)
	if n != 2 || got[0] > bucketMin*bucketGrowth || got[1] < 1e6/bucketGrowth {
		t.Errorf("got %g and %g of %d, want the edges %g and 1e6 of 2", got[0], got[1], n, bucketMin)
	}
}

func TestQuantilesForget(t *testing.T) {
	var a aged
	a.add(noon, 10)
	a.add(noon.Add(2*time.Hour), 100)
	for _, c := range []struct {
		after  time.Duration
		median float64
		count  uint64
	}{
		{2 * time.Hour, 10, 2},                     // both; the lower of two is the median
		{2*time.Hour + 59*time.Minute, 10, 2},      // still within the window
		{3*time.Hour + time.Minute, 100, 1},        // the first is forgotten
		{5*time.Hour + time.Minute, math.NaN(), 0}, // both are
	} {
		got, n := a.quantiles(noon.Add(c.after), 0.5)
		if n != c.count || math.IsNaN(got[0]) != math.IsNaN(c.median) || math.Abs(got[0]/c.median-1) > 0.011 {
			t.Errorf("after %s: got %.4g of %d, want %.4g of %d", c.after, got[0], n, c.median, c.count)
		}
	}
	// The slot of the first is used again, and holds nothing of it.
	a.add(noon.Add(3*time.Hour), 1000)
	if got, n := a.quantiles(noon.Add(3*time.Hour), 0, 1); n != 2 || math.Abs(got[0]/100-1) > 0.011 {
		t.Errorf("got %.4g of %d, want 100 of 2", got[0], n)
	}
}

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
