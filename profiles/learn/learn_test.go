package learn_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/learn"
	"github.com/pacer-dev/pacer/profiles/storetest"
)

func TestWhatIsLearnedReachesTheStoreAndTheCurves(t *testing.T) {
	whileLearning(t, func(t *testing.T, b *bench, stop func() time.Duration) {
		b.teach(gpu)
		pass(3100 * time.Millisecond)
		b.near("in the store", b.stored(gpu), perAnswer)
		b.near("in the curve", b.book.Curve(gpu).Tokens(), perAnswer)
		if curves, up, lag := b.state(); curves != 3 || !up || lag != 0 {
			t.Errorf("after 3 s: %d refits, up %v, lag %v; want 3, true, 0", curves, up, lag)
		}
		if n := b.stored(second); n != 0 {
			t.Errorf("the other target has %v tokens", n)
		}
		stop()
		if b.log.Len() > 0 {
			t.Errorf("logged though nothing changed:\n%s", b.log.String())
		}
	})
}

// Two gateways on one store: each knows what the other learned, once.
func TestReplicasLearnFromEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		theirs := profiles.NewBook(profiles.Options{})
		theirs.Ensure(gpu, second)
		other := b.newLoop("b", theirs)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- other.Run(ctx) }()
		stop := b.run()
		for range 10 {
			b.teach(gpu)
			storetest.Teach(theirs, gpu)
			pass(3 * time.Second)
		}
		for name, book := range map[string]*profiles.Book{"ours": b.book, "theirs": theirs} {
			b.near(name, book.Curve(gpu).Tokens(), 20*perAnswer)
		}
		b.near("the store", b.stored(gpu), 20*perAnswer)
		cancel()
		<-done
		stop()
	})
}

func TestStartReadsTheCurvesOfEarlierDays(t *testing.T) {
	whileLearning(t, func(t *testing.T, b *bench, stop func() time.Duration) {
		b.teach(gpu)
		pass(3 * time.Second)
		stop()

		reborn := profiles.NewBook(profiles.Options{})
		reborn.Ensure(gpu, second)
		before, _, _ := b.state()
		b.newLoop("a2", reborn).Start(t.Context())
		if after, up, _ := b.state(); after != before+1 || !up {
			t.Errorf("%d refits at the start, up %v; want 1, true", after-before, up)
		}
		b.near("known at the start", reborn.Curve(gpu).Tokens(), perAnswer)
		if !reborn.Curve(gpu).Known() {
			t.Error("the curve is not known after a restart")
		}
	})
}

func TestStartDoesNotWaitForAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.store.set(hang, nil)
		start := time.Now()
		b.loop.Start(t.Context())
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("Start took %v, want 2s at most", took)
		}
		if _, up, _ := b.state(); up {
			t.Error("the store is told to be up")
		}
	})
}

// A store that hangs holds up nothing: curves come from what is known here,
// and everything arrives once when it is back.
func TestHangingStoreDoesNotStopLearning(t *testing.T) {
	whileLearning(t, func(t *testing.T, b *bench, stop func() time.Duration) {
		b.store.set(hang, nil)
		for range 10 {
			b.teach(gpu)
			pass(3 * time.Second)
		}
		// One refit a second, but for the first fold, which waits for the store.
		if curves, up, lag := b.state(); curves < 29 || up || lag < 28*time.Second || lag > 31*time.Second {
			t.Errorf("after 30 s: %d refits, up %v, lag %v; want at least 29, false, about 29s", curves, up, lag)
		}
		b.near("known here", b.book.Curve(gpu).Tokens(), 10*perAnswer)
		b.store.set(nil, nil)
		pass(5 * time.Second)
		b.near("in the store", b.stored(gpu), 10*perAnswer)
		b.near("in the curve", b.book.Curve(gpu).Tokens(), 10*perAnswer)
		if _, up, lag := b.state(); !up || lag != 0 {
			t.Errorf("after it is back: up %v, lag %v; want true, 0", up, lag)
		}
		stop()
		if b.log.Len() > 0 { // share.Link says it, for all exchanges
			t.Errorf("an outage is said:\n%s", b.log.String())
		}
	})
}

