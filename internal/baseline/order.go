package baseline

import (
	"math/rand/v2"
	"slices"

	"github.com/pacer-dev/pacer/router"
)

// shuffled returns the indices of c's targets in any order.
func shuffled(random *rand.Rand, c router.Choice) []int {
	list := make([]int, c.Len())
	for i := range list {
		list[i] = i
	}
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// sort sorts list by rising rank; equals stay as they are.
func sort(list []int, rank func(i int) float64) {
	slices.SortStableFunc(list, func(x, y int) int {
		switch rx, ry := rank(x), rank(y); {
		case rx < ry:
			return -1
		case rx > ry:
			return 1
		}
		return 0
	})
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
