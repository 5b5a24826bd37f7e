package sim

import (
	"math"
	"strings"
	"testing"
)

func near(got, want, relative float64) bool { return math.Abs(got-want) <= relative*math.Abs(want) }

// h200 is llama-3.1-70b/h200/vllm.
var h200 = []Point{{4, 126.125}, {8, 119.237}, {16, 102.593}, {32, 90.625}, {64, 73.622}}

func TestStepSecondsOfTheLaw(t *testing.T) {
	m := Model{A: 0.010, B: 0.002, C: 0.0005, D: 0.0001}
	for _, c := range []struct {
		n    int
		p    float64
		want float64
	}{
		{1, 0, 0.0125},
		{4, 0, 0.016},   // 10 + 2·2 + 0.5·4 ms
		{16, 0, 0.026},  // 10 + 2·4 + 0.5·16
		{16, 50, 0.031}, // and 0.1·50
		{0, 50, 0.0175}, // prefill alone reads the weights, as for one
		{0, 0, 0},
	} {
		if got := m.StepSeconds(c.n, c.p); !near(got, c.want, 1e-12) {
			t.Errorf("StepSeconds(%d, %v) = %v s, want %v s", c.n, c.p, got, c.want)
		}
	}
}

func TestStepSecondsOfATable(t *testing.T) {
	m := Model{Table: h200, D: 1e-4}
	for _, p := range h200 {
		if got, want := m.StepSeconds(p.N, 0), 1/p.TPS; !near(got, want, 1e-12) {
			t.Errorf("StepSeconds(%d) = %v s, want the table's %v s", p.N, got, want)
		}
	}
	if got, want := m.StepSeconds(8, 100), 1/119.237+0.01; !near(got, want, 1e-12) {
		t.Errorf("StepSeconds(8, 100) = %v s, want %v s", got, want)
	}
	// Half way in log n the time is the geometric mean: n = 32·√(64/32) is no
	// whole number, but 4·√(16/4) = 8 is, so a table without the 8 must give
	// √(1/126.125 · 1/102.593).
	m.Table = []Point{h200[0], h200[2]}
	if got, want := m.StepSeconds(8, 0), math.Sqrt(1/126.125/102.593); !near(got, want, 1e-12) {
		t.Errorf("StepSeconds(8) between 4 and 16 = %v s, want %v s", got, want)
	}
}

func TestTheTableIsContinuedByItsFit(t *testing.T) {
	// Points on a law are continued by that law, on both sides.
	law := rootLaw{0.010, 0.002, 0.0005}
	var m Model
	for _, n := range []int{4, 8, 16, 32, 64} {
		m.Table = append(m.Table, Point{N: n, TPS: 1 / law.at(n)})
	}
	for _, n := range []int{1, 2, 3, 65, 128, 256} {
		if got, want := m.StepSeconds(n, 0), law.at(n); !near(got, want, 1e-6) {
			t.Errorf("StepSeconds(%d) = %v s, want the law's %v s", n, got, want)
		}
	}
	// Points off it: continuous at the ends, and slower with more sequences.
	m.Table = h200
	fit := fitRootLaw(h200)
	for _, c := range []struct{ n, end int }{{1, 4}, {3, 4}, {65, 64}, {256, 64}} {
		want := fit.at(c.n) / fit.at(c.end) * m.StepSeconds(c.end, 0)
		if got := m.StepSeconds(c.n, 0); !near(got, want, 1e-12) {
			t.Errorf("StepSeconds(%d) = %v s, want %v s", c.n, got, want)
		}
	}
	for n := 2; n <= 300; n++ {
		if m.StepSeconds(n, 0) < m.StepSeconds(n-1, 0) {
			t.Fatalf("a step of %d is quicker than one of %d", n, n-1)
		}
	}
}

func TestFitIsTheBestNonNegativeOne(t *testing.T) {
	// Convex times: a free fit would take a negative √n term.
	table := []Point{{1, 1 / 0.011}, {10, 1 / 0.021}, {20, 1 / 0.042}, {40, 1 / 0.095}}
	got := fitRootLaw(table)
	if got.a < 0 || got.b < 0 || got.c < 0 {
		t.Fatalf("fit %+v has a negative term", got)
	}
	// No law near it, on a grid of non-negative ones, may be better.
	best := relativeError(table, got)
	for _, da := range []float64{-1e-4, 0, 1e-4} {
		for _, db := range []float64{0, 1e-4, 5e-4} {
			for _, dc := range []float64{-1e-4, 0, 1e-4} {
				other := rootLaw{got.a + da, got.b + db, got.c + dc}
				if e := relativeError(table, other); other.a >= 0 && other.c >= 0 && e < best-1e-9 {
					t.Errorf("law %+v has error %v, the fit %+v has %v", other, e, got, best)
				}
			}
		}
	}
	if got := fitRootLaw([]Point{{8, 50}}); !near(got.at(200), 0.02, 1e-9) {
		t.Errorf("a single point continues as %+v, want a constant 20 ms", got)
	}
}

func TestModelCheck(t *testing.T) {
	for want, m := range map[string]Model{
		"":               {Table: h200},
		"neither":        {D: 1},
		"Model.B":        {A: 1, B: math.NaN()},
		"Model.D":        {A: 1, D: -1},
		"after 4":        {Table: []Point{{4, 10}, {4, 9}}},
		"0 streams":      {Table: []Point{{0, 10}}},
		"at 0 tokens":    {Table: []Point{{1, 0}}},
		"at +Inf tokens": {Table: []Point{{1, math.Inf(1)}}},
	} {
		err := m.check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("check of %+v = %v, want %q", m, err, want)
		}
	}
}
