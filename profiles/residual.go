package profiles

import "math"

const (
	// maxResidual bounds what one bin may say against the fit, in ln. A thin
	// bin may say less, minResidual + K/residualGrowth: one stall of seconds
	// among ten steps must not slow the whole curve down.
	maxResidual    = 3.0
	minResidual    = 0.5
	residualGrowth = 30

	// quietSteps is how many steps of quiet time a bin needs for that to be asked.
	quietSteps = 12

	// promptDoubt is by how much, relative, a prompt token may cost something else at
	// one n than at all n together. The fit is of all time: where it takes too much
	// for prompts it leaves too little for quiet time.
	promptDoubt = 0.15

	// reach and half of it, an octave and half of one, are within what ln n bins resemble
	// each other.
	reach = math.Ln2
)

// residual is what one bin says against the fit, at ln n = x: r in ln, and e the
// standard error of that, relative; +Inf where it says nothing.
type residual struct{ x, r, e float64 }

// nothing is what a bin says that has nothing to say.
func nothing(x float64) residual { return residual{x: x, e: math.Inf(1)} }

// says reports whether the bin says anything.
func (q residual) says() bool { return finite(q.e) && finite(q.r) }

// held is q within what a bin of so many steps may say.
func (q residual) held(steps float64) residual {
	limit := min(minResidual+steps/residualGrowth, maxResidual)
	q.r = min(max(q.r, -limit), limit)
	return q
}

// nearness is the weight, 0 to 1, of what is at ln n = y for what is at x.
func nearness(x, y, within float64) float64 {
	d := (x - y) / within
	return 1 / (1 + d*d)
}

// residuals are what the bins say against one fit.
type residuals [NumBins]residual

// against returns what each bin says against f of time without prompts: the surer of
// all its time and its quiet time. With f(n) = A + B·√n + C·n seconds of a step at
// the mean n of the bin,
//
//	r = ln((S − D·PN)/(A·Y + B·R + C·N))    all time, see allTime
//	r = ln(T°/(K°·f(n)))                    quiet time, see quietTime
//
// Both are of the same engine. Where prompts cost what D·p says they differ by chance
// alone. By what they differ within an octave beyond that, quiet time is doubted: it
// tells less of what streams get when prompts are prefilled as usual.
func (s *Sums) against(f Fit) *residuals {
	var all, quiet residuals
	apart := make([]residual, 0, NumBins) // all time less quiet time
	step, still := s.stepNoise(), s.quietNoise()
	for i := range s.bins {
		b := &s.bins[i]
		all[i] = b.allTime(f, step)
		quiet[i] = b.quietTime(f, still)
		if a, q := all[i], quiet[i]; a.says() && q.says() {
			// Quiet time is a part of all time: what they differ by is of the rest.
			e := math.Sqrt(max(a.e*a.e-q.e*q.e, a.e*a.e/4))
			apart = append(apart, residual{a.x, a.r - q.r, e})
		}
	}
	for i := range all {
		q := quiet[i]
		if q.says() {
			q.e = math.Sqrt(q.e*q.e + doubt(apart, q.x))
		}
		if q.says() && q.e < all[i].e {
			all[i] = q
		}
	}
	return &all
}

// doubt returns the square of the mean of the list near x, beyond twice what chance
// makes of it, by their errors and by how far they are apart:
//
//	max(m² − 2·Σ w²·max(e, |r − m|)²/(Σ w)², 0), m = Σ w·r/Σ w, w = nearness/(bend² + e²)
func doubt(list []residual, x float64) float64 {
	var w [NumBins]float64
	var sum, weights, chance float64
	for i, q := range list {
		w[i] = nearness(x, q.x, reach) / (bend*bend + q.e*q.e)
		sum += w[i] * q.r
		weights += w[i]
	}
	if !(weights > 0) {
		return 0
	}
	mean := sum / weights
	for i, q := range list {
		off := max(q.e, math.Abs(q.r-mean)) * w[i] / weights
		chance += 2 * off * off
	}
	return max(mean*mean-chance, 0)
}

