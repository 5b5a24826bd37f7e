// Package storetest is the one suite that every profiles.Store must pass: what
// it stores is a sum, to the last digits, and counts once.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// HalfLife is what a store under test must be made with.
const HalfLife = 10 * time.Minute

// tolerance is the relative difference that the order of additions may make.
const tolerance = 1e-12

// Subject is a store under test.
type Subject struct {
	profiles.Store // empty, with that HalfLife

	// Pass lets d go by on the clock of the store, at once.
	Pass func(d time.Duration)

	// Reopen returns the store as a process finds it that starts now.
	Reopen func() profiles.Store
}

// Run runs the suite. What open makes is cleaned up by the test it is given.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Subject)
	}{
		{"TheSlowCopyFadesByTheClockOfTheStore", theSlowCopyFadesByTheClockOfTheStore},
		{"ARetryOfTheSlowCopyCountsOnce", aRetryOfTheSlowCopyCountsOnce},
		{"TheSlowCopySurvivesARestart", theSlowCopySurvivesARestart},
		{"SumsWithoutASlowCopyAreTaken", sumsWithoutASlowCopyAreTaken},
		{"AShiftMovesWhatIsThere", aShiftMovesWhatIsThere},
		{"AShiftCountsOnce", aShiftCountsOnce},
		{"ShiftsWithoutSenseDoNothing", shiftsWithoutSenseDoNothing},
		{"AShiftSurvivesARestart", aShiftSurvivesARestart},
		{"ReplicasShiftAtOnce", replicasShiftAtOnce},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
	for _, c := range []struct {
		name string
		test func(*testing.T, profiles.Store)
	}{
		{"UnknownTargetsAreAbsent", unknownTargetsAreAbsent},
		{"WhatIsPushedIsLoaded", whatIsPushedIsLoaded},
		{"PushesAddUp", pushesAddUp},
		{"ASequenceNumberCountsOnce", aSequenceNumberCountsOnce},
		{"ReplicasAddUp", replicasAddUp},
		{"OlderSumsFadeAsInAdd", olderSumsFadeAsInAdd},
		{"SilentGroupsStayAsTheyAre", silentGroupsStayAsTheyAre},
		{"UpdatedKeepsTheLater", updatedKeepsTheLater},
		{"OddNamesAreKeptApart", oddNamesAreKeptApart},
		{"ASeparateTargetIsAnother", aSeparateTargetIsAnother},
		{"ManyTargetsInOnePush", manyTargetsInOnePush},
		{"OnlyWhatIsAskedForIsLoaded", onlyWhatIsAskedForIsLoaded},
		{"WhatIsLoadedIsACopy", whatIsLoadedIsACopy},
		{"ReplicasPushAtOnce", replicasPushAtOnce},
		{"AnEndedContextIsAnError", anEndedContextIsAnError},
		{"WhatCannotBeIsDropped", whatCannotBeIsDropped},
		{"WhatIsAdoptedIsLoaded", whatIsAdoptedIsLoaded},
		{"WhatIsThereStaysOrIsReplaced", whatIsThereStaysOrIsReplaced},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t).Store) })
	}
}

var (
	gpu   = profiles.Target{Backend: "gpu", Model: "llama"}
	other = profiles.Target{Backend: "gpu", Model: "qwen"}
	epoch = time.Date(2026, 3, 1, 12, 0, 0, 123_000, time.UTC)
)

