package router

// crowd is how much each of many has, so that what is counted of each up to some
// number is added up in a time that does not grow with how many they are. Counts
// are exact up to 8, and beyond that told apart by quarters of an octave. The zero
// value is nobody.
type crowd struct {
	bins [crowdBins]struct {
		members      int
		weight, load float64 // Σ of their weights, and of weight·count
	}
}

// crowdBins reach up to 2^15, more than there are promises or places in a line.
const crowdBins = 4*15 + 1

func crowdBin(count int) int { return min(lengthBin(float64(count)), crowdBins-1) }

// add takes in one who has count, nothing if that is 0, and counts by weight.
func (c *crowd) add(count int, weight float64) { c.change(count, weight, +1) }

// remove takes out what was added.
func (c *crowd) remove(count int, weight float64) { c.change(count, weight, -1) }

func (c *crowd) change(count int, weight float64, by int) {
	if count <= 0 {
		return
	}
	b := &c.bins[crowdBin(count)]
	b.members += by
	b.weight += float64(by) * weight
	b.load += float64(by) * weight * float64(count)
	if b.members == 0 {
		b.weight, b.load = 0, 0 // and no remainder
	}
}

// upTo adds up what all have, of each at most so much, by their weights.
func (c *crowd) upTo(most int) (sum float64) {
	last := crowdBin(most)
	for i := range c.bins {
		switch b := &c.bins[i]; {
		case b.members == 0:
		case i < last:
			sum += b.load
		case i == last:
			sum += min(b.load, b.weight*float64(most))
		default:
			sum += b.weight * float64(most)
		}
	}
	return sum
}
