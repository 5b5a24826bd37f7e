//go:build race

package main

// underRace is whether the race detector looks on, which makes everything some
// ten times slower: the demo then runs for a part of its time.
const underRace = true
