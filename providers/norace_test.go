//go:build !race

package providers

const underRace = false
