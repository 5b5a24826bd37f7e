package profiles

import "math/bits"

// A curve is tabulated at rungs: every n up to exactRungs, and above that
// 2^rungBits of them in each octave, at most 1.6 % apart. A table of every n to
// maxLevel would take 64 KB.
const (
	exactRungs = 512
	rungBits   = 6

	// rungShift is log2 of the width of the first rungs above exactRungs.
	rungShift = 3
)

// rungOf returns the rung that n lies on: the lowest whose top is not below n.
// n below 1 counts as 1.
func rungOf(n int) int {
	if n <= exactRungs {
		return max(n, 1) - 1
	}
	shift := bits.Len(uint(n-1)) - 1 - rungBits
	return exactRungs + (shift-rungShift)<<rungBits + (n-1)>>shift - 1<<rungBits
}

// rungTop returns the highest n of rung i.
func rungTop(i int) int {
	if i < exactRungs {
		return i + 1
	}
	i -= exactRungs
	return (1<<rungBits + i&(1<<rungBits-1) + 1) << (rungShift + i>>rungBits)
}
