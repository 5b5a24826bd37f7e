package profiles

import "math"

// rising is another shape of a step without prompts, for the bound alone:
//
//	(A + B·√n + C·n + E·n²)·exp(r(n)),  all ≥ 0, in seconds
//
// The fit is straight or flattens. An engine whose drafts are taken less under load, or
// that computes more than it reads, steepens: there the fit is too quick at the highest
// n, where bins are thin and are hardly believed against it. Levels that were learned at
// two speeds steepen as well, so this shape may lower the bound and nothing else. The
// zero value is as quick as can be.
type rising struct {
	theta [4]float64 // A, B, C, E
	r     knots      // what bins say against it, as far as they are believed
}

// leastBetter is by how much E has to lower the sum of squares, each over its variance:
// what one more unknown has to be worth (Akaike, 1974).
const leastBetter = 2.0

// rising fits that shape to what the bins say of a step without prompts: f(n)·exp(r),
// relative to itself, with weights 1/(bend² + e²). Weak rows at hi, the highest visited n,
// and at half of each hold it to f, where bins do not tell. Without E nothing is said that
// the fit does not say, so where E is 0, or by chance no less, it is the zero value.
func (s *Sums) rising(f Fit, against *residuals, hi int) (x rising) {
	var g gram
	for i, q := range against {
		if q = q.held(s.bins[i].K); q.says() && s.bins[i].K >= visitedSteps {
			n := math.Exp(q.x)
			t := f.tpot(n, 0) * math.Exp(q.r)
			g.add([4]float64{1, math.Sqrt(n), n, n * n}, t, 1/(t*t*(bend*bend+q.e*q.e)))
		}
	}
	for n := float64(hi); n > 1; n /= 2 {
		t := f.tpot(n, 0)
		g.add([4]float64{1, math.Sqrt(n), n, n * n}, t, priorSteps/(t*t*stepError*stepError))
	}
	if x.theta = g.solve(); !(x.theta[3] > 0) || g.better(x.theta, g.without(3).solve()) < leastBetter {
		return rising{}
	}
	other := *against
	for i := range other {
		q := &other[i]
		n := math.Exp(q.x)
		q.r += math.Log(f.tpot(n, 0) / x.plain(n))
	}
	x.r = s.corrections(&other)
	return x
}

func (x *rising) plain(n float64) float64 {
	return x.theta[0] + x.theta[1]*math.Sqrt(n) + x.theta[2]*n + x.theta[3]*n*n
}

// with returns the speed at n by that shape, in tokens/s, at the prompts that n streams
// bring; +Inf of the zero value. Above the support the shape goes on as the fit does.
func (c *Curve) with(x rising, n int) float64 {
	if x.theta[3] == 0 {
		return math.Inf(1)
	}
	at := float64(n)
	m := min(at, float64(c.hi))
	t := x.plain(m) * math.Exp(x.r.at(math.Log(m))) * c.fit.tpot(at, 0) / c.fit.tpot(m, 0)
	return 1 / min(max(t+c.fit.D*at*c.rho, minTPOT), maxTPOT)
}
