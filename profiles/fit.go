package profiles

import "math"

// Fit is the seconds that a decode step takes, which gives each of the n streams in it
// one token. All coefficients are ≥ 0, in seconds:
//
//	TPOT(n, p) = A + B·√n + C·n + D·p
//
//	n  streams that decode, from 1 on
//	p  prompt tokens that are prefilled per decode step, from 0 on
//	A  a step for nobody: the weights are read once, however many share them
//	B  what published curves rise by at first, and less and less
//	C  each further stream: its keys and values are read in every step
//	D  each prompt token that is prefilled beside the step
type Fit struct{ A, B, C, D float64 }

// tpot returns the seconds per output token at n and prompt load p.
func (f Fit) tpot(n, p float64) float64 {
	return f.A + f.B*math.Sqrt(n) + f.C*n + f.D*p
}

// plausible reports whether f gives a speed at the centre of what it was fitted to.
func (f Fit) plausible(l centre) bool {
	t := f.tpot(l.n, l.p)
	return t > minTPOT && t < maxTPOT && f.D < maxTPOT
}

const (
	// priorSteps is the weight, in decode steps, of each of the weak rows that
	// give the fit a shape where nothing was visited.
	priorSteps = 4

	// priorPrompt is the prompt load, in tokens per step, of the weak row that
	// holds D, and usualCost the D it holds it to, in seconds: the median of the published
	// curves, whose D lie between 37 and 480 µs.
	priorPrompt = 15
	usualCost   = 100e-6

	// minTPOT and maxTPOT keep a speed finite and above 0, whatever the sums
	// say: a token takes from a tenth of a microsecond to eleven days.
	minTPOT = 1e-7
	maxTPOT = 1e6
)

// centre is where the evidence lies as a whole.
type centre struct {
	steps float64 // Σ K
	n     float64 // mean n of a step
	tpot  float64 // mean seconds of a step
	p     float64 // mean prompt tokens of a step
}

// centreOf returns that of s; ok is false when no curve can be drawn
// through it.
func centreOf(s *Sums) (l centre, ok bool) {
	var t, y, p float64
	for i := range s.bins {
		b := &s.bins[i]
		t, y, p, l.steps = t+b.T, y+b.Y, p+b.P, l.steps+b.K
	}
	if !(l.steps > 0) || !(t > 0) || !(y > 0) {
		return l, false
	}
	l.n, l.tpot, l.p = max(y/l.steps, 1), min(max(t/l.steps, minTPOT), maxTPOT), max(p/l.steps, 0)
	return l, finite(l.n) && finite(l.tpot) && finite(l.p)
}

// fit returns the (A, B, C, D) ≥ 0, in seconds, that minimise Σ w·(y − x·θ)² over
//
//	rows          x = (1, Q/K, Y/K, P/K)        y = T/K                w = K/ŷ²
//	weak rows     x = (1, √n, n, p·n/n₀)        y = y₀·(1+(n/n₀)^0.7)/2  w = priorSteps/y²
//	the price     x = (0, 0, 0, 1)              y = price              w = its info
//	a weak price  x = (0, 0, 0, priorPrompt)    y = priorPrompt·usualCost  w = priorSteps/y₀²
//
// with T seconds, K steps, Y = K·n tokens of all streams, Q = Σ tokens/√n = Σ √n over
// steps, and P prompt tokens of a row, which is of one window of 5 s or a few. Divided
// by K they are the means of a step. ŷ is the mean step that was predicted of the row,
// so that its error counts relative to it. n₀, y₀, p are the mean n, seconds and prompt
// tokens of a step of all evidence. info is 1/variance of price, in 1/s²: see price.
// solve tries each of the 15 sets of unknowns that may be above 0: see gram.
//
// Weak rows stand at ¼, ½, 2 and 4 times n₀: n^0.7 is the usual shape of published
// curves. A prior's points take their place. The slow copy adds what the rows have
// forgotten.
func (s *Sums) fit(l centre, pr *prior) Fit {
	g := s.rows.gram()
	s.addSlow(&g)
	if pr != nil {
		pr.addTo(&g, s)
	} else {
		for _, ratio := range [...]float64{0.25, 0.5, 2, 4} {
			n := l.n * ratio
			y := l.tpot * (1 + math.Pow(ratio, 0.7)) / 2
			g.add([4]float64{1, math.Sqrt(n), n, l.p * ratio}, y, priorSteps/(y*y))
		}
	}
	// What a prompt token costs shows only where the prompt load varies. Where
	// it hardly does, the noise of the windows would pick any D that goes with
	// n; this row, about what one window under a usual load says, keeps it where
	// prompts are usually prefilled.
	cost := usualCost
	if pr != nil && pr.cost > 0 {
		cost = pr.cost
	}
	g.add([4]float64{0, 0, 0, priorPrompt}, priorPrompt*cost, priorSteps/(l.tpot*l.tpot))
	theta := g.solve()
	if d, info := s.price(fitOf(theta)); info > 0 {
		g.add([4]float64{0, 0, 0, 1}, d, info)
		theta = g.solve()
	}
	return fitOf(theta)
}

func fitOf(theta [4]float64) Fit {
	return Fit{A: theta[0], B: theta[1], C: theta[2], D: theta[3]}
}
