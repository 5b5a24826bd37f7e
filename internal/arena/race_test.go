//go:build race

package arena

// underRace is whether the race detector looks on, which makes everything some
// ten times slower: then tests of hours with one goroutine are left out, and
// `make numbers` runs them.
const underRace = true
