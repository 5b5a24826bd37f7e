package profiles

import "testing"

func TestBinOf(t *testing.T) {
	for _, test := range []struct{ n, bin, lo, hi int }{
		{-5, 0, 1, 1},
		{0, 0, 1, 1},
		{1, 0, 1, 1},
		{2, 1, 2, 2},
		{8, 7, 8, 8},
		// 8·2^(1/4) = 9.51, 11.31, 13.45, 16
		{9, 8, 9, 9},
		{10, 9, 10, 11},
		{11, 9, 10, 11},
		{12, 10, 12, 13},
		{14, 11, 14, 16},
		{16, 11, 14, 16},
		// 19.03, 22.63, 26.91, 32
		{17, 12, 17, 19},
		{20, 13, 20, 22},
		{26, 14, 23, 26},
		{27, 15, 27, 32},
		{32, 15, 27, 32},
		{64, 19, 54, 64},
		{65, 20, 65, 76},
		{8192, 47, 6889, 8192},
		{1 << 40, 47, 6889, 8192},
	} {
		bin := BinOf(test.n)
		if bin != test.bin {
			t.Errorf("BinOf(%d) = %d, want %d", test.n, bin, test.bin)
		}
		if lo, hi := BinBounds(bin); lo != test.lo || hi != test.hi {
			t.Errorf("BinBounds(%d) = %d, %d, want %d, %d", bin, lo, hi, test.lo, test.hi)
		}
	}
}

func TestBinsCoverEveryLevelOnce(t *testing.T) {
	next := 1
	for i := range NumBins {
		lo, hi := BinBounds(i)
		if lo != next || hi < lo {
			t.Fatalf("bin %d is %d…%d, want it to begin at %d", i, lo, hi, next)
		}
		for n := lo; n <= hi; n++ {
			if BinOf(n) != i {
				t.Fatalf("BinOf(%d) = %d, want %d", n, BinOf(n), i)
			}
		}
		next = hi + 1
	}
}
