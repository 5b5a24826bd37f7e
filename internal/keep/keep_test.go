package keep

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Whatever was there and whatever is asked for: each key has one entry, made only
// where there was none, each entry of before is kept or gone, and before is as it was.
func TestMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.IntRange(0, 9)
		before := map[int]*int{}
		for _, k := range rapid.SliceOf(key).Draw(t, "before") {
			before[k] = new(int)
		}
		asked := rapid.SliceOf(key).Draw(t, "asked")
		was := maps.Clone(before)
		made := map[int]*int{}
		now, gone := Map(before, slices.Values(asked), func(k int) *int {
			if made[k] != nil || before[k] != nil {
				t.Errorf("a second entry is made for %d", k)
			}
			made[k] = new(int)
			return made[k]
		})
		if !maps.Equal(before, was) {
			t.Errorf("before was %v and is %v", was, before)
		}
		for _, k := range asked {
			if want := before[k]; now[k] == nil || want != nil && now[k] != want || want == nil && now[k] != made[k] {
				t.Errorf("%d has not the entry that it had, or the one that was made", k)
			}
		}
		for k := range now {
			if !slices.Contains(asked, k) {
				t.Errorf("%d was not asked for", k)
			}
		}
		for k, v := range before {
			if _, stays := now[k]; stays == (gone[k] == v) {
				t.Errorf("%d is both kept and gone, or neither", k)
			}
		}
		if len(gone)+len(now)-len(made) != len(before) {
			t.Errorf("%d gone and %d kept of %d", len(gone), len(now)-len(made), len(before))
		}
	})
}

func TestNothingBefore(t *testing.T) {
	now, gone := Map(nil, slices.Values([]string{"a", "a"}), func(k string) string { return k + "!" })
	if !maps.Equal(now, map[string]string{"a": "a!"}) || len(gone) > 0 {
		t.Errorf("now %v, gone %v", now, gone)
	}
}
