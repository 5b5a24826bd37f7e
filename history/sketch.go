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
// neighbours become one that hold the least over the shortest range: what is lost
// is where in a thin part of the range a few values lay.
func (s *sketch) pack() packed { return s.packIn(packedMost) }

// packIn is pack in at most so many entries.
func (s *sketch) packIn(most int) packed {
	type entry struct {
		low, high int    // buckets
		count     uint64 // in all of them
	}
	var entries [buckets]entry
	used := 0
	for b, c := range s {
		if c > 0 {
			entries[used] = entry{b, b, uint64(c)}
			used++
		}
	}
	for ; used > most; used-- {
		least, at := math.Inf(1), 0
		for i := range used - 1 {
			a, b := &entries[i], &entries[i+1]
			if cost := float64(a.count+b.count) * float64(b.high-a.low); cost < least {
				least, at = cost, i
			}
		}
		a, b := &entries[at], entries[at+1]
		a.high, a.count = b.high, a.count+b.count
		copy(entries[at+1:used-1], entries[at+2:used])
	}
	out := make(packed, used)
	for i, e := range entries[:used] {
		out[i] = uint32((e.low+e.high)/2)<<countBits | uint32(min(e.count, packedCount))
	}
	return out
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
