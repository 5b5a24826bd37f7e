package profiles

import (
	"math"
	"testing"
)

func TestWhoRanBesideOthers(t *testing.T) {
	for _, c := range []struct {
		name          string
		got, expected float64 // of the group since the stream joined, in tokens
		own           float64 // expected of the stream
		want          bool
	}{
		{"as known", 1000, 1000, 100, true},
		{"within 15 %", 1000 * math.Exp(-0.149), 1000, 100, true},
		{"a hiccup", 600, 1000, 100, false},
		{"faster", 1200, 1000, 100, false},
		{"mostly alone", 600, 1000, 600, true}, // slow itself: that is for the margin to see
		{"nobody known", 0, 0, 100, true},
	} {
		joined := abreast{got: 500, expected: 700}
		now := abreast{got: 500 + c.got, expected: 700 + c.expected}
		if got := now.usual(joined, c.own); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
