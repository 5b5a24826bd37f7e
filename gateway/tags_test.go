package gateway

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// What a client writes into a tag can neither forge another one nor write past a line
// or against the direction of a table.
func TestTagsAreClean(t *testing.T) {
	for value, want := range map[string]string{
		"checkout":                    "checkout",
		"prod,project=other":          "prod_project_other",
		"a\r\nb\x00c\x7f\u0085":       "a__b_c__",
		"\u202etxt.exe\u2066\ufeff":   "_txt.exe__",
		"ünïcode – 日本":                "ünïcode – 日本",
		strings.Repeat("é", 40):       strings.Repeat("é", 32),
		"x" + strings.Repeat("é", 40): "x" + strings.Repeat("é", 31),
		"\xff\xfebroken":              "broken",
		`{"a":1}`:                     `{"a":1}`,
	} {
		got := cleanTag(value)
		if got != want || !utf8.ValidString(got) || len(got) > maxTag || strings.ContainsFunc(got, func(c rune) bool { return !unicode.IsPrint(c) }) {
			t.Errorf("%q is %q, want %q", value, got, want)
		}
	}
}