// While the first push is retried unchanged, all later deltas wait as one.
func TestDeltasWaitAsOne(t *testing.T) {
	whileLearning(t, func(t *testing.T, b *bench, stop func() time.Duration) {
		b.store.set(out, nil)
		for range 20 {
			b.teach(gpu)
			b.teach(second)
			pass(3 * time.Second)
		}
		b.store.set(nil, nil)
		pass(5 * time.Second)
		stop()
		b.near("in the store", b.stored(gpu), 20*perAnswer)
		b.near("in the store", b.stored(second), 20*perAnswer)

		var first []profiles.Delta
		for i, p := range b.store.pushes {
			if p.seq > 2 {
				t.Errorf("push %d has number %d: the waiting deltas went out in pieces", i, p.seq)
			}
			if len(p.deltas) > 2 {
				t.Errorf("push %d has %d deltas for two targets", i, len(p.deltas))
			}
			if p.seq == 1 && first == nil {
				first = p.deltas
			}
			if p.seq == 1 {
				sameDeltas(t, "retry", p.deltas, first)
			}
		}
		if n := len(b.store.pushes); n < 30 {
			t.Errorf("%d pushes in a minute's outage: it was not tried again", n)
		}
	})
}

func sameDeltas(t *testing.T, what string, got, want []profiles.Delta) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d deltas, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i].Target != want[i].Target {
			t.Fatalf("%s: delta %d is of %v, want %v", what, i, got[i].Target, want[i].Target)
		}
		storetest.Same(t, what, got[i].Sums, want[i].Sums)
	}
}

// The answer of a push is lost although the deltas arrived: sent again, they
// do not count twice, neither in the store nor here.
func TestLostAnswerDoesNotCountTwice(t *testing.T) {
	whileLearning(t, func(t *testing.T, b *bench, _ func() time.Duration) {
		b.store.set(nil, func(op string) error {
			if op == "push" {
				return errOut
			}
			return nil
		})
		b.teach(gpu)
		pass(5 * time.Second)
		b.near("known here", b.book.Curve(gpu).Tokens(), perAnswer)
		b.store.set(nil, nil)
		pass(3 * time.Second)
		b.near("in the store", b.stored(gpu), perAnswer)
		b.near("in the curve", b.book.Curve(gpu).Tokens(), perAnswer)
	})
}

// Pushes arrive and loads do not: the deltas go on counting here, once, until
// sums come that hold them.
func TestDeltasCountHereUntilTheSumsAreLoaded(t *testing.T) {
	whileLearning(t, func(t *testing.T, b *bench, _ func() time.Duration) {
		b.store.set(func(_ context.Context, op string) error {
			if op == "load" {
				return errOut
			}
			return nil
		}, nil)
		for range 10 {
			b.teach(gpu)
			pass(3 * time.Second)
		}
		b.near("in the store", b.stored(gpu), 10*perAnswer)
		b.near("known here", b.book.Curve(gpu).Tokens(), 10*perAnswer)
		b.store.set(nil, nil)
		pass(3 * time.Second)
		b.near("in the curve", b.book.Curve(gpu).Tokens(), 10*perAnswer)
	})
}

// A target that the store does not take does not hold up the others, and is
// not forgotten here.
func TestRefusedTargetDoesNotHoldUpTheOthers(t *testing.T) {
	whileLearning(t, func(t *testing.T, b *bench, _ func() time.Duration) {
		b.teach(second)
		pass(3 * time.Second)
		b.near("taken of the second", b.stored(second), perAnswer)
		b.store.mu.Lock()
		b.store.refuse = second
		b.store.mu.Unlock()
		theirs := profiles.NewBook(profiles.Options{})
		storetest.Teach(theirs, gpu)
		must.Do(t, b.store.Memory.Push(t.Context(), "b", 1, theirs.Fold(time.Now())))
		for range 5 {
			b.teach(gpu)
			b.teach(second)
			pass(3 * time.Second)
		}
		if last := b.store.pushes[len(b.store.pushes)-1]; last.seq < 5 {
			t.Errorf("the last push has number %d: they are held up", last.seq)
		}
		b.near("in the store", b.stored(gpu), 6*perAnswer)
		b.near("in the curve, with what another replica learned", b.book.Curve(gpu).Tokens(), 6*perAnswer)
		b.near("taken of the second", b.stored(second), perAnswer)
		b.near("in the curve of the second", b.book.Curve(second).Tokens(), 6*perAnswer)
		b.logged("curves of a target are not shared", 1)
	})
}