// delta returns evidence for t: three bins, the fit and the totals, all
// different, with occupied seconds in each. It passes Check; without occupied
// seconds, up to a size of some hundreds.
func delta(t profiles.Target, size, occupied float64) profiles.Delta {
	fields := map[string]float64{
		"f.a00": 1.5 * size, "f.a33": size, "f.yy": size, "f.b3": size / 3, "f.t": occupied, "f.k": size, "f.k4": size,
		"s0.a00": 1.25 * size, "s4.a33": size, "s4.yy": size, "s4.b3": size / 7, "s4.k": size, "s4.t": occupied,
		"t.answers": size, "t.output": 123.456 * size, "t.t": occupied,
		"ft.w": size, "ft.wy": 5 * size, "ft.y": size / 9, "ft.n": size, "g.t": occupied,
		"m.t": occupied, "m.p": size * 7, "m.y": size, "m.n": size, "m.x": size * 9, "q.t": occupied, "q.n": size, "q.x": size * 8, "q.xx": size * 99,
	}
	for i, bin := range []int{0, 7, 23} {
		name := "b" + strconv.Itoa(bin) + "."
		_, n := profiles.BinBounds(bin)
		tokens := size * math.Pi / 10 * float64(i+1)
		fields[name+"s"] = occupied * float64(n)
		fields[name+"y"] = tokens
		fields[name+"k"] = tokens / float64(n)
		fields[name+"r"] = tokens * math.Sqrt(float64(n))
		fields[name+"n"] = tokens * float64(n)
		fields[name+"t"] = occupied
		fields[name+"ss"], fields[name+"yy"], fields[name+"sy"] = size/11, size, size/13
	}
	return profiles.Delta{Target: t, Sums: profiles.SumsFrom(fields, epoch)}
}

func push(t *testing.T, s profiles.Store, replica string, seq uint64, deltas ...profiles.Delta) {
	t.Helper()
	if err := s.Push(t.Context(), replica, seq, deltas); err != nil {
		t.Fatalf("push %d of %s: %v", seq, replica, err)
	}
}

func load(t *testing.T, s profiles.Store, targets ...profiles.Target) map[profiles.Target]profiles.Sums {
	t.Helper()
	sums, err := s.Load(t.Context(), targets)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return sums
}

// sum adds deltas as profiles does.
func sum(deltas ...profiles.Delta) profiles.Sums {
	var s profiles.Sums
	for _, d := range deltas {
		s.Add(d, HalfLife)
	}
	return s
}

// Learned returns sums that some evidence gave, the more the larger size is.
func Learned(size float64) profiles.Sums { return sum(delta(profiles.Target{}, size, 2)) }

// Fields returns the sums by name, for a comparison that says which differs.
func Fields(s profiles.Sums) map[string]float64 {
	m := map[string]float64{}
	for _, g := range s.Groups() {
		for _, f := range g.Fields {
			if f.Value != 0 {
				m[f.Name] = f.Value
			}
		}
	}
	return m
}

// Same reports every sum that differs by more than rounding, and a different
// Updated.
func Same(t *testing.T, what string, got, want profiles.Sums) {
	t.Helper()
	g, w := Fields(got), Fields(want)
	if len(w) == 0 {
		t.Fatalf("%s: want no sums at all: the test compares nothing", what)
	}
	names := maps.Clone(w)
	maps.Copy(names, g)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if diff := math.Abs(g[name] - w[name]); !(diff <= tolerance*math.Abs(w[name])) {
			t.Errorf("%s: %s = %.17g, want %.17g", what, name, g[name], w[name])
		}
	}
	if got.Shifts != want.Shifts {
		t.Errorf("%s: %d shifts, want %d", what, got.Shifts, want.Shifts)
	}
	if !got.Updated.Equal(want.Updated) {
		t.Errorf("%s: updated %v, want %v", what, got.Updated, want.Updated)
	}
}

func unknownTargetsAreAbsent(t *testing.T, s profiles.Store) {
	if got := load(t, s); len(got) != 0 {
		t.Errorf("asked for nothing, got %d targets", len(got))
	}
	if got := load(t, s, gpu, other); len(got) != 0 {
		t.Errorf("an empty store has %d targets", len(got))
	}
	push(t, s, "a", 1)
	push(t, s, "a", 2, delta(gpu, 1, 1))
	if _, ok := load(t, s, gpu, other)[other]; ok {
		t.Error("a target that nobody pushed is there")
	}
}

func whatIsPushedIsLoaded(t *testing.T, s profiles.Store) {
	d := delta(gpu, 1.0/3, 17)
	push(t, s, "a", 1, d)
	Same(t, "gpu", load(t, s, gpu)[gpu], d.Sums)
}

