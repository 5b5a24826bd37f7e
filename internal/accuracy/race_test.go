//go:build race

package accuracy

// underRace is whether the race detector looks on, under which everything takes
// ten times as long.
const underRace = true