func TestTheLastSecondIsPushedAtTheEnd(t *testing.T) {
	whileLearning(t, func(t *testing.T, b *bench, stop func() time.Duration) {
		pass(1500 * time.Millisecond)
		b.teach(gpu)
		if took := stop(); took > time.Second {
			t.Errorf("the end took %v, want 1s at most", took)
		}
		b.near("in the store", b.stored(gpu), perAnswer)
	})
}

func TestTheEndDoesNotWaitForAStoreThatHangs(t *testing.T) {
	whileLearning(t, func(t *testing.T, b *bench, stop func() time.Duration) {
		b.store.set(hang, nil)
		b.teach(gpu)
		pass(1500 * time.Millisecond) // a push is out
		b.teach(gpu)
		if took := stop(); took > time.Second {
			t.Errorf("the end took %v, want 1s at most", took)
		}
		b.logged("does not reach the store", 1)
	})
}

// What was sent and not acknowledged goes first at the end, under its number.
func TestTheEndSendsTheUnacknowledgedAgain(t *testing.T) {
	whileLearning(t, func(t *testing.T, b *bench, stop func() time.Duration) {
		b.store.set(nil, func(op string) error { return errOut })
		b.teach(gpu)
		pass(1500 * time.Millisecond)
		b.teach(gpu)
		b.store.set(nil, nil)
		stop()
		b.near("in the store", b.stored(gpu), 2*perAnswer)
	})
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	full := learn.Options{
		Book: profiles.NewBook(profiles.Options{}), Store: &learn.Memory{}, Replica: "a",
		Log: slog.New(slog.DiscardHandler), OnCurves: func(time.Time, map[profiles.Target]*profiles.Curve) {},
	}
	if _, err := learn.New(full); err != nil {
		t.Fatalf("New: %v", err)
	}
	for field, clear := range map[string]func(*learn.Options){
		"Book":     func(o *learn.Options) { o.Book = nil },
		"Store":    func(o *learn.Options) { o.Store = nil },
		"Replica":  func(o *learn.Options) { o.Replica = "" },
		"Log":      func(o *learn.Options) { o.Log = nil },
		"OnCurves": func(o *learn.Options) { o.OnCurves = nil },
	} {
		o := full
		clear(&o)
		if _, err := learn.New(o); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("New without %s = %v, want an error that names it", field, err)
		}
	}
}

// What a store says cannot be is not sent again, counts nowhere, and is said
// once; the store works on.
func TestADroppedDeltaIsForgotten(t *testing.T) {
	whileLearning(t, func(t *testing.T, b *bench, _ func() time.Duration) {
		b.teach(gpu)
		pass(9 * time.Second) // its last window is closed, too
		b.store.set(func(_ context.Context, op string) error {
			if op != "push" {
				return nil
			}
			var dropped profiles.DroppedError
			dropped.Add(gpu, &profiles.ImpossibleError{Field: "b0.y", Found: "-5"})
			return dropped.OrNil()
		}, nil)
		for range 5 {
			b.teach(gpu)
			pass(9 * time.Second)
		}
		b.near("in the curve", b.book.Curve(gpu).Tokens(), perAnswer)
		if _, up, lag := b.state(); !up || lag != 0 {
			t.Errorf("up %v, lag %v; want true and nothing that waits", up, lag)
		}
		b.logged("cannot be", 1)
		b.logged("not shared", 0)
		b.store.set(nil, nil)
		b.teach(gpu)
		pass(9 * time.Second)
		b.near("in the store", b.stored(gpu), 2*perAnswer)
	})
}
