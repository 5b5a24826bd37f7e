package profiles

import (
	"math"
	"math/rand"
	"testing"
)

func TestSolveByHand(t *testing.T) {
	rows := func(of ...[5]float64) (g gram) {
		for _, r := range of {
			g.add([4]float64(r[:4]), r[4], 1)
		}
		return g
	}
	for _, test := range []struct {
		name string
		gram gram
		want [4]float64
	}{
		{"nothing", gram{}, [4]float64{}},
		{"one level", rows([5]float64{1, 0, 0, 0, 3}, [5]float64{1, 0, 0, 0, 5}), [4]float64{4}},
		{"a line", rows([5]float64{1, 0, 1, 0, 5}, [5]float64{1, 0, 3, 0, 9}), [4]float64{3, 0, 2}},
		// 10 − 2x: falls, so flat is the best that is allowed.
		{"a falling line", rows([5]float64{1, 0, 1, 0, 8}, [5]float64{1, 0, 3, 0, 4}), [4]float64{6}},
		// 2x − 1: through the origin instead, Σxy/Σx² = (1 + 9)/(1 + 9).
		{"a negative offset", rows([5]float64{1, 0, 1, 0, 1}, [5]float64{1, 0, 3, 0, 5}), [4]float64{0, 0, 1.6}},
		{"exact", rows([5]float64{1, 1, 1, 0, 6}, [5]float64{1, 2, 4, 1, 15}, [5]float64{1, 3, 9, 0, 34}, [5]float64{1, 4, 16, 2, 61}), [4]float64{1, 1.5, 3.5, 0}},
	} {
		got := test.gram.solve()
		if test.name == "exact" {
			// Checked below against the search; here only that the rows are met.
			if r := residual(&test.gram, got); r > residual(&test.gram, test.want)+1e-9 {
				t.Errorf("%s: %v is worse than %v", test.name, got, test.want)
			}
			continue
		}
		for i := range got {
			if math.Abs(got[i]-test.want[i]) > 1e-9 {
				t.Errorf("%s: %v, want %v", test.name, got, test.want)
				break
			}
		}
	}
}

// residual is the objective, without its constant.
func residual(g *gram, theta [4]float64) (r float64) {
	for i := range theta {
		for j := range theta {
			r += theta[i] * g.m[i][j] * theta[j]
		}
		r -= 2 * g.v[i] * theta[i]
	}
	return r
}

// TestSolveAgainstSearch compares with coordinate descent run to the end, and
// checks the conditions of Karush, Kuhn and Tucker.
func TestSolveAgainstSearch(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 100 {
		truth := [4]float64{}
		for i := range truth {
			truth[i] = rng.NormFloat64() // a half of them negative: not allowed
		}
		var g gram
		for range 20 {
			n := 1 + 40*rng.Float64()
			x := [4]float64{1, math.Sqrt(n), n / 10, rng.ExpFloat64()}
			y := rng.NormFloat64()
			for i := range x {
				y += x[i] * truth[i]
			}
			g.add(x, y, rng.ExpFloat64())
		}
		got := g.solve()
		var search [4]float64
		for range 20000 {
			for i := range search {
				slope := g.v[i]
				for j := range search {
					slope -= g.m[i][j] * search[j]
				}
				search[i] = max(search[i]+slope/g.m[i][i], 0)
			}
		}
		if a, b := residual(&g, got), residual(&g, search); a > b+1e-6*(1+math.Abs(b)) {
			t.Fatalf("solve finds %v (%.9f), the search %v (%.9f)", got, a, search, b)
		}
		for i := range got {
			slope := g.v[i]
			for j := range got {
				slope -= g.m[i][j] * got[j]
			}
			if got[i] < 0 || slope > 1e-6*(1+g.v[i]*g.v[i]) || got[i] > 0 && math.Abs(slope) > 1e-6*(1+math.Abs(g.v[i])) {
				t.Fatalf("unknown %d is %v with slope %v: no minimum", i, got[i], slope)
			}
		}
	}
}
