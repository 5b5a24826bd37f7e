package profiles

import (
	"math"
	"math/rand"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

func TestSolveByHand(t *testing.T) {
	rows := func(of ...[5]float64) (g gram) {
		for _, r := range of {
			g.add([4]float64(r[:4]), r[4], 1)
		}
		return g
	}
	for _, test := range []struct {
		name string
		gram gram
		want [4]float64
	}{
		{"nothing", gram{}, [4]float64{}},
		{"one level", rows([5]float64{1, 0, 0, 0, 3}, [5]float64{1, 0, 0, 0, 5}), [4]float64{4}},
		{"a line", rows([5]float64{1, 0, 1, 0, 5}, [5]float64{1, 0, 3, 0, 9}), [4]float64{3, 0, 2}},
		// 10 − 2x: falls, so flat is the best that is allowed.
		{"a falling line", rows([5]float64{1, 0, 1, 0, 8}, [5]float64{1, 0, 3, 0, 4}), [4]float64{6}},
		// 2x − 1: through the origin instead, Σxy/Σx² = (1 + 9)/(1 + 9).
		{"a negative offset", rows([5]float64{1, 0, 1, 0, 1}, [5]float64{1, 0, 3, 0, 5}), [4]float64{0, 0, 1.6}},
		{"exact", rows([5]float64{1, 1, 1, 0, 6}, [5]float64{1, 2, 4, 1, 21}, [5]float64{1, 3, 9, 0, 34}, [5]float64{1, 4, 16, 2, 65}), [4]float64{1, 2, 3, 4}},
	} {
		got := test.gram.solve()
		for i := range got {
			if math.Abs(got[i]-test.want[i]) > 1e-9 {
				t.Errorf("%s: %v, want %v", test.name, got, test.want)
				break
			}
		}
	}
}

// TestSolveAgainstGonum compares with dense least squares by QR on the rows
// themselves, over every support: no positive solution on any of them may be
// better than that of solve, which sees the normal equations alone.
func TestSolveAgainstGonum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyRows(t)
		var g gram
		var scale float64 // Σ w·y²
		for _, r := range rows {
			g.add(r.x, r.y, r.w)
			scale += r.w * r.y * r.y
		}
		theta := g.solve()
		for i := range theta {
			if !(theta[i] >= 0) {
				t.Fatalf("unknown %d of %v is negative", i, theta)
			}
		}
		got, best := lossOf(rows, theta), scale // of θ = 0
		for support := 1; support < 16; support++ {
			if loss, ok := denseLoss(rows, support); ok {
				best = min(best, loss)
			}
		}
		if !(math.Abs(got-best) <= 1e-6*scale) {
			t.Fatalf("solve leaves %v with θ = %v, the best support %v, of Σwy² = %v", got, theta, best, scale)
		}
	})
}

type weightedRow struct {
	x    [4]float64
	y, w float64
}

// anyRows draws rows as windows give them: of a few levels or many, with and
// without prompts, of an engine or of anything. rapid draws what they are like,
// and one seed for the numbers: its own are mostly small and round.
func anyRows(t *rapid.T) (rows []weightedRow) {
	rng := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
	var truth [4]float64
	for i := range truth {
		truth[i] = rng.Float64() - 0.2 // below 0 is not allowed
	}
	noise := rapid.SampledFrom([]float64{0, 0.1, 3}).Draw(t, "noise")
	load := rapid.SampledFrom([]float64{0, 1, 1e3}).Draw(t, "load")
	levels := make([]float64, rapid.IntRange(1, 10).Draw(t, "levels"))
	for i := range levels {
		levels[i] = math.Exp(5 * rng.Float64())
	}
	for range rapid.IntRange(1, 40).Draw(t, "rows") {
		n := levels[rng.Intn(len(levels))]
		r := weightedRow{x: [4]float64{1, math.Sqrt(n), n, load * max(2*rng.Float64()-1, 0)}, w: 0.01 + rng.ExpFloat64()}
		r.y = noise * rng.NormFloat64()
		for i := range truth {
			r.y += truth[i] * r.x[i]
		}
		rows = append(rows, r)
	}
	return rows
}

// lossOf is Σ w·(y − x·θ)².
func lossOf(rows []weightedRow, theta [4]float64) (loss float64) {
	for _, r := range rows {
		e := r.y
		for i := range theta {
			e -= r.x[i] * theta[i]
		}
		loss += r.w * e * e
	}
	return loss
}

// denseLoss is the loss of the unrestricted solution on a support; ok is false
// when it is not unique, or negative somewhere.
func denseLoss(rows []weightedRow, support int) (loss float64, ok bool) {
	var at []int
	for i := range 4 {
		if support&(1<<i) != 0 {
			at = append(at, i)
		}
	}
	if len(rows) < len(at) {
		return 0, false
	}
	x, y := mat.NewDense(len(rows), len(at), nil), mat.NewVecDense(len(rows), nil)
	for i, r := range rows {
		for j := range at {
			x.Set(i, j, math.Sqrt(r.w)*r.x[at[j]])
		}
		y.SetVec(i, math.Sqrt(r.w)*r.y)
	}
	length := make([]float64, len(at)) // columns of one length: only then a condition means something
	for j := range at {
		if length[j] = mat.Norm(x.ColView(j), 2); length[j] == 0 {
			return 0, false
		}
		for i := range rows {
			x.Set(i, j, x.At(i, j)/length[j])
		}
	}
	var qr mat.QR
	qr.Factorize(x)
	var solution mat.VecDense
	if qr.SolveVecTo(&solution, false, y) != nil { // singular, or nearly
		return 0, false
	}
	var theta [4]float64
	for j, i := range at {
		if theta[i] = solution.AtVec(j) / length[j]; theta[i] < 0 {
			return 0, false
		}
	}
	return lossOf(rows, theta), true
}
