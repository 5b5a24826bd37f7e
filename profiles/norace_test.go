//go:build !race

package profiles

const underRace = false
