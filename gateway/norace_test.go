//go:build !race

package gateway

const underRace = false
