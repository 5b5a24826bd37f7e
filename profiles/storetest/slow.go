package storetest

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// clock is how far the clock of a store may go on by itself in a test: of the
// slow copy, which halves in a day, less than a thousandth is lost meanwhile.
const clock = 1e-3

// sameSlow reports the sums of the slow copy that are not share of want.
func sameSlow(t *testing.T, what string, got, want profiles.Sums, share float64) {
	t.Helper()
	g, seen := Fields(got), 0
	for name, w := range Fields(want) {
		if !slow(name) {
			continue
		}
		seen++
		if w *= share; math.Abs(g[name]-w) > clock*w {
			t.Errorf("%s: %s = %v, want %v", what, name, g[name], w)
		}
	}
	if seen == 0 {
		t.Fatalf("%s: the test compares nothing", what)
	}
}

// slow reports whether name is a sum of the slow copy: "s4.b2".
func slow(name string) bool {
	octave, _, _ := strings.Cut(name, ".")
	return strings.HasPrefix(octave, "s") && len(octave) > 1
}

// rest is s without its slow copy.
func rest(s profiles.Sums) profiles.Sums {
	fields := Fields(s)
	for name := range fields {
		if slow(name) {
			delete(fields, name)
		}
	}
	return profiles.SumsFrom(fields, s.Updated)
}

// A day halves the slow copy and nothing else, whether or not the delta that
// comes then has anything for it.
func theSlowCopyFadesByTheClockOfTheStore(t *testing.T, s Subject) {
	first := delta(gpu, 64, 0)
	push(t, s, "a", 1, first)
	sameSlow(t, "at first", load(t, s, gpu)[gpu], first.Sums, 1)
	s.Pass(profiles.SlowHalfLife)
	bare := profiles.Delta{Target: gpu, Sums: profiles.SumsFrom(map[string]float64{"t.answers": 1}, epoch)}
	push(t, s, "a", 2, bare)
	got := load(t, s, gpu)[gpu]
	sameSlow(t, "after a day", got, first.Sums, 0.5)
	Same(t, "the rest after a day", rest(got), rest(sum(first, bare)))
	s.Pass(profiles.SlowHalfLife)
	push(t, s, "a", 3, first)
	sameSlow(t, "after two days, with as much again", load(t, s, gpu)[gpu], first.Sums, 1.25)
	for seq := uint64(4); seq < 24; seq++ {
		s.Pass(profiles.SlowHalfLife / 20)
		push(t, s, "a", seq, bare)
	}
	sameSlow(t, "a day later, in twenty pieces", load(t, s, gpu)[gpu], first.Sums, 0.625)
	s.Pass(-time.Hour)
	push(t, s, "a", 24, bare)
	sameSlow(t, "after the clock was set back", load(t, s, gpu)[gpu], first.Sums, 0.625)
}

func aRetryOfTheSlowCopyCountsOnce(t *testing.T, s Subject) {
	d := delta(gpu, 64, 0)
	push(t, s, "a", 1, delta(gpu, 64, 0))
	for range 3 {
		push(t, s, "a", 2, d)
		s.Pass(time.Hour)
	}
	Same(t, "sent three times within hours", load(t, s, gpu)[gpu], sum(delta(gpu, 64, 0), d))
}

func theSlowCopySurvivesARestart(t *testing.T, s Subject) {
	first := delta(gpu, 64, 0)
	push(t, s, "a", 1, first)
	s.Pass(profiles.SlowHalfLife)
	again := s.Reopen()
	sameSlow(t, "loaded", load(t, again, gpu)[gpu], first.Sums, 1)
	push(t, again, "b", 1, first)
	sameSlow(t, "with as much again a day later", load(t, again, gpu)[gpu], first.Sums, 1.5)
}

// Sums that were stored before there was a slow copy begin one.
func sumsWithoutASlowCopyAreTaken(t *testing.T, s Subject) {
	old := delta(gpu, 64, 0)
	old.Sums = rest(old.Sums)
	push(t, s, "a", 1, old)
	Same(t, "old", load(t, s, gpu)[gpu], old.Sums)
	push(t, s, "a", 2, delta(gpu, 1, 0))
	Same(t, "old and new", load(t, s, gpu)[gpu], sum(old, delta(gpu, 1, 0)))
}
