package profiles

import (
	"math"
	"math/bits"
)

// NumBins is how many bins the levels of concurrency are cut into.
const NumBins = 48

// exactBins are the levels that have a bin of their own. Real curves have
// their steps at small n (a kernel that changes at 4 streams), where a
// neighbour is far away in relative terms.
const exactBins = 8

// binTop is the highest n of each bin: 1…8, then 8·2^(j/4) rounded down, up to
// 8192.
var binTop = func() (top [NumBins]int) {
	for i := range top {
		if i < exactBins {
			top[i] = i + 1
			continue
		}
		j := float64(i - exactBins + 1)
		top[i] = int(math.Floor(exactBins*math.Exp2(j/4) + 1e-9))
	}
	return top
}()

// BinOf returns the bin of concurrency n: exact for n ≤ 8, then four per
// octave. n below 1 counts as 1; n above the last bin goes to the last bin.
func BinOf(n int) int {
	switch {
	case n <= 1:
		return 0
	case n <= exactBins:
		return n - 1
	case n > binTop[NumBins-1]:
		return NumBins - 1
	}
	octave := bits.Len(uint(n-1)) - bits.Len(exactBins) // 0 for 9…16
	i := exactBins + 4*octave
	for n > binTop[i] {
		i++
	}
	return i
}

// BinBounds returns the lowest and highest n of bin i, both inclusive. The last
// bin also takes every n above its bound.
func BinBounds(i int) (lo, hi int) {
	i = min(max(i, 0), NumBins-1)
	if i == 0 {
		return 1, 1
	}
	return binTop[i-1] + 1, binTop[i]
}