func pushesAddUp(t *testing.T, s profiles.Store) {
	var all []profiles.Delta
	for seq := uint64(1); seq <= 20; seq++ {
		d := delta(gpu, 1/float64(seq), float64(seq))
		all = append(all, d)
		push(t, s, "a", seq, d)
	}
	Same(t, "gpu", load(t, s, gpu)[gpu], sum(all...))
}

func aSequenceNumberCountsOnce(t *testing.T, s profiles.Store) {
	first, second := delta(gpu, 1, 5), delta(gpu, 2, 5)
	push(t, s, "a", 1, first)
	push(t, s, "a", 1, first)
	Same(t, "after the same twice", load(t, s, gpu)[gpu], first.Sums)
	push(t, s, "a", 2, second, delta(other, 3, 0))
	push(t, s, "a", 1, first) // late
	push(t, s, "a", 2, second, delta(other, 3, 0))
	got := load(t, s, gpu, other)
	Same(t, "after a late one", got[gpu], sum(first, second))
	Same(t, "the other", got[other], delta(other, 3, 0).Sums)
	// The number of a push that held nothing for a target is no hindrance.
	push(t, s, "a", 3, delta(gpu, 1, 0))
	push(t, s, "a", 4, delta(other, 4, 0))
	Same(t, "the other at last", load(t, s, other)[other], sum(delta(other, 3, 0), delta(other, 4, 0)))
}

func replicasAddUp(t *testing.T, s profiles.Store) {
	a, b := delta(gpu, 1, 5), delta(gpu, 10, 7)
	push(t, s, "a", 1, a)
	push(t, s, "b", 1, b) // the same number of another replica
	Same(t, "both", load(t, s, gpu)[gpu], sum(a, b))
}

func olderSumsFadeAsInAdd(t *testing.T, s profiles.Store) {
	// An hour is six half-lives: of the first a 64th is left.
	first, second := delta(gpu, 64, 0), delta(gpu, 1, 3600)
	push(t, s, "a", 1, first)
	push(t, s, "a", 2, second)
	got := load(t, s, gpu)[gpu]
	Same(t, "after an hour", got, sum(first, second))
	if answers := Fields(got)["t.answers"]; math.Abs(answers-2) > 1e-9 {
		t.Errorf("64 answers an hour of use ago and 1 of now count %v, want 2", answers)
	}
}

func silentGroupsStayAsTheyAre(t *testing.T, s profiles.Store) {
	first := delta(gpu, 1, 3)
	second := profiles.Delta{Target: gpu, Sums: profiles.SumsFrom(map[string]float64{"b7.t": 600, "b7.s": 4800}, epoch)}
	push(t, s, "a", 1, first)
	push(t, s, "a", 2, second)
	got := load(t, s, gpu)[gpu]
	Same(t, "gpu", got, sum(first, second))
	was, is := Fields(first.Sums), Fields(got)
	if is["b0.y"] != was["b0.y"] {
		t.Errorf("b0.y = %v, want %v: nothing came in for it", is["b0.y"], was["b0.y"])
	}
	// The delta has no tokens for bin 7, and yet they fade with the bin.
	if want := was["b7.y"] / 2; math.Abs(is["b7.y"]-want) > 1e-9 {
		t.Errorf("b7.y = %v, want half of %v", is["b7.y"], was["b7.y"])
	}
}

func updatedKeepsTheLater(t *testing.T, s profiles.Store) {
	at := func(when time.Time) profiles.Delta {
		d := delta(gpu, 1, 0)
		d.Sums.Updated = when
		return d
	}
	for i, c := range []struct{ pushed, want time.Time }{
		{time.Time{}, time.Time{}},
		{epoch, epoch},
		{epoch.Add(time.Minute), epoch.Add(time.Minute)},
		{epoch.Add(-time.Hour), epoch.Add(time.Minute)},
		{time.Time{}, epoch.Add(time.Minute)},
	} {
		push(t, s, "a", uint64(i+1), at(c.pushed))
		if got := load(t, s, gpu)[gpu].Updated; !got.Equal(c.want) {
			t.Errorf("after a push of %v: updated %v, want %v", c.pushed, got, c.want)
		}
	}
}

