package learn_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/learn"
)

// A round draws each curve once, and the same curves as its steps one by one: where
// chunks are tokens, where they are not and rows wait, and while the store is out.
func TestARoundIsItsStepsInOne(t *testing.T) {
	type replica struct {
		book    *profiles.Book
		store   *faulty
		learner *learn.Learner
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	newReplica := func() replica {
		book := profiles.NewBook(profiles.Options{})
		book.Ensure(gpu, second)
		return replica{book, &faulty{Memory: learn.Memory{Now: func() time.Time { return now }}}, learn.NewLearner(book, 0)}
	}
	inOne, steps := newReplica(), newReplica()
	random := rand.New(rand.NewPCG(1, 1))
	occupancy := profiles.NewOccupancy(now)
	for seconds := range 180 {
		n := 1 + seconds/10
		occupancy.Set(now, n)
		for target, tokens := range map[profiles.Target]int{gpu: 1, second: 3} {
			gap := time.Duration((10 + float64(n)) * (0.9 + 0.2*random.Float64()) * float64(time.Millisecond))
			for _, r := range []replica{inOne, steps} {
				at := now
				s := r.book.Open(target, profiles.Open{Sent: at, Occupancy: occupancy, PromptTokens: 10})
				reads := 0
				for ; at.Before(now.Add(900 * time.Millisecond)); at = at.Add(gap) {
					s.Read(at, 1)
					reads++
				}
				s.Usage(profiles.Usage{PromptTokens: 10, CompletionTokens: tokens * reads})
				s.Close(at, true)
			}
		}
		now = now.Add(time.Second)
		var before func(context.Context, string) error
		if seconds >= 60 && seconds < 90 {
			before = out
		}
		inOne.store.set(before, nil)
		steps.store.set(before, nil)
		inOne.learner.Round(t.Context(), now, inOne.store, "a")
		steps.learner.Fold(now)
		a := steps.learner.Next().Do(t.Context(), steps.store, "a")
		steps.learner.Settle(a)
		steps.learner.Apply(now, a)
		for _, target := range steps.book.Targets() {
			got, want := inOne.book.Curve(target), steps.book.Curve(target)
			for n := range 64 {
				if diff := cmp.Diff(want.At(n), got.At(n), cmpopts.EquateNaNs()); diff != "" {
					t.Fatalf("after %d s at n = %d of %v otherwise than step by step:\n%s", seconds+1, n, target, diff)
				}
			}
		}
	}
	for _, target := range steps.book.Targets() {
		if !steps.book.Curve(target).Known() {
			t.Errorf("no curve of %v was learned", target)
		}
	}
}
