package learn_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/learn"
	"github.com/pacer-dev/pacer/profiles/storetest"
)

var (
	gpu    = profiles.Target{Backend: "gpu", Model: "llama"}
	second = profiles.Target{Backend: "gpu2", Model: "llama"}
)

// faulty is a memory store whose faults a test sets.
type faulty struct {
	learn.Memory

	mu     sync.Mutex
	pushes []pushed
	before func(ctx context.Context, op string) error // before it reaches the memory
	after  func(op string) error                      // when it has: a lost answer
	refuse profiles.Target                            // not taken, and named in every answer
}

type pushed struct {
	seq    uint64
	deltas []profiles.Delta
}

func (f *faulty) faults() (before func(context.Context, string) error, after func(string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.before, f.after
}

func (f *faulty) set(before func(context.Context, string) error, after func(string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

func (f *faulty) do(ctx context.Context, op string, what func() error) error {
	before, after := f.faults()
	if before != nil {
		if err := before(ctx, op); err != nil {
			return err
		}
	}
	if err := what(); err != nil || after == nil {
		return err
	}
	return after(op)
}

func (f *faulty) Push(ctx context.Context, replica string, seq uint64, deltas []profiles.Delta) error {
	f.mu.Lock()
	f.pushes = append(f.pushes, pushed{seq, slices.Clone(deltas)})
	refuse := f.refuse
	f.mu.Unlock()
	return f.do(ctx, "push", func() error {
		var refused error
		taken := slices.DeleteFunc(slices.Clone(deltas), func(d profiles.Delta) bool {
			if d.Target != refuse {
				return false
			}
			refused = refusal{d.Target}
			return true
		})
		if err := f.Memory.Push(ctx, replica, seq, taken); err != nil {
			return err
		}
		return refused
	})
}

func (f *faulty) Load(ctx context.Context, targets []profiles.Target) (sums map[profiles.Target]profiles.Sums, err error) {
	err = f.do(ctx, "load", func() error {
		sums, err = f.Memory.Load(ctx, targets)
		return err
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && f.refuse != (profiles.Target{}) {
		err = refusal{f.refuse}
	}
	return sums, err
}

// hang waits as a server does that accepts and never answers.
func hang(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

var errOut = errors.New("store is out")

func out(context.Context, string) error { return errOut }

// bench is a loop over a book and a faulty store, within a bubble of virtual
// time.
type bench struct {
	t     *testing.T
	book  *profiles.Book
	store *faulty
	loop  *learn.Loop
	log   bytes.Buffer

	mu     sync.Mutex
	curves int // calls of OnCurves
	up     bool
	lag    time.Duration
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, book: profiles.NewBook(profiles.Options{}), store: &faulty{}}
	b.book.Ensure(gpu, second)
	b.loop = b.newLoop("a", b.book)
	return b
}

func (b *bench) newLoop(replica string, book *profiles.Book) *learn.Loop {
	loop, err := learn.New(learn.Options{
		Book: book, Store: b.store, Replica: replica,
		Log: slog.New(slog.NewTextHandler(&b.log, nil)),
		OnCurves: func(_ time.Time, curves map[profiles.Target]*profiles.Curve) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.curves++
			if len(curves) != 2 || curves[gpu] == nil {
				b.t.Errorf("%d curves handed on, want both", len(curves))
			}
		},
		OnStore: func(up bool, lag time.Duration) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.up, b.lag = up, lag
		},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return loop
}

// run starts the loop; stop ends it and returns how long that took.
func (b *bench) run() (stop func() time.Duration) {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- b.loop.Run(ctx) }()
	return func() time.Duration {
		start := time.Now()
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("Run: %v", err)
		}
		return time.Since(start)
	}
}

// pass lets virtual time pass, and everything happen that is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (b *bench) state() (curves int, up bool, lag time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.curves, b.up, b.lag
}

// perAnswer is what one taught stream is worth: its tokens without the first.
const perAnswer = 100

// teach relays one stream of 101 tokens, alone on its backend, that ends now.
func (b *bench) teach(target profiles.Target) {
	teach(b.book, target)
}

func teach(book *profiles.Book, target profiles.Target) {
	const gap = 20 * time.Millisecond
	at := time.Now().Add(-perAnswer * gap)
	occupancy := profiles.NewOccupancy(at)
	occupancy.Set(at, 1)
	s := book.Open(target, profiles.Open{Sent: at, Occupancy: occupancy, PromptTokens: 10})
	for range perAnswer + 1 {
		s.Read(at, 1)
		at = at.Add(gap)
	}
	s.Usage(profiles.Usage{PromptTokens: 10, CompletionTokens: perAnswer + 1})
	s.Close(at, true)
}

// stored returns the tokens of target that the store has, by bin.
func (b *bench) stored(target profiles.Target) float64 {
	sums, err := b.store.Memory.Load(b.t.Context(), []profiles.Target{target})
	if err != nil {
		b.t.Fatal(err)
	}
	return storetest.Fields(sums[target])["b0.y"]
}

// near allows for what fades: a stream of two seconds takes 0.3 % off the
// evidence before it.
func (b *bench) near(what string, got, want float64) {
	b.t.Helper()
	if math.Abs(got-want) > 0.03*want {
		b.t.Errorf("%s: %v tokens, want about %v", what, got, want)
	}
}

func (b *bench) logged(line string, times int) {
	b.t.Helper()
	if n := strings.Count(b.log.String(), line); n != times {
		b.t.Errorf("%q is logged %d times, want %d:\n%s", line, n, times, b.log.String())
	}
}

func TestWhatIsLearnedReachesTheStoreAndTheCurves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		stop := b.run()
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
			teach(theirs, gpu)
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
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		stop := b.run()
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
		b.logged("curves are not shared", 1)
		if _, up, _ := b.state(); up {
			t.Error("the store is told to be up")
		}
	})
}

