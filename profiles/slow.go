package profiles

import "math/bits"

// numOctaves is how many octaves the slow copy is cut into by n: 1, 2 to 3, 4 to
// 7 and so on, the last from maxLevel on. One pool of rows would not do: an hour
// at one n would outweigh in it all that was seen of others.
const numOctaves = 14

// slowShare is the share of the evidence of the rows up to which the slow copy
// fills up each octave: 43 s beside the 866 s of decoding that the rows hold at
// most. So much has to be decoded at an n until the rows alone count there.
const slowShare = 0.05

// octave returns the index of the octave of n ≥ 1.
func octave(n float64) int {
	if !(n >= 1) {
		return 0
	}
	return bits.Len(uint(min(n, maxLevel))) - 1
}

// learn adds a row to the rows and to their slow copy.
func (s *Sums) learn(r row, smooth float64) {
	at := octave(r.Y / r.K)
	r.addTo(&s.rows.rowSums, smooth)
	s.rows.Octaves[at] += r.K
	r.addTo(&s.slow[at], smooth)
}

// addSlow adds to g what the slow copy knows beyond the rows: in each octave
// that the rows have left, as much as they forgot of it, up to slowShare. Where
// nothing was forgotten both are the same evidence, and nothing is added. The
// shape is the slow copy's and the level that of the rows, because an engine
// that has become slower has mostly become so at every n.
func (s *Sums) addSlow(g *gram) {
	var weights [numOctaves]float64
	any := false
	for i := range s.slow {
		known, fresh := s.slow[i].K, max(s.rows.Octaves[i], 0)
		if missing := min(known-minSteps, slowShare*s.rows.K) - fresh; missing > 0 {
			weights[i] = missing / known
			any = true
		}
	}
	if !any {
		return
	}
	scale, ok := s.levelOverSlow()
	if !ok {
		return
	}
	for i := range s.slow {
		if weights[i] > 0 {
			// Times grow by scale, and the weights of rows are K/time².
			g.merge(s.slow[i].gram(), weights[i]/(scale*scale), weights[i]/scale)
		}
	}
}

// levelOverSlow returns by how much the times of the rows exceed those that the
// slow copy has of the same levels of n.
func (s *Sums) levelOverSlow() (scale float64, ok bool) {
	var same gram
	for i := range s.slow {
		if fresh, known := s.rows.Octaves[i], s.slow[i].K; fresh > 0 && known > 0 {
			same.merge(s.slow[i].gram(), fresh/known, fresh/known)
		}
	}
	theta := same.solve()
	g := s.rows.gram()
	var measured, expected float64
	for i := range theta {
		measured += theta[i] * g.v[i]
		for j := range theta {
			expected += theta[i] * g.m[i][j] * theta[j]
		}
	}
	scale = measured / expected
	return scale, scale >= leastFactor && scale <= 1/leastFactor
}

// gram returns the normal equations of the rows.
func (r *rowSums) gram() gram {
	return gram{
		m: [4][4]float64{
			{r.A00, r.A01, r.A02, r.A03},
			{r.A01, r.A11, r.A12, r.A13},
			{r.A02, r.A12, r.A22, r.A23},
			{r.A03, r.A13, r.A23, r.A33},
		},
		v: [4]float64{r.B0, r.B1, r.B2, r.B3},
	}
}

// merge adds o, its matrix multiplied by m and its vector by v.
func (g *gram) merge(o gram, m, v float64) {
	for i := range o.m {
		for j := range o.m[i] {
			g.m[i][j] += o.m[i][j] * m
		}
		g.v[i] += o.v[i] * v
	}
}
