package profiles

import (
	"math"
	"time"
)

// Sums is everything known about one target: nothing but sums, so that
// replicas merge by addition. The zero value is empty. Symbols are those of
// exposure and docs/CURVES-MODEL.md.
type Sums struct {
	// Updated is when evidence last came in. Merging keeps the later one.
	Updated time.Time

	bins   [NumBins]binSums
	rows   fastRows
	totals totals
	firsts firstSums
	knee   kneeSums

	deliveries deliverySums
	pace       paceSums
	mix        mixSums
	recent     recentSums

	// slow is the slow copy of rows, by octave of n: fed by the same deltas, it
	// halves by the clock of the store, so that it still holds what rows forget
	// while they learn elsewhere. The bins need none: there, what is not visited
	// is not forgotten.
	slow [numOctaves]rowSums

	// Shifts counts how often all seconds were multiplied: see Shift. It is 0 in
	// the sums of a Delta.
	Shifts uint64

	// folded is the number of the last fold of this replica that the sums
	// hold; 0 when they hold none. It is not stored.
	folded uint64
}

// binSums is what is known at one bin.
type binSums struct {
	S, T, Y, K, R, N float64 // of the streams of the target, as in exposure
	P, PN            float64 // prompt tokens prefilled beside them, and × n

	// Second moments of the windows, for the standard error of Y/S: streams
	// of one batch share their step, so tokens are no independent samples.
	W          float64 // windows with exposure in the bin
	SS, YY, SY float64 // Σ s², Σ y², Σ s·y over these windows

	// Of the streams that note slots: see trail and price.
	Tq, Kq     float64 // T and K of quiet time
	Td, Kd, Pd float64 // of disturbed time, with the prompt tokens prefilled in it
	Wq, Vq     float64 // windows with quiet time, and Σ (T° − τ·K°)² of them

	Chunks, Told float64 // of finished streams whose text is known, and the tokens in these
}

// rowSums are the weighted normal equations of the rows
// T/K = a + b·Q/K + c·Y/K + d·P/K, one row per window.
type rowSums struct {
	A00, A01, A02, A03, A11, A12, A13, A22, A23, A33 float64 // Σ w·x·xᵀ, upper triangle
	B0, B1, B2, B3                                   float64 // Σ w·x·y
	YY                                               float64 // Σ w·y²
	T, K                                             float64 // Σ T, Σ K of the rows
}

// fastRows are the rows that the fit is made of.
type fastRows struct {
	rowSums
	Octaves [numOctaves]float64 // their K by the octave of their mean n
}

// totals are sums over finished streams.
type totals struct {
	T       float64 // occupied seconds of all bins
	Answers float64 // finished answers
	Output  float64 // their tokens

	Calibrations float64 // streams whose chunks and usage are both known
	Counted      float64 // their tokens, by usage
	Chunks       float64 // their chunks

	Estimated float64 // prompt tokens as estimated from the body, where the true count is known
	Prefilled float64 // the true count, without what came from a cache

	text textSums
}

// Delta is what one target gathered between two folds. Adding it to Sums
// first halves every group of sums per HalfLife of the occupied time that the
// delta itself carries for that group: no clock is needed, and the order of
// merging does not matter to first order. The slow copy is the exception: it
// halves by Sums.Fade. Before all that comes the shift.
type Delta struct {
	Target Target
	Sums   Sums
	Shift  Shift // of what is known already; the delta's own seconds are as measured
}

// Add merges d into s, with the forgetting described at Delta. A halfLife of
// 0 or less forgets nothing.
func (s *Sums) Add(d Delta, halfLife time.Duration) {
	d.Shift.apply(s)
	for i := range s.bins {
		if d.Sums.bins[i] != (binSums{}) {
			s.bins[i].merge(&d.Sums.bins[i], halfLife)
		}
	}
	if d.Sums.rows != (fastRows{}) {
		s.rows.merge(&d.Sums.rows, halfLife)
	}
	for i := range s.slow {
		if d.Sums.slow[i] != (rowSums{}) {
			mergeFields(s.slow[i].fields(), d.Sums.slow[i].fields(), 1)
		}
	}
	if d.Sums.totals != (totals{}) {
		s.totals.merge(&d.Sums.totals, halfLife)
	}
	s.addFirsts(&d.Sums, halfLife)
	if d.Sums.deliveries != (deliverySums{}) {
		s.deliveries.merge(&d.Sums.deliveries, halfLife)
	}
	if d.Sums.pace != (paceSums{}) {
		mergeFields(s.pace.fields(), d.Sums.pace.fields(), kept(d.Sums.pace.T/paceSlowness, halfLife))
	}
	if d.Sums.mix != (mixSums{}) {
		mergeFields(s.mix.fields(), d.Sums.mix.fields(), kept(d.Sums.mix.T, halfLife))
	}
	if d.Sums.recent != (recentSums{}) {
		mergeFields(s.recent.fields(), d.Sums.recent.fields(), kept(d.Sums.recent.T, halfLife))
	}
	if d.Sums.Updated.After(s.Updated) {
		s.Updated = d.Sums.Updated
	}
	s.folded = max(s.folded, d.Sums.folded)
}