func oddNamesAreKeptApart(t *testing.T, s profiles.Store) {
	names := []string{
		"", "a", "a:b", "a/b", "{a}", "a}b{", "{}", "a b", " a", "ä", "日本", "a%3Ab", "a\x00b", "a\nb", "\xff",
		"meta-llama/Llama-3.1-70B-Instruct:awq", "*", "a:sums:b", "@v",
	}
	var targets []profiles.Target
	var deltas []profiles.Delta
	for _, backend := range names {
		for _, model := range names {
			target := profiles.Target{Backend: backend, Model: model}
			targets = append(targets, target)
			deltas = append(deltas, delta(target, float64(len(deltas)+1), 0))
		}
	}
	push(t, s, "replica {a}: 1", 1, deltas...)
	push(t, s, "replica {a}: 2", 1, deltas...)
	push(t, s, "replica {a}: 2", 1, deltas...)
	got := load(t, s, targets...)
	for i, target := range targets {
		Same(t, fmt.Sprintf("%q %q", target.Backend, target.Model), got[target], sum(deltas[i], deltas[i]))
	}
}

// What is counted by itself has other sums than what is counted with others,
// under the same names, also when both come in one push.
func aSeparateTargetIsAnother(t *testing.T, s profiles.Store) {
	alone := gpu
	alone.Separate = true
	together, apart := delta(gpu, 1, 10), delta(alone, 3, 20)
	push(t, s, "a", 1, together, apart)
	push(t, s, "a", 1, apart, together) // a retry
	push(t, s, "a", 2, apart)
	got := load(t, s, gpu, alone)
	Same(t, "together", got[gpu], sum(together))
	Same(t, "apart", got[alone], sum(apart, apart))
	if sums := load(t, s, alone); len(sums) != 1 {
		t.Errorf("%d targets, want the one that was asked for", len(sums))
	}
}

func manyTargetsInOnePush(t *testing.T, s profiles.Store) {
	var targets []profiles.Target
	var deltas []profiles.Delta
	for i := range 300 {
		target := profiles.Target{Backend: "gpu-" + strconv.Itoa(i%50), Model: "model-" + strconv.Itoa(i)}
		targets = append(targets, target)
		deltas = append(deltas, delta(target, float64(i+1), 1))
	}
	push(t, s, "a", 1, deltas...)
	got := load(t, s, targets...)
	if len(got) != len(targets) {
		t.Fatalf("%d targets, want %d", len(got), len(targets))
	}
	for i, target := range targets {
		Same(t, target.Model, got[target], deltas[i].Sums)
	}
}

func onlyWhatIsAskedForIsLoaded(t *testing.T, s profiles.Store) {
	push(t, s, "a", 1, delta(gpu, 1, 0), delta(other, 2, 0))
	got := load(t, s, other)
	if len(got) != 1 {
		t.Errorf("%d targets, want the one asked for", len(got))
	}
	Same(t, "other", got[other], delta(other, 2, 0).Sums)
}

func whatIsLoadedIsACopy(t *testing.T, s profiles.Store) {
	d := delta(gpu, 1, 0)
	push(t, s, "a", 1, d)
	got := load(t, s, gpu)[gpu]
	got.Add(d, HalfLife)
	Same(t, "gpu", load(t, s, gpu)[gpu], delta(gpu, 1, 0).Sums)
}

