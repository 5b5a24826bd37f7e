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

// residual is what one bin says against the fit, at ln n = x: r in ln, and e the
// standard error of the bin, relative.
type residual struct{ x, r, e float64 }

// against returns what a bin says against the fit of time without prompts, r in ln,
// and its standard error e, relative. With f(n) = A + B·√n + C·n seconds of a step
// at the mean n of the bin, it is the surer of
//
//	r = ln(T°/(K°·f(n)))                    e = quietError, else error·√(K/K°)
//	r = ln((S − D·PN)/(A·Y + B·R + C·N))    e = error·S/(S − D·PN)
//
// T° seconds and K° steps of quiet time, from ownSteps on; S stream-seconds, Y, R,
// N tokens, and tokens times √n and n, PN prompt tokens times n of all time. noise
// is as in error. ok is false where the bin says nothing.
func (b *binSums) against(f Fit, noise float64) (r, e float64, ok bool) {
	n, ok := b.meanN()
	plain, rest := f.A*b.Y+f.B*b.R+f.C*b.N, max(b.S-f.D*max(b.PN, 0), 0)
	if !ok || !(plain > 0) || !(b.S > 0) {
		return 0, 0, false
	}
	own := b.error(noise)
	quiet, told := b.quietError()
	if !told {
		quiet = own * math.Sqrt(b.K/b.Kq)
	}
	e = own * b.S / rest
	if step := f.tpot(n, 0); b.Kq >= ownSteps && b.Tq > 0 && step > 0 && quiet < e {
		return math.Log(b.Tq / (b.Kq * step)), quiet, true
	}
	return math.Log(rest / plain), e, rest > 0
}

// corrections learns r(n), in ln: what each bin says against the fit, times
// τ²/(τ² + e²). τ is how far the curve bends away from the fit: see bendOf.
func corrections(s *Sums, f Fit) knots {
	var list, sure []residual
	noise := s.stepNoise()
	for i := range s.bins {
		b := &s.bins[i]
		r, e, ok := b.against(f, noise)
		if !ok {
			continue
		}
		n, _ := b.meanN()
		limit := min(minResidual+b.K/residualGrowth, maxResidual)
		q := residual{math.Log(n), min(max(r, -limit), limit), e}
		if list = append(list, q); !b.thin() {
			sure = append(sure, q)
		}
	}
	bent := bendOf(sure)
	var k knots
	for _, q := range list {
		k.add(q.x, q.r*bent/(bent+q.e*q.e))
	}
	return k
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
		w := 1 / (bend*bend + q.e*q.e)
		w *= w
		if more := w * (q.r*q.r - q.e*q.e); w > 0 && finite(more) {
			sum += more
			weights += w
		}
	}
	if !(weights > 0) {
		return 0
	}
	return sum / weights
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
