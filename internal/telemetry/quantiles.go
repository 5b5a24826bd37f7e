package telemetry

import (
	"math"
	"time"
)

// Quantiles cover the slots that are still held: between
// (numSlots−1)·slotLength and numSlots·slotLength, so 2½ to 3 hours.
const (
	numSlots   = 6
	slotLength = 30 * time.Minute

	// Window is the longest time that quantiles look back.
	Window = numSlots * slotLength
)

// Buckets grow by 2 %, so a quantile is off by at most 1 %. The first bucket
// starts at 0.1 ms or 0.0001 tokens/s, the last ends above 10⁶.
const (
	bucketGrowth = 1.02
	bucketMin    = 1e-4
	numBuckets   = 1163 // ln(1e6/1e-4)/ln(1.02), rounded up
)

var invLogGrowth = 1 / math.Log(bucketGrowth)

// aged is a histogram of positive values that forgets: a ring of slots, each
// of which holds half an hour and is reused when its turn comes again. It is
// guarded by its owner's lock. The zero value is empty.
type aged struct {
	slots [numSlots]struct {
		turn   int64    // which half hour since 1970 the counts are of
		counts []uint32 // by bucket; nil until the slot is first used
	}
}

// add counts v, seen at now. Values ≤ 0, NaN and infinities are no values.
func (a *aged) add(now time.Time, v float64) {
	if !(v > 0) || math.IsInf(v, 1) {
		return
	}
	turn := now.UnixNano() / int64(slotLength)
	s := &a.slots[turn%numSlots]
	switch {
	case s.counts == nil:
		s.counts = make([]uint32, numBuckets)
	case s.turn != turn:
		clear(s.counts)
	}
	s.turn = turn
	i := int(math.Log(v/bucketMin) * invLogGrowth)
	s.counts[min(max(i, 0), numBuckets-1)]++
}

// quantiles returns the values below which the given shares of the counted
// ones lie (shares ascending), and how many were counted; NaN when none.
func (a *aged) quantiles(now time.Time, shares ...float64) (values []float64, count uint64) {
	turn := now.UnixNano() / int64(slotLength)
	var sum [numBuckets]uint64
	for _, s := range a.slots {
		if s.counts == nil || turn-s.turn >= numSlots {
			continue
		}
		for i, c := range s.counts {
			sum[i] += uint64(c)
			count += uint64(c)
		}
	}
	values = make([]float64, len(shares))
	below, bucket := uint64(0), -1 // values in the buckets up to and including bucket
	for i, share := range shares {
		if count == 0 {
			values[i] = math.NaN()
			continue
		}
		// The nearest rank: the smallest value with at least share of all at
		// or below it.
		rank := max(uint64(math.Ceil(share*float64(count))), 1)
		for below < rank {
			bucket++
			below += sum[bucket]
		}
		// The geometric middle of the bucket.
		values[i] = bucketMin * math.Pow(bucketGrowth, float64(bucket)+0.5)
	}
	return values, count
}
