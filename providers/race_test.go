//go:build race

package providers

// underRace is whether the race detector looks on, which makes everything some
// ten times slower: then streams are cut at fewer places, and `make numbers`
// cuts them at all.
const underRace = true
