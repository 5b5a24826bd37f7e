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

	"github.com/pacer-dev/pacer/internal/must"
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
	must.Do(b.t, err)
	return loop
}

// run starts the loop; stop ends it and returns how long that took.
func (b *bench) run() (stop func() time.Duration) {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- b.loop.Run(ctx) }()
	return sync.OnceValue(func() time.Duration {
		start := time.Now()
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("Run: %v", err)
		}
		return time.Since(start)
	})
}

// whileLearning has a bench whose loop runs until stop, or the end of the test.
func whileLearning(t *testing.T, test func(t *testing.T, b *bench, stop func() time.Duration)) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		stop := b.run()
		test(t, b, stop)
		stop()
	})
}

// pass lets virtual time pass, and everything happen that is due.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (b *bench) state() (curves int, up bool, lag time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.curves, b.up, b.lag
}

const perAnswer = storetest.PerAnswer

func (b *bench) teach(target profiles.Target) { storetest.Teach(b.book, target) }

// stored returns the tokens of target that the store has, by bin.
func (b *bench) stored(target profiles.Target) float64 {
	sums := must.Get(b.store.Memory.Load(b.t.Context(), []profiles.Target{target}))(b.t)
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

// refusal is the error of a store that does not take one target.
type refusal struct{ target profiles.Target }

func (r refusal) Error() string              { return "not this one" }
func (r refusal) Refused() []profiles.Target { return []profiles.Target{r.target} }
