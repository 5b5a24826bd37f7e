package profiles

import (
	"math"
	"slices"
)

// PriorPoint is one point of a curve known from elsewhere.
type PriorPoint struct {
	N   int
	TPS float64
}

const (
	// minSteps is how many decode steps evidence needs before a curve is
	// drawn through it.
	minSteps = 30

	// priorWeight is how many decode steps of evidence weigh as much as a
	// prior.
	priorWeight = 60

	// maxPriorPoints bounds a prior.
	maxPriorPoints = 256
)

// prior is a curve known from elsewhere, immutable. Between its points time
// per token is interpolated in log n and log time; outside it continues with
// the slope of the outermost pair, which is at least flat.
type prior struct {
	n    []int
	logN []float64
	logT []float64 // ln of seconds per token
	cost float64   // seconds that a prompt token takes; 0 = unknown
}

// newPrior drops points that are none and sorts the rest; of two at one n the
// last counts. Where points lie beyond what curves are drawn for, what they say of its
// end takes their place. It is nil when nothing is left.
func newPrior(points []PriorPoint) *prior {
	var good []PriorPoint
	for _, p := range points {
		if p.N < 1 || !(p.TPS > 0) || p.TPS < 1/maxTPOT || p.TPS > 1/minTPOT {
			continue
		}
		good = slices.DeleteFunc(good, func(q PriorPoint) bool { return q.N == p.N })
		if good = append(good, p); len(good) == maxPriorPoints {
			break
		}
	}
	if len(good) == 0 {
		return nil
	}
	slices.SortFunc(good, func(a, b PriorPoint) int { return a.N - b.N })
	pr := priorOf(good)
	if good[len(good)-1].N > maxLevel {
		end := PriorPoint{N: maxLevel, TPS: 1 / pr.tpot(maxLevel)}
		within := slices.DeleteFunc(good, func(p PriorPoint) bool { return p.N >= maxLevel })
		return priorOf(append(within, end))
	}
	return pr
}

// priorOf is the prior of points that are sorted by n.
func priorOf(points []PriorPoint) *prior {
	pr := &prior{}
	for _, p := range points {
		pr.n = append(pr.n, p.N)
		pr.logN = append(pr.logN, math.Log(float64(p.N)))
		pr.logT = append(pr.logT, -math.Log(p.TPS))
	}
	return pr
}

// support returns the range of the points.
func (pr *prior) support() (lo, hi int) { return pr.n[0], pr.n[len(pr.n)-1] }

// tpot returns the seconds per token at n.
func (pr *prior) tpot(n float64) float64 {
	last := len(pr.n) - 1
	if last == 0 {
		return math.Exp(pr.logT[0])
	}
	x := math.Log(n)
	i, _ := slices.BinarySearch(pr.logN, x)
	i = min(max(i, 1), last)
	slope := (pr.logT[i] - pr.logT[i-1]) / (pr.logN[i] - pr.logN[i-1])
	if x < pr.logN[0] || x > pr.logN[last] {
		slope = max(slope, 0)
	}
	if x < pr.logN[0] {
		return math.Exp(pr.logT[0] + slope*(x-pr.logN[0]))
	}
	return math.Exp(pr.logT[i] + slope*(x-pr.logN[i]))
}

// addTo adds the points to g as rows that weigh priorWeight steps in all. The
// shape is the prior's; the level moves to the evidence's as steps come in,
// since another machine of the same kind is faster or slower at every n.
func (pr *prior) addTo(g *gram, s *Sums) {
	var steps, ratios float64
	for i := range s.bins {
		b := &s.bins[i]
		if b.K > 0 && b.Y > 0 && b.T > 0 {
			steps += b.K
			ratios += b.K * math.Log(b.T/b.K/pr.tpot(max(b.Y/b.K, 1)))
		}
	}
	scale := 1.0
	if steps > 0 {
		scale = math.Exp(ratios / (steps + priorWeight))
	}
	weight := priorWeight / float64(len(pr.n))
	for i := range pr.n {
		n := float64(pr.n[i])
		y := max(math.Exp(pr.logT[i])*scale, minTPOT)
		g.add([4]float64{1, math.Sqrt(n), n, 0}, y, weight/(y*y))
	}
}
