package history

import "math"

// Buckets grow by 1.4 %, so a quantile of a dense sketch is off by at most 0.7 %.
// They cover six decades, from the least of the values on.
const (
	buckets     = 1024
	leastTPS    = 0.05 // tokens/s
	leastTTFT   = 1e-3 // seconds
	decades     = 6
	packedMost  = 48 // entries of a packed sketch
	countBits   = 22
	packedCount = 1<<countBits - 1
)

var bucketsPerLn = (buckets - 1) / (decades * math.Ln10)

// sketch counts values by bucket. The zero value is empty.
type sketch [buckets]uint32

// add counts v, whose least value is least. What is not above 0, or not finite,
// is no value.
func (s *sketch) add(v, least float64) {
	if v > 0 && !math.IsInf(v, 1) {
		s[bucketOf(v/least)]++
	}
}

func bucketOf(ratio float64) int {
	return min(max(int(math.Log(ratio)*bucketsPerLn), 0), buckets-1)
}

// packed is a sketch as it is kept: entries by bucket, ascending, each
// bucket<<countBits | count. A count that is too large stays at the most there
// is.
type packed []uint32

// pack returns s in at most packedMost entries. With more buckets than that the
// neighbours that hold the least become one: what is lost is where in a thin part
// of the range a few values lay.
func (s *sketch) pack() packed {
	var entries [buckets]uint32
	used := 0
	for b, c := range s {
		if c > 0 {
			entries[used] = uint32(b)<<countBits | min(c, packedCount)
			used++
		}
	}
	for ; used > packedMost; used-- {
		least, at := uint64(math.MaxUint64), 0
		for i := range used - 1 {
			if c := uint64(entries[i]&packedCount) + uint64(entries[i+1]&packedCount); c < least {
				least, at = c, i
			}
		}
		// The bucket of the one with more stands for both.
		keep := entries[at]
		if entries[at+1]&packedCount > keep&packedCount {
			keep = entries[at+1]
		}
		entries[at] = keep&^packedCount | uint32(min(least, packedCount))
		copy(entries[at+1:used-1], entries[at+2:used])
	}
	return append(packed(nil), entries[:used]...)
}

// Sketch is the sum of sketches, from which quantiles are read. The zero value is
// empty.
type Sketch struct {
	counts [buckets]uint64
	count  uint64
	least  float64
}

func (s *Sketch) addDense(d *sketch) {
	for b, c := range d {
		s.counts[b] += uint64(c)
		s.count += uint64(c)
	}
}

func (s *Sketch) addPacked(p packed) {
	for _, e := range p {
		s.counts[e>>countBits] += uint64(e & packedCount)
		s.count += uint64(e & packedCount)
	}
}

// Count is how many values there are.
func (s *Sketch) Count() uint64 { return s.count }

// Quantile returns the value below which the share lies: the nearest rank. NaN
// when there is none.
func (s *Sketch) Quantile(share float64) float64 {
	if s.count == 0 {
		return math.NaN()
	}
	rank := max(uint64(math.Ceil(share*float64(s.count))), 1)
	below := uint64(0)
	for b, c := range s.counts {
		if below += c; below >= rank {
			return s.least * math.Exp((float64(b)+0.5)/bucketsPerLn)
		}
	}
	return math.NaN() // not reached: the counts add up to count
}
