package profiles

// maxLoad is more prompt tokens than any step takes.
const maxLoad = 1e12

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

// bendOf returns τ², the variance in ln of what a curve has and the fit has not:
// bend² at least, and more where the bins differ from the fit by more than their
// errors. Each r² is τ² + e² on average, and varies by as much:
//
//	τ² = max(bend², Σ w·(r² − e²)/Σ w), w = 1/(bend² + e²)²
func bendOf(bins []residual) float64 { return max(bend*bend, variance(bins)) }

// variance returns the second term of that; it may be below 0.
func variance(bins []residual) float64 {
	var sum, weights float64
	for _, q := range bins {
		if w := q.weight(); w > 0 {
			sum += w * q.beyond()
			weights += w
		}
	}
	if !(weights > 0) {
		return 0
	}
	return sum / weights
}

// weight is w; it is 0 of what is no number.
func (q residual) weight() float64 {
	w := 1 / (bend*bend + q.e*q.e)
	if w *= w; !finite(w * q.beyond()) {
		return 0
	}
	return w
}

// beyond is what of r² is not by chance.
func (q residual) beyond() float64 { return q.r*q.r - q.e*q.e }

// meanN returns the mean n of the steps of a bin; ok is false when it has
// none.
func (b *binSums) meanN() (n float64, ok bool) {
	if !(b.K > 0) || !(b.Y > 0) {
		return 1, false
	}
	n = max(b.Y/b.K, 1)
	return n, finite(n)
}
