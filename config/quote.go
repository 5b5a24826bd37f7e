package config

import (
	"fmt"
	"strings"
)

// shownRunes is how much of a word of the file a message repeats.
const shownRunes = 64

// quote shows a word of the file: quoted, without control characters, cut
// when long.
func quote(word string) string {
	if r := []rune(word); len(r) > shownRunes {
		word = string(r[:shownRunes]) + "…"
	}
	return fmt.Sprintf("%q", word)
}

// series is "a, b or c", with the given word before the last.
func series(words []string, before string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " " + before + " " + words[last]
}
