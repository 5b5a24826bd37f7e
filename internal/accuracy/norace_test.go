//go:build !race

package accuracy

const underRace = false
