package sim

import "math"

// rootLaw is a step time of A + B·√n + C·n seconds.
type rootLaw struct{ a, b, c float64 }

func (l rootLaw) at(n int) float64 {
	return l.a + l.b*math.Sqrt(float64(n)) + l.c*float64(n)
}

// fitRootLaw fits a non-negative law to the step times 1/TPS of a table, by
// least squares of the relative error. Which of the three terms a best
// non-negative fit uses is not known beforehand, so all seven choices are
// solved and the best one without a negative coefficient wins; on a tie the
// one with fewer terms, so that a single point continues as a constant.
func fitRootLaw(table []Point) rootLaw {
	var best rootLaw
	bestError := math.Inf(1)
	for _, terms := range [][]int{{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}} {
		if len(terms) > len(table) {
			break
		}
		law, ok := fitTerms(table, terms)
		if !ok {
			continue
		}
		// The margin keeps rounding from choosing among equal fits.
		if e := relativeError(table, law); e < bestError-1e-12 {
			best, bestError = law, e
		}
	}
	return best
}

// relativeError is Σ (law/y − 1)² over the table, y = 1/TPS.
func relativeError(table []Point, law rootLaw) float64 {
	var sum float64
	for _, p := range table {
		e := law.at(p.N)*p.TPS - 1
		sum += e * e
	}
	return sum
}

// fitTerms solves the normal equations of the relative error for the given
// terms of 1, √n, n; it fails when they are singular or a coefficient is
// negative.
func fitTerms(table []Point, terms []int) (rootLaw, bool) {
	var m [3][4]float64 // normal equations, right-hand side last
	k := len(terms)
	for _, p := range table {
		all := [3]float64{1, math.Sqrt(float64(p.N)), float64(p.N)}
		var row [3]float64
		for i, t := range terms {
			row[i] = all[t] * p.TPS // divided by y, so the right-hand side is 1
		}
		for i := range k {
			for j := range k {
				m[i][j] += row[i] * row[j]
			}
			m[i][3] += row[i]
		}
	}
	x, ok := solve(m, k)
	if !ok {
		return rootLaw{}, false
	}
	var coefficient [3]float64
	for i, t := range terms {
		if x[i] < 0 {
			return rootLaw{}, false
		}
		coefficient[t] = x[i]
	}
	return rootLaw{coefficient[0], coefficient[1], coefficient[2]}, true
}

// solve eliminates the first k rows and columns of m (Gauss-Jordan with
// pivots by size); it fails when they are singular.
func solve(m [3][4]float64, k int) (x [3]float64, ok bool) {
	for col := range k {
		pivot := col
		for r := col + 1; r < k; r++ {
			if math.Abs(m[r][col]) > math.Abs(m[pivot][col]) {
				pivot = r
			}
		}
		m[col], m[pivot] = m[pivot], m[col]
		if math.Abs(m[col][col]) < 1e-300 {
			return x, false
		}
		for r := range k {
			if r == col {
				continue
			}
			f := m[r][col] / m[col][col]
			for c := col; c < 4; c++ {
				m[r][c] -= f * m[col][c]
			}
		}
	}
	for i := range k {
		x[i] = m[i][3] / m[i][i]
	}
	return x, true
}
