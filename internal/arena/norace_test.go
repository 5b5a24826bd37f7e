//go:build !race

package arena

const underRace = false
