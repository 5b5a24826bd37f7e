package profiles

import (
	"math"
	"testing"
)

// The fit cannot draw an engine that is fast up to 4 and a third as fast from 5
// on. Its bins differ from the fit by far more than 3 %, and are believed.
func TestBinsThatBendFarAreBelieved(t *testing.T) {
	quick, slow := Fit{A: 0.01}, Fit{A: 0.03}
	s := sumsOf(quick, even(400, 1, 2, 3, 4), flat)
	add := sumsOf(slow, even(400, 5, 6, 7, 8), flat)
	s.Add(Delta{Sums: add}, 0)
	for i := range s.bins {
		if b := &s.bins[i]; b.W > 0 { // each step is off by 60 %: 5 % in all
			b.YY *= 1.02
		}
	}
	c := newCurve(&s, nil, 0.1)
	for n := 1; n <= 8; n++ {
		want := 1 / quick.A
		if n > 4 {
			want = 1 / slow.A
		}
		if off := math.Abs(c.TPS(n)/want - 1); off > 0.04 {
			t.Errorf("TPS(%d) is %.1f, want %.1f within 4 %%", n, c.TPS(n), want)
		}
	}
}

func TestBendIsNoLessThanUsual(t *testing.T) {
	for _, test := range []struct {
		name string
		bins []residual
		want float64
	}{
		{"no bins", nil, bend * bend},
		{"bins within their errors", []residual{{0, 0.02, 0.05}, {1, -0.03, 0.05}}, bend * bend},
		{"bins that say nothing", []residual{{0, 2, math.Inf(1)}}, bend * bend},
		{"bins that know", []residual{{0, 0.2, 0}, {1, -0.2, 0}, {2, 1, math.Inf(1)}}, 0.04},
	} {
		if got := bendOf(test.bins); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