// allTime returns what all the time of the bin says: S stream-seconds, of which D·PN
// went to prompts, for Y, R, N tokens, tokens times √n and n. step is the variance of
// a step, relative, as in error. Where nearly all of its time went to prompts the rest
// is no more than what D is off by, there:
//
//	e² = (e of Y/S·S/(S − D·PN))² + (promptDoubt·D·PN/(S − D·PN))²
func (b *binSums) allTime(f Fit, step float64) residual {
	n, ok := b.meanN()
	x := math.Log(n)
	prompts := f.D * max(b.PN, 0)
	plain, rest := f.A*b.Y+f.B*b.R+f.C*b.N, b.S-prompts
	if !ok || !(plain > 0) || !(rest > 0) {
		return nothing(x)
	}
	return residual{x, math.Log(rest / plain), math.Hypot(b.error(step)*b.S, promptDoubt*prompts) / rest}
}

// quietTime returns what its quiet time says: T° seconds for K° steps. still is what
// one of these varies by, by n. Its windows tell its error where they are many, and
//
//	e² = max(e of its windows, √(still/K°))² + (promptDoubt·D·PN/(S − D·PN))²
//
// where they are few and may agree by chance.
func (b *binSums) quietTime(f Fit, still noises) residual {
	n, ok := b.meanN()
	x := math.Log(n)
	t := f.tpot(n, 0)
	e, told := b.quietError()
	if !ok || !told || b.Kq < quietSteps || !(t > 0) {
		return nothing(x)
	}
	if b.thinQuiet() {
		prompts := f.D * max(b.PN, 0)
		e = math.Hypot(max(e, math.Sqrt(still.at(x)/b.Kq)), promptDoubt*prompts/max(b.S-prompts, 0))
	}
	return residual{x, math.Log(b.Tq / (b.Kq * t)), e}
}

// corrections returns r(n), in ln: what each bin says against the fit, times
// τ²/(τ² + e²). τ is how far the curve bends away from the fit: see bendOf.
func (s *Sums) corrections(against *residuals) knots {
	var list, sure []residual
	for i, q := range against {
		if b := &s.bins[i]; q.says() {
			q = q.held(b.K)
			if list = append(list, q); !b.thin() {
				sure = append(sure, q)
			}
		}
	}
	bent := bendOf(sure)
	var k knots
	for _, q := range list {
		k.add(q.x, q.r*bent/(bent+q.e*q.e))
	}
	return k
}

// unexplained returns, for each bin, the error of the curve once the bin is believed
// as far as e allows, relative:
//
//	τ·e/√(τ² + e²), τ² = max(bend², Σ w·(r² − e²)/Σ w), w = nearness/(bend² + e²)²
//
// which is less than e, and less than τ: by how much the bins within half an octave
// differ from the fit beyond their errors. So where neighbours say that the fit is
// off, a bin that says little is doubted by as much. Where nobody was, the curve goes
// from one neighbour to the other, and r is what they say against that.
func (s *Sums) unexplained(against *residuals, curve *knots) *[NumBins]float64 {
	fit, drawn := make([]weighed, 0, NumBins), make([]weighed, 0, NumBins)
	for i, q := range against {
		if q = q.held(s.bins[i].K); q.says() && q.weight() > 0 {
			fit = append(fit, q.weighed())
			q.r -= curve.at(q.x)
			drawn = append(drawn, q.weighed())
		}
	}
	var off [NumBins]float64
	for i := range off {
		list, e := fit, against[i].e
		if s.bins[i].K < visitedSteps {
			list, e = drawn, math.Inf(1)
		}
		t := bendNear(list, binMiddle[i])
		if off[i] = t; finite(e) {
			off[i] = t * e / math.Hypot(t, e)
		}
	}
	return &off
}

// binMiddle is ln n in the middle of each bin.
var binMiddle = func() (x [NumBins]float64) {
	for i := range x {
		lo, hi := BinBounds(i)
		x[i] = math.Log(float64(lo+hi) / 2)
	}
	return x
}()

// weighed is a residual by what bendNear asks of it for every bin.
type weighed struct{ x, weight, beyond float64 }

func (q residual) weighed() weighed { return weighed{q.x, q.weight(), q.beyond()} }

// bendNear returns τ near x.
func bendNear(list []weighed, x float64) float64 {
	var sum, weights float64
	for _, q := range list {
		w := q.weight * nearness(x, q.x, reach/2)
		sum += w * q.beyond
		weights += w
	}
	if !(weights > 0) {
		return bend
	}
	return math.Sqrt(max(bend*bend, sum/weights))
}
