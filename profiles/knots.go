package profiles

import "math"

const (
	// promptBend is how much the usual prompt load bends away from a line in n,
	// relative to it, as a standard deviation. promptVariance is the variance of
	// one prompt's size, with that of how many come: relative to its mean.
	promptBend     = 0.2
	promptVariance = 2

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

// promptCurve is p̄(n), the usual prompt load at n: a line through the bins,
// times what each bin says against it, shrunk.
type promptCurve struct {
	q0, q1 float64
	ratio  knots // of the bin to the line, minus 1
}

// at returns p̄(n).
func (p *promptCurve) at(n float64) float64 {
	return min(p.q0+p.q1*n, maxLoad) * (1 + p.ratio.at(math.Log(n)))
}

// usualPrompts learns p̄(n) from the bins.
func usualPrompts(s *Sums) promptCurve {
	var g gram
	for i := range s.bins {
		if n, ok := s.bins[i].meanN(); ok {
			b := &s.bins[i]
			g.add([4]float64{1, n}, max(b.P, 0)/b.K, b.K)
		}
	}
	theta := g.solve()
	p := promptCurve{q0: theta[0], q1: theta[1]}
	mean := s.meanPrompt()
	for i := range s.bins {
		b := &s.bins[i]
		n, ok := b.meanN()
		line := min(p.q0+p.q1*n, maxLoad)
		if !ok || !(line > 0) {
			continue
		}
		// Expected prompts of the bin: its ratio is off by some √(2/prompts).
		prompts := line * b.K / mean
		ratio := min(max(b.P, 0)/b.K/line, maxLoad) - 1
		p.ratio.add(math.Log(n), ratio*promptBend*promptBend/(promptBend*promptBend+promptVariance/prompts))
	}
	return p
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

// meanPrompt returns the tokens of a prompt that have to be computed.
func (s *Sums) meanPrompt() float64 {
	if f := &s.firsts; f.N >= 1 && f.X > 0 {
		return f.X / f.N
	}
	return nominalPrompt
}
