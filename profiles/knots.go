package profiles

import "math"

const (
	// maxLoad is more prompt tokens than any step takes.
	maxLoad = 1e12

	// maxResidual bounds what one bin may say against the fit, in ln. A thin
	// bin may say less, minResidual + K/residualGrowth: one stall of seconds
	// among ten steps must not slow the whole curve down.
	maxResidual    = 3.0
	minResidual    = 0.5
	residualGrowth = 30
)

// knots is a function of ln n, linear between its knots and constant outside.
// The zero value is 0 everywhere.
type knots struct{ x, y []float64 }

// add appends a knot; x grows.
func (k *knots) add(x, y float64) {
	if len(k.x) > 0 && x <= k.x[len(k.x)-1] {
		return
	}
	k.x, k.y = append(k.x, x), append(k.y, y)
}

// at returns the value at x.
func (k *knots) at(x float64) float64 {
	last := len(k.x) - 1
	switch {
	case last < 0:
		return 0
	case x <= k.x[0]:
		return k.y[0]
	case x >= k.x[last]:
		return k.y[last]
	}
	i := 1
	for k.x[i] < x {
		i++
	}
	return k.y[i-1] + (k.y[i]-k.y[i-1])*(x-k.x[i-1])/(k.x[i]-k.x[i-1])
}

// corrections learns r(n): the stream-seconds of each bin against those that
// the fit expects of what was decoded and prefilled there.
func corrections(s *Sums, f Fit) knots {
	var k knots
	noise := s.stepNoise()
	for i := range s.bins {
		b := &s.bins[i]
		n, ok := b.meanN()
		if !ok {
			continue
		}
		expected := f.expect(b)
		if !(expected > 0) || !(b.S > 0) {
			continue
		}
		limit := min(minResidual+b.K/residualGrowth, maxResidual)
		r := min(max(math.Log(b.S/expected), -limit), limit)
		k.add(math.Log(n), r*believed(b.error(noise)))
	}
	return k
}

// meanN returns the mean n of the steps of a bin; ok is false when it has
// none.
func (b *binSums) meanN() (n float64, ok bool) {
	if !(b.K > 0) || !(b.Y > 0) {
		return 1, false
	}
	n = max(b.Y/b.K, 1)
	return n, finite(n)
}
