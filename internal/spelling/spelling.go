package spelling

import (
	"fmt"
	"slices"
	"strings"
)

// longest is how many bytes a word may have that is compared: it may be a
// stranger's, and comparing takes time that grows with its length.
const longest = 256

// Nearest returns the known word that was most likely meant, or "".
func Nearest(word string, known []string) string {
	if len(word) > longest {
		return ""
	}
	word = strings.ToLower(word)
	best, bestDistance := "", len(word)
	for _, k := range slices.Sorted(slices.Values(known)) { // of two as near, always the same
		if short, long := min(word, k), max(word, k); len(short) >= 3 && strings.HasPrefix(long, short) {
			return k // warning for warn, max_conc for max_concurrency
		}
		// A third of the letters may be wrong, and one of a short word.
		if d := distance(word, k); d < bestDistance && d <= max(1, len(k)/3) {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance is how many letters have to be put in, taken out, replaced, or
// swapped with their neighbour to turn a into b.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	before, last := make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range last {
		last[j] = j
	}
	for i := range s {
		row := make([]int, len(t)+1)
		row[0] = i + 1
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(t)]
}

// Meant ends a message about an unknown word: the nearest known one, or all.
func Meant(word string, known []string) string {
	if n := Nearest(word, known); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	known = slices.Sorted(slices.Values(known))
	const most = 32
	if len(known) > most {
		return fmt.Sprintf("known are %s and %d more", strings.Join(known[:most], ", "), len(known)-most)
	}
	return "known are " + strings.Join(known, ", ")
}
