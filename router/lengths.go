package router

import "math"

// lengths is a histogram of how many tokens the answers of a route had, in
// which an older answer counts half a percent less with every newer one. A
// little of an exponential distribution of the same mean lies under it, so that
// it has an opinion on any length. The zero value knows of no answer, and is
// that distribution alone.
type lengths struct {
	bins                 [lengthBins]float64
	sum, squares, weight float64 // of tokens; of their squares; of answers

	tails [lengthBins + 1]float64 // mass from each bin on, while ready
	ready bool
}

const (
	// Four bins to an octave, from 1 token to 2^18.
	lengthOctaves = 18
	lengthBins    = 4 * lengthOctaves

	lengthKeep  = 0.995
	lengthPrior = 2.0 // answers that the exponential distribution stands for

	// enough is the weight from which on the lengths are trusted to refuse by.
	enough = 16
)

// lengthBin is the bin of x tokens: of its octave, by quarters.
func lengthBin(x float64) int {
	bits := math.Float64bits(max(x, 1))
	i := int(bits>>52-1023)<<2 | int(bits>>50&3)
	return min(i, lengthBins-1)
}

// lengthEdges are where the bins begin, and where the last one ends.
var lengthEdges = func() (edges [lengthBins + 1]float64) {
	for i := range edges {
		edges[i] = math.Ldexp(1+float64(i&3)/4, i>>2)
	}
	return edges
}()

func (h *lengths) add(tokens float64) {
	for i := range h.bins {
		h.bins[i] *= lengthKeep
	}
	h.bins[lengthBin(tokens)]++
	h.sum = h.sum*lengthKeep + tokens
	h.squares = h.squares*lengthKeep + tokens*tokens
	h.weight = h.weight*lengthKeep + 1
	h.ready = false
}

// mean returns the mean, or other while no answer is known.
func (h *lengths) mean(other float64) float64 {
	if h.weight <= 0 {
		return other
	}
	return h.sum / h.weight
}

// renewals is how many answers are expected to end on one place within so many
// tokens, when one begins and each is followed by the next. At first it is the
// share that has ended; in the long run tokens/mean + (c²−1)/2, with c the
// coefficient of variation; and never more than p/(1−p), p being that share. The
// histogram is prepared.
func (h *lengths) renewals(tokens float64) float64 {
	p := h.ended(0, tokens)
	mean := max(h.mean(usualAnswer), 1)
	late := tokens / mean
	if h.weight > 0 {
		late += (h.squares/h.weight/(mean*mean) - 2) / 2
	}
	if p < 1 {
		late = min(late, p/(1-p))
	}
	return max(p, late)
}

// prepare makes tails true.
func (h *lengths) prepare() {
	if h.ready {
		return
	}
	h.ready = true
	mean := max(h.mean(usualAnswer), 1)
	survive := 0.0 // of the distribution, at the upper edge of the bin
	for i := lengthBins - 1; i >= 0; i-- {
		lower := 1.0
		if i > 0 {
			lower = math.Exp(-lengthEdges[i] / mean)
		}
		h.tails[i] = h.tails[i+1] + h.bins[i] + lengthPrior*(lower-survive)
		survive = lower
	}
}

// tail is the mass of the answers longer than x. The histogram is prepared.
func (h *lengths) tail(x float64) float64 {
	i := lengthBin(x)
	lower, upper := lengthEdges[i], lengthEdges[i+1]
	share := min(max((x-lower)/(upper-lower), 0), 1)
	return h.tails[i] + share*(h.tails[i+1]-h.tails[i])
}

// ended is the share of the answers longer than from that are no longer than to
// tokens. The histogram is prepared.
func (h *lengths) ended(from, to float64) float64 {
	left := h.tail(from)
	if left <= 0 {
		return 1
	}
	return 1 - h.tail(to)/left
}
