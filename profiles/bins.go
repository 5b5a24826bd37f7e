package profiles

// NumBins is how many bins the levels of concurrency are cut into.
const NumBins = 48

// BinOf returns the bin of concurrency n: exact for n ≤ 8, then four per
// octave. n below 1 counts as 1; n above the last bin goes to the last bin.
func BinOf(n int) int { panic("unwritten") }

// BinBounds returns the lowest and highest n of bin i, both inclusive.
func BinBounds(i int) (lo, hi int) { panic("unwritten") }
