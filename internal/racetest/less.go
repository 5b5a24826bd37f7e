package racetest

// Rows are the cases of a test that computes on one goroutine: all of them, and the
// first alone where the race detector looks on.
func Rows[T any](all []T) []T {
	if On {
		return all[:1]
	}
	return all
}

// Some is how often such a test repeats itself: n times, and a quarter of that where
// the race detector looks on.
func Some(n int) int {
	if On {
		return max(1, n/4)
	}
	return n
}
