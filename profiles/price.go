package profiles

// quietest returns for each bin the one with 30 steps of quiet time that is nearest, the
// lower of two; −1 where there is none.
func (s *Sums) quietest() (nearest [NumBins]int8) {
	below := int8(-1)
	for i := range nearest {
		if b := &s.bins[i]; b.Kq >= ownSteps && b.Tq > 0 {
			below = int8(i)
		}
		nearest[i] = below
	}
	above := int8(-1)
	for i := int8(NumBins - 1); i >= 0; i-- {
		if nearest[i] == i {
			above = i
		}
		if below := nearest[i]; above >= 0 && (below < 0 || above-i < i-below) {
			nearest[i] = above
		}
	}
	return nearest
}

// price returns d, what a prompt token costs in seconds, from what streams lived
// through beside prefills and in quiet:
//
//	d = Σ w·(T' − K'·τ) / Σ w·P',  w = K°/((K° + E)·τ²),  E = T'/τ
//
// over the bins, with T' seconds and K' steps of disturbed time (Td, Kd), P' the
// prompt tokens prefilled in it (Pd), K° the steps of quiet time (Kq), and τ what
// one of these takes, T°/K°, in seconds. A bin that is hardly ever quiet, as n =
// U−1 where each of U users who ends is replaced at once, takes both of the nearest
// that is, τ as the fit f grows from one to the other. Else no form of the curve is
// assumed: each bin is held against itself.
//
// Disturbed seconds vary as those of the E steps that they could have been, so w
// is 1/variance, and info = (Σ w·P')²/Σ w·E is what d weighs among the rows of
// the fit, whose weights are steps over seconds² as well. It is 0 where nothing
// is known.
func (s *Sums) price(f Fit) (d, info float64) {
	var extra, prompts, variance float64
	nearest := s.quietest()
	for i := range s.bins {
		b := &s.bins[i]
		j := int(nearest[i])
		if j < 0 || !(b.Td > 0) {
			continue
		}
		q := &s.bins[j]
		step := q.Tq / q.Kq
		if i != j {
			n, _ := b.meanN()
			m, _ := q.meanN()
			step *= f.tpot(n, 0) / f.tpot(m, 0)
		}
		could := b.Td / step
		w := q.Kq / ((q.Kq + could) * step * step)
		if !finite(w) {
			continue
		}
		extra += w * (b.Td - b.Kd*step)
		prompts += w * b.Pd
		variance += w * could
	}
	if d, info = max(extra/prompts, 0), prompts*prompts/variance; !(prompts > 0) || !finite(d) || !finite(info) {
		return 0, 0
	}
	return d, info
}
