package profiles

import "math"

const (
	// What is borrowed is drawn anew when the evidence of the group has changed
	// by poolChange, when there is a target that never asked, and every poolFolds
	// folds.
	poolChange = 0.05
	poolFolds  = 30
)

// pool is how much the targets of a group knew together when they last borrowed
// from each other. Book.mu guards it.
type pool struct {
	steps float64 // decode steps of the rows
	drawn uint64  // number of the fold
}

// pool lets the targets of the groups whose evidence has changed borrow anew,
// and returns these groups. mu is held.
func (b *Book) pool() map[*group]bool {
	var anew map[*group]bool
	for _, g := range b.groups {
		if g.poolIsStale(b.folds) {
			if anew == nil {
				anew = map[*group]bool{}
			}
			anew[g] = true
			g.borrow(b.folds)
		}
	}
	return anew
}

// poolIsStale reports whether there is more, or other, evidence to borrow. A
// target that is alone borrows from nobody.
func (g *group) poolIsStale(fold uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.profiles) < 2 {
		return false
	}
	steps, old := 0.0, fold >= g.pool.drawn+poolFolds
	for _, p := range g.profiles {
		steps += p.known.rows.K
		old = old || !p.pooled
	}
	return steps > 0 && (old || math.Abs(steps-g.pool.steps) > poolChange*g.pool.steps)
}

// borrow gives each target the curve of what all others of g know, as a prior: so
// another model of a known engine (a LoRA) does not begin from nothing. Evidence
// of its own moves the level, as with any prior. Book.mu is held.
func (g *group) borrow(fold uint64) {
	var all Sums
	g.mu.Lock()
	for _, p := range g.profiles {
		all.lend(&p.known, 1)
	}
	profiles := g.profiles
	g.mu.Unlock()

	g.pool = pool{steps: all.rows.K, drawn: fold}
	everything := newCurve(&all, nil, startMargin).asPrior()
	for _, p := range profiles {
		p.borrowed, p.pooled = everything, true
		g.mu.Lock()
		others, own := all, p.known.rows.K > 0
		if own {
			others.lend(&p.known, -1)
		}
		g.mu.Unlock()
		if own {
			p.borrowed = newCurve(&others, nil, startMargin).asPrior()
		}
	}
}

// lend adds share of what a curve is drawn from.
func (s *Sums) lend(o *Sums, share float64) {
	add := func(to, from []*float64) {
		for i := range to {
			*to[i] += share * *from[i]
		}
	}
	for i := range s.bins {
		if o.bins[i] != (binSums{}) {
			add(s.bins[i].fields(), o.bins[i].fields())
		}
	}
	add(s.rows.fields(), o.rows.fields())
	add(s.mix.fields(), o.mix.fields())
	for i := range s.slow {
		if o.slow[i] != (rowSums{}) {
			add(s.slow[i].fields(), o.slow[i].fields())
		}
	}
}

// asPrior returns the curve at the levels that were visited, nil when it was not
// learned.
func (c *Curve) asPrior() *prior {
	if c.source != Learned {
		return nil
	}
	var points []PriorPoint
	for i := range c.bins {
		if b := &c.bins[i]; b.n > 0 && b.k >= visitedSteps {
			points = append(points, PriorPoint{N: b.n, TPS: c.TPS(b.n)})
		}
	}
	return newPrior(points)
}
