// Package racetest tells tests whether the race detector looks on, which makes
// everything some ten times slower and allocates. Tests of much traffic on one
// goroutine, and those that need the cores for processes which it does not see,
// are then left out or do less; `make numbers` runs them whole without it.
package racetest
