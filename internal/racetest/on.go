//go:build race

package racetest

// On reports whether the race detector looks on.
const On = true
