package storetest

import (
	"math"
	"strconv"
	"sync"
	"testing"

	"github.com/pacer-dev/pacer/profiles"
)

// shifted is a delta that says that the engine has become factor times as slow.
func shifted(t profiles.Target, size float64, from uint64, factor float64) profiles.Delta {
	d := delta(t, size, 0)
	d.Shift = profiles.Shift{From: from, To: from + 1, Factor: factor}
	return d
}

// A shift multiplies the seconds of what is there, with the weights of the rows,
// and adds the delta as it is.
func aShiftMovesWhatIsThere(t *testing.T, s Subject) {
	first, second := delta(gpu, 64, 8), shifted(gpu, 1, 0, 2)
	push(t, s, "a", 1, first, delta(other, 3, 0))
	push(t, s, "a", 2, second)
	got := load(t, s, gpu, other)
	Same(t, "gpu", got[gpu], sum(first, second))
	Same(t, "another target", got[other], delta(other, 3, 0).Sums)
	was, is := Fields(first.Sums), Fields(got[gpu])
	added := Fields(second.Sums)
	for name, factor := range map[string]float64{
		"b7.s": 2, "b7.t": 2, "b7.y": 1, "b7.k": 1, "b7.ss": 4, "b7.sy": 2,
		"f.a00": 0.25, "f.b3": 0.5, "f.t": 2, "f.k": 1, "f.k4": 1, "s4.b3": 0.5, "s4.k": 1, "s0.a00": 0.25,
		"t.answers": 1, "t.output": 1, "ft.wy": 0.5, "ft.y": 2, "ft.n": 1,
	} {
		want := factor*was[name] + added[name]
		if was[name] == 0 {
			t.Fatalf("%s: the test compares nothing", name)
		}
		if math.Abs(is[name]-want) > tolerance*want {
			t.Errorf("%s = %v, want %v times %v and %v", name, is[name], factor, was[name], added[name])
		}
	}
	if is["g.ln"] != math.Log(2) || got[gpu].Shifts != 1 || got[other].Shifts != 0 {
		t.Errorf("g.ln = %v after %d shifts and %d of another target, want ln 2, 1 and 0", is["g.ln"], got[gpu].Shifts, got[other].Shifts)
	}
}

func aShiftCountsOnce(t *testing.T, s Subject) {
	first, mine, theirs := delta(gpu, 64, 0), shifted(gpu, 1, 0, 3), shifted(gpu, 2, 0, 2.9)
	push(t, s, "a", 1, first)
	for range 3 {
		push(t, s, "a", 2, mine)
	}
	push(t, s, "b", 1, theirs) // who found the same a moment later
	push(t, s, "a", 2, mine)
	got := load(t, s, gpu)[gpu]
	Same(t, "gpu", got, sum(first, mine, theirs))
	if ln := Fields(got)["g.ln"]; ln != math.Log(3) || got.Shifts != 1 {
		t.Errorf("g.ln = %v after %d shifts, want ln 3 after one", ln, got.Shifts)
	}
	back := shifted(gpu, 1, 1, 1.0/3)
	push(t, s, "b", 2, back)
	got = load(t, s, gpu)[gpu]
	Same(t, "as it was", got, sum(first, mine, theirs, back))
	if ln := Fields(got)["g.ln"]; math.Abs(ln) > 1e-15 || got.Shifts != 2 {
		t.Errorf("g.ln = %v after %d shifts, want 0 after two", ln, got.Shifts)
	}
}

// What nobody could mean shifts nothing, and adds its sums.
func shiftsWithoutSenseDoNothing(t *testing.T, s Subject) {
	all := []profiles.Delta{delta(gpu, 64, 0)}
	push(t, s, "a", 1, all[0])
	for i, x := range []profiles.Shift{
		{From: 1, To: 2, Factor: 2},
		{From: 0, To: 0, Factor: 2},
		{From: 0, To: 1},
		{From: 0, To: 1, Factor: -2},
		{From: 0, To: 1, Factor: math.NaN()},
		{From: 0, To: 1, Factor: math.Inf(1)},
		{From: 0, To: 1, Factor: 1e9},
	} {
		d := delta(gpu, 1, 0)
		d.Shift = x
		all = append(all, d)
		push(t, s, "a", uint64(i+2), d)
	}
	got := load(t, s, gpu)[gpu]
	Same(t, "gpu", got, sum(all...))
	if is, was := Fields(got)["b7.s"], Fields(all[0].Sums)["b7.s"]; got.Shifts != 0 || is > 2*was {
		t.Errorf("b7.s = %v of %v after %d shifts, want none", is, was, got.Shifts)
	}
}

func aShiftSurvivesARestart(t *testing.T, s Subject) {
	first, second := delta(gpu, 64, 0), shifted(gpu, 1, 0, 2)
	push(t, s, "a", 1, first)
	push(t, s, "a", 2, second)
	again := s.Reopen()
	Same(t, "loaded", load(t, again, gpu)[gpu], sum(first, second))
	third := shifted(gpu, 1, 1, 0.5)
	push(t, again, "b", 1, third)
	Same(t, "and shifted back", load(t, again, gpu)[gpu], sum(first, second, third))
}

// Of replicas that find the same at once, one is heard.
func replicasShiftAtOnce(t *testing.T, s Subject) {
	const replicas = 8
	push(t, s, "first", 1, delta(gpu, 64, 0))
	var all sync.WaitGroup
	for r := range replicas {
		all.Go(func() {
			for range 2 {
				if err := s.Push(t.Context(), "replica "+strconv.Itoa(r), 1, []profiles.Delta{shifted(gpu, 0, 0, 2)}); err != nil {
					t.Errorf("push: %v", err)
				}
			}
		})
	}
	all.Wait()
	got := load(t, s, gpu)[gpu]
	Same(t, "gpu", got, sum(delta(gpu, 64, 0), shifted(gpu, 0, 0, 2)))
	if got.Shifts != 1 {
		t.Errorf("%d shifts, want 1", got.Shifts)
	}
}
