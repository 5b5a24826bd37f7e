package baseline

import (
	"cmp"
	"slices"

	"github.com/pacer-dev/pacer/router"
)

// sort sorts list by rising rank; equals stay as they are.
func sort(list []int, rank func(i int) float64) {
	slices.SortStableFunc(list, func(x, y int) int { return cmp.Compare(rank(x), rank(y)) })
}

// from returns the first target from at on, going round, that is open; -1 if none is.
func from(c router.Choice, at int) int {
	for i := range c.Len() {
		if next := (at + i) % c.Len(); c.Open(next) {
			return next
		}
	}
	return -1
}

// first returns the first of list that is open, -1 if none is.
func first(c router.Choice, list []int) int {
	for _, i := range list {
		if c.Open(i) {
			return i
		}
	}
	return -1
}
