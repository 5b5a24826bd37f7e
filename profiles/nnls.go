package profiles

import "math"

// gram holds the normal equations of a least-squares problem in up to four
// unknowns: m = Σ w·x·xᵀ and v = Σ w·x·y. A column whose diagonal is 0 does not
// take part.
type gram struct {
	m [4][4]float64
	v [4]float64
}

// add adds a row with weight w.
func (g *gram) add(x [4]float64, y, w float64) {
	for i := range x {
		for j := range x {
			g.m[i][j] += w * x[i] * x[j]
		}
		g.v[i] += w * x[i] * y
	}
}

// without is g without the unknown k.
func (g gram) without(k int) *gram {
	for i := range g.m {
		g.m[i][k], g.m[k][i] = 0, 0
	}
	return &g
}

// better is by how much θ has a smaller sum of squares than other. Both are solutions,
// perhaps of fewer unknowns.
func (g *gram) better(theta, other [4]float64) (by float64) {
	for i := range theta {
		by += g.v[i] * (theta[i] - other[i])
	}
	return by
}

// minPivot is how much of a column, relative to its length, has to be new
// beside the others; less is taken for collinear, and a smaller support does
// as well.
const minPivot = 1e-9

// solve returns the θ ≥ 0 that minimises Σ w·(y − x·θ)². With four unknowns
// the 15 supports can be tried one by one: the best of those whose unrestricted
// solution is positive is the solution.
func (g *gram) solve() (theta [4]float64) {
	best := 0.0 // the objective θᵀmθ − 2vᵀθ of θ = 0
	for support := 1; support < 16; support++ {
		t, ok := g.solveOn(support)
		if !ok {
			continue
		}
		// At the solution on a support mθ = v there, so the objective is −vᵀθ.
		var objective float64
		for i := range t {
			objective -= g.v[i] * t[i]
		}
		if objective < best {
			best, theta = objective, t
		}
	}
	return theta
}

// solveOn solves for the unknowns of a support (bit i = unknown i), the others
// being 0. ok is false when it has no unique solution, or one that is negative
// somewhere.
func (g *gram) solveOn(support int) (theta [4]float64, ok bool) {
	var at [4]int
	size := 0
	for i := range theta {
		if support&(1<<i) == 0 {
			continue
		}
		if !(g.m[i][i] > 0) {
			return theta, false
		}
		at[size] = i
		size++
	}
	// Cholesky of the matrix scaled to a unit diagonal: the columns differ by
	// orders of magnitude (1 against prompt tokens per step).
	var l [4][4]float64
	var scale, z [4]float64
	for i := range size {
		scale[i] = math.Sqrt(g.m[at[i]][at[i]])
	}
	for i := range size {
		for j := 0; j <= i; j++ {
			sum := g.m[at[i]][at[j]] / (scale[i] * scale[j])
			for k := range j {
				sum -= l[i][k] * l[j][k]
			}
			if i != j {
				l[i][j] = sum / l[j][j]
				continue
			}
			if !(sum > minPivot) {
				return theta, false
			}
			l[i][i] = math.Sqrt(sum)
		}
		z[i] = g.v[at[i]] / scale[i]
		for k := range i {
			z[i] -= l[i][k] * z[k]
		}
		z[i] /= l[i][i]
	}
	for i := size - 1; i >= 0; i-- {
		for k := i + 1; k < size; k++ {
			z[i] -= l[k][i] * z[k]
		}
		z[i] /= l[i][i]
		x := z[i] / scale[i]
		if !(x >= 0) || math.IsInf(x, 0) {
			return theta, false
		}
		theta[at[i]] = x
	}
	return theta, true
}