// Nothing is lost or doubled when replicas push, push again, and read at once.
// The deltas carry no occupied time, so their order leaves no trace.
func replicasPushAtOnce(t *testing.T, s profiles.Store) {
	const replicas, pushes = 8, 10
	var all []profiles.Delta
	var wg sync.WaitGroup
	for r := range replicas {
		d := delta(gpu, float64(r+1), 0)
		for range pushes {
			all = append(all, d)
		}
		wg.Go(func() {
			for seq := uint64(1); seq <= pushes; seq++ {
				for range 2 {
					if err := s.Push(t.Context(), "replica "+strconv.Itoa(r), seq, []profiles.Delta{d, delta(other, 1, 0)}); err != nil {
						t.Errorf("push: %v", err)
					}
				}
				if _, err := s.Load(t.Context(), []profiles.Target{gpu, other}); err != nil {
					t.Errorf("load: %v", err)
				}
			}
		})
	}
	wg.Wait()
	got := load(t, s, gpu, other)
	Same(t, "gpu", got[gpu], sum(all...))
	if n := Fields(got[other])["t.answers"]; n != replicas*pushes {
		t.Errorf("%v pushes counted for the other, want %d", n, replicas*pushes)
	}
}

func anEndedContextIsAnError(t *testing.T, s profiles.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Push(ctx, "a", 1, []profiles.Delta{delta(gpu, 1, 0)}); err == nil {
		t.Error("a push with an ended context is no error")
	}
	if _, err := s.Load(ctx, []profiles.Target{gpu}); err == nil {
		t.Error("a load with an ended context is no error")
	}
	push(t, s, "a", 1, delta(gpu, 1, 0))
	Same(t, "gpu, sent again", load(t, s, gpu)[gpu], delta(gpu, 1, 0).Sums)
}

// A delta that no streams can have given is dropped and named, whatever comes
// with it is taken, and so is what comes after it.
func whatCannotBeIsDropped(t *testing.T, s profiles.Store) {
	good := delta(gpu, 1, 5)
	push(t, s, "a", 1, good)
	seq := uint64(1)
	for name, fields := range map[string]map[string]float64{
		"tokens below 0":                 {"b7.y": -500},
		"time below 0":                   {"b7.t": -60},
		"speed beyond all":               {"b7.s": 8, "b7.t": 1, "b7.y": 1e9, "b7.k": 1.25e8, "b7.r": 2.8e9, "b7.n": 8e9},
		"ten times the streams":          {"b7.s": 800, "b7.t": 10},
		"a tenth of the streams":         {"b7.s": 8, "b7.t": 10},
		"a year of it":                   {"b0.s": 3e7, "b0.t": 3e7},
		"more steps than tokens":         {"b7.s": 8, "b7.t": 1, "b7.y": 100, "b7.k": 10_000},
		"no moments of anything":         {"b7.sy": 1e6},
		"no normal equations":            {"f.a01": 1e9},
		"a slow copy that is none":       {"s4.b0": -1e9},
		"answers below 0":                {"t.answers": -5},
		"chunks of a million tokens":     {"t.cal": 3, "t.counted": 3e6, "t.chunks": 3},
		"first tokens that take a month": {"ft.n": 1, "ft.y": 3e6},
		"more fresh than asked for":      {"ft.asked": 10, "ft.fresh": 1000},
		"a knee beyond all":              {"kn.late": 1, "kn.n": 1e15, "kn.nn": 1e30},
		"deliveries below 0":             {"d.3": -50},
	} {
		seq++
		err := s.Push(t.Context(), "a", seq, []profiles.Delta{
			{Target: gpu, Sums: profiles.SumsFrom(fields, epoch)},
			{Target: other, Sums: profiles.SumsFrom(map[string]float64{"t.answers": 1}, epoch)},
		})
		var dropped *profiles.DroppedError
		if !errors.As(err, &dropped) || dropped.Target != gpu || dropped.More != 0 {
			t.Errorf("%s: %v, want that of %v it is dropped", name, err, gpu)
			continue
		}
		got := load(t, s, gpu, other)
		Same(t, name, got[gpu], good.Sums)
		if n := Fields(got[other])["t.answers"]; n != float64(seq-1) {
			t.Errorf("%s: %v answers of the other, want %d", name, n, seq-1)
		}
	}
	push(t, s, "a", seq+1, delta(gpu, 2, 5))
	Same(t, "with another", load(t, s, gpu)[gpu], sum(good, delta(gpu, 2, 5)))
}