// SlowHalfLife is the time, by the clock of the store, after which the slow
// copy counts half.
const SlowHalfLife = 24 * time.Hour

// Fade lets the slow copy age by elapsed, which a store does before it adds a
// delta. A clock that was set back ages nothing.
func (s *Sums) Fade(elapsed time.Duration) {
	keep := kept(elapsed.Seconds(), SlowHalfLife)
	if keep == 1 {
		return
	}
	for i := range s.slow {
		for _, f := range s.slow[i].fields() {
			*f *= keep
		}
	}
}

func (b *binSums) merge(d *binSums, halfLife time.Duration) {
	mergeFields(b.fields(), d.fields(), kept(d.T, halfLife))
}

func (r *fastRows) merge(d *fastRows, halfLife time.Duration) {
	keep := kept(d.T, halfLife)
	mergeFields(r.rowSums.fields(), d.rowSums.fields(), keep)
	mergeEach(r.Octaves[:], d.Octaves[:], keep)
}

func (t *totals) merge(d *totals, halfLife time.Duration) {
	mergeFields(t.fields(), d.fields(), kept(d.T, halfLife))
}

func (d *deliverySums) merge(o *deliverySums, halfLife time.Duration) {
	keep := kept(o.T/marginSlowness, halfLife)
	d.T = d.T*keep + o.T
	mergeEach(d.Streams[:], o.Streams[:], keep)
}

// mergeFields sets every field of a group to field·keep + delta.
func mergeFields(to, delta []*float64, keep float64) {
	for i := range to {
		*to[i] = *to[i]*keep + *delta[i]
	}
}

// mergeEach is mergeFields of fields that are an array.
func mergeEach(to, delta []float64, keep float64) {
	for i := range to {
		to[i] = to[i]*keep + delta[i]
	}
}

// kept is the weight that older sums keep when a delta with so much occupied
// time comes in.
func kept(occupied float64, halfLife time.Duration) float64 {
	if halfLife <= 0 || !(occupied > 0) {
		return 1
	}
	return math.Exp2(-occupied / halfLife.Seconds())
}

// empty reports whether s holds nothing.
func (s *Sums) empty() bool {
	return s.bins == [NumBins]binSums{} && s.rows == fastRows{} && s.slow == [numOctaves]rowSums{} && s.totals == totals{} &&
		s.firsts == firstSums{} && s.knee == kneeSums{} && s.deliveries == deliverySums{} && s.pace == paceSums{} && s.mix == mixSums{} && s.recent == recentSums{}
}

// take adds an exposure whose tokens are in chunks.
func (b *binSums) take(e *exposure, perChunk float64) {
	b.S += e.S
	b.T += e.T
	b.correct(e, perChunk)
}

// correct adds only the tokens of e, multiplied by scale.
func (b *binSums) correct(e *exposure, scale float64) {
	b.Y += e.Y * scale
	b.K += e.K * scale
	b.R += e.R * scale
	b.N += e.N * scale
}

// perChunk is the learned tokens per chunk after the first, 1 before anything
// was learned.
func (t *totals) perChunk() float64 {
	if !(t.Chunks > 0) || !(t.Counted > 0) {
		return 1
	}
	return perChunkAfter(t.Calibrations, t.Counted, t.Chunks)
}

// promptScale is how many prompt tokens are prefilled for one estimated, 1
// before anything was learned.
func (t *totals) promptScale() float64 {
	if !(t.Estimated > 0) || t.Prefilled < 0 {
		return 1
	}
	return min(t.Prefilled/t.Estimated, 16)
}
