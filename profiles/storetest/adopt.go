package storetest

import (
	"testing"

	"github.com/pacer-dev/pacer/profiles"
)

// adopt lets s take over sums of a delta for each target.
func adopt(t *testing.T, s profiles.Store, replace bool, deltas ...profiles.Delta) (left []profiles.Target) {
	t.Helper()
	sums := map[profiles.Target]profiles.Sums{}
	for _, d := range deltas {
		sums[d.Target] = sum(d)
	}
	left, err := s.(profiles.Adopter).Adopt(t.Context(), sums, replace)
	if err != nil {
		t.Fatalf("adopt: %v", err)
	}
	return left
}

// What is adopted is loaded, and what is pushed later adds to it.
func whatIsAdoptedIsLoaded(t *testing.T, s profiles.Store) {
	first, second := delta(gpu, 10, 2), delta(other, 20, 3)
	if left := adopt(t, s, false, first, second); len(left) != 0 {
		t.Errorf("left alone: %v", left)
	}
	got := load(t, s, gpu, other)
	Same(t, "adopted", got[gpu], sum(first))
	Same(t, "adopted", got[other], sum(second))
	more := delta(gpu, 5, 1)
	push(t, s, "r", 1, more)
	if got := Fields(load(t, s, gpu)[gpu])["t.answers"]; got <= 10 {
		t.Errorf("after a push there are %v answers, of 10 adopted and 5 pushed", got)
	}
}

// A target that has sums keeps them unless they are to be replaced; one that has none
// takes what is new. A store that has loaded the old ones does not bring them back.
func whatIsThereStaysOrIsReplaced(t *testing.T, s profiles.Store) {
	old, new := delta(gpu, 10, 2), delta(gpu, 30, 4)
	push(t, s, "r", 1, old)
	load(t, s, gpu, other)
	if left := adopt(t, s, false, new, delta(other, 7, 1)); len(left) != 1 || left[0] != gpu {
		t.Errorf("left alone: %v, want that of gpu", left)
	}
	got := load(t, s, gpu, other)
	Same(t, "what was there", got[gpu], sum(old))
	Same(t, "what was not", got[other], sum(delta(other, 7, 1)))
	if left := adopt(t, s, true, new); len(left) != 0 {
		t.Errorf("left alone: %v", left)
	}
	for range 2 {
		Same(t, "replaced", load(t, s, gpu)[gpu], sum(new))
	}
}
