//go:build race

package e2e

// underRace is whether the race detector looks on: it looks at the tests, and not
// at the programs that they start.
const underRace = true
