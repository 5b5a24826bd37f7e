package profiles

import "math"

// suspect says whether the engine may have changed before the windows that are
// closed next: they are remembered until it has turned out.
func (p *profile) suspect(may bool) {
	switch {
	case !may:
		p.since, p.windows = nil, 0
		for i := range p.waiting {
			p.waiting[i].changed = false
		}
	case p.since == nil:
		p.since = &Sums{}
	}
	p.windows++
}

// remember adds the seconds of w to those since the engine may have changed.
func (p *profile) remember(w *window) {
	if p.since == nil {
		p.since = &Sums{}
	}
	cells := w.exposure(p)
	for i := range cells {
		p.since.bins[i].S += cells[i].S
		p.since.bins[i].T += cells[i].T
	}
}

// kept is the least share of since that is not forgotten: a bin halves no sooner than
// in a half-life, and what was forgotten must not be spared.
func (p *profile) kept() float64 {
	return 0.9 * math.Exp2(-float64(p.windows)*windowLength.Seconds()/(p.halfLife.Seconds()/2))
}
