package spelling

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"min_tps", "max_ttft", "attainment", "grace", "a"}
	for word, want := range map[string]string{
		"min_tsp": "min_tps", "mintps": "min_tps", "MIN_TPS": "min_tps", "max_tttft": "max_ttft",
		"grade": "grace", "attain": "attainment", "weight": "", "x": "", "": "",
		strings.Repeat("x", 1000): "", "größe": "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%.40q) = %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"a", "", 1},
		{"", "ab", 2},
		{"ab", "ba", 1},
		{"kitten", "sitting", 3},
		{"min_tsp", "min_tps", 1},
		{"ü", "u", 1},
		{"abc", "abc", 0},
	} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("distance(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
		if got := distance(test.b, test.a); got != test.want {
			t.Errorf("distance(%q, %q) = %d, want %d", test.b, test.a, got, test.want)
		}
	}
}