// A store that hangs holds up nothing: curves come from what is known here,
// and everything arrives once when it is back.
func TestHangingStoreDoesNotStopLearning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		stop := b.run()
		b.store.set(hang, nil)
		for range 10 {
			b.teach(gpu)
			pass(3 * time.Second)
		}
		if curves, up, lag := b.state(); curves < 30 || up || lag < 28*time.Second || lag > 31*time.Second {
			t.Errorf("after 30 s: %d refits, up %v, lag %v; want at least 30, false, about 29s", curves, up, lag)
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
		b.logged("curves are not shared", 1)
		b.logged("curves are shared again", 1)
	})
}

// While the first push is retried unchanged, all later deltas wait as one.
func TestDeltasWaitAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		stop := b.run()
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
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		stop := b.run()
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
		stop()
	})
}

// Pushes arrive and loads do not: the deltas go on counting here, once, until
// sums come that hold them.
func TestDeltasCountHereUntilTheSumsAreLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		stop := b.run()
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
		stop()
	})
}

// refusal is the error of a store that does not take one target.
type refusal struct{ target profiles.Target }

func (r refusal) Error() string              { return "not this one" }
func (r refusal) Refused() []profiles.Target { return []profiles.Target{r.target} }

// A target that the store does not take does not hold up the others, and is
// not forgotten here.
func TestRefusedTargetDoesNotHoldUpTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		stop := b.run()
		b.teach(second)
		pass(3 * time.Second)
		b.near("taken of the second", b.stored(second), perAnswer)
		b.store.mu.Lock()
		b.store.refuse = second
		b.store.mu.Unlock()
		theirs := profiles.NewBook(profiles.Options{})
		teach(theirs, gpu)
		if err := b.store.Memory.Push(t.Context(), "b", 1, theirs.Fold(time.Now())); err != nil {
			t.Fatal(err)
		}
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
		b.logged("curves are not shared", 1)
		stop()
	})
}

func TestTheLastSecondIsPushedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		stop := b.run()
		pass(1500 * time.Millisecond)
		b.teach(gpu)
		if took := stop(); took > time.Second {
			t.Errorf("the end took %v, want 1s at most", took)
		}
		b.near("in the store", b.stored(gpu), perAnswer)
	})
}

func TestTheEndDoesNotWaitForAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		stop := b.run()
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
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		stop := b.run()
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
