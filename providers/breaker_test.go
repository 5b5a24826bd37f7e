package providers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/pacer-dev/pacer/internal/breaker"

	"github.com/pacer-dev/pacer/internal/must"
)

var errBroken = errors.New("broken")

var rules = core.OfBackend()

// guarded is a Backend with its breaker running, and what was told of it.
type guarded struct {
	*Backend
	t    *testing.T
	mu   sync.Mutex
	told []Health
}

func guard(t *testing.T) *guarded {
	t.Helper()
	g := newGuarded(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	return g
}

// newGuarded is a Backend whose Run does not run.
func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{t: t}
	var err error
	g.Backend, err = New(Options{Client: *client, Name: "b", BaseURL: "http://b", OnHealth: func(h Health) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.told = append(g.told, h)
	}})
	must.Do(t, err)
	return g
}

// try asks once and gives err as the verdict.
func (g *guarded) try(err error) {
	g.t.Helper()
	verdict, ok := g.Begin()
	if !ok {
		g.t.Fatal("the breaker lets nobody through")
	}
	verdict(err)
}

func (g *guarded) fail(n int) {
	g.t.Helper()
	for range n {
		g.try(errBroken)
	}
}

// expect compares what was told once Run, which may be telling it, rests.
func (g *guarded) expect(want ...Health) {
	g.t.Helper()
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Equal(g.told, want) {
		g.t.Fatalf("told %v, want %v", g.told, want)
	}
}

func (g *guarded) closed() bool {
	g.t.Helper()
	verdict, ok := g.Begin()
	if ok {
		verdict(ErrNoVerdict)
	}
	return ok
}

// plays are what opens and closes a breaker, step by step. What share of failures opens
// it package breaker shows.
var plays = map[string]func(*guarded){
	"the breaker opens and closes": func(g *guarded) {
		g.fail(4)
		g.expect()
		g.fail(1)
		g.expect(Open)
		if g.closed() {
			g.t.Fatal("an open breaker lets requests through")
		}
		<-time.After(4900 * time.Millisecond)
		g.expect(Open)
		<-time.After(400 * time.Millisecond) // nobody asks, and yet
		g.expect(Open, HalfOpen)

		probe, ok := g.Begin()
		if !ok {
			g.t.Fatal("no probe")
		}
		if _, ok := g.Begin(); ok {
			g.t.Fatal("two probes")
		}
		probe(errBroken)
		g.expect(Open, HalfOpen, Open)

		<-time.After(5300 * time.Millisecond)
		g.expect(Open, HalfOpen, Open, HalfOpen)
		g.try(nil)
		g.expect(Open, HalfOpen, Open, HalfOpen, Closed)
		g.fail(4) // the count began anew
		g.expect(Open, HalfOpen, Open, HalfOpen, Closed)
	},
	"a probe may go before run looks": func(g *guarded) {
		g.fail(5)
		<-time.After(rules.Wait(0))
		g.try(nil)
		g.expect(Open, HalfOpen, Closed)
	},
	"what counts for nothing": func(g *guarded) {
		g.fail(4)
		for range 100 {
			g.try(context.Canceled)
			g.try(fmt.Errorf("client: %w", context.Canceled))
			g.try(ErrNoVerdict)
			g.Cut(context.Canceled)
			g.Cut(nil)
		}
		g.expect()
		g.fail(1) // they were no successes either
		g.expect(Open)
	},
	"a success ends the row": func(g *guarded) {
		g.fail(4)
		g.try(nil)
		g.fail(4)
		g.expect()
	},
	"a verdict counts once": func(g *guarded) {
		verdict, _ := g.Begin()
		verdict(nil)
		for range 10 {
			verdict(errBroken)
		}
		g.expect()
		g.fail(4)
		verdict, _ = g.Begin()
		verdict(context.Canceled)
		verdict(errBroken)
		g.expect()
	},
	// A backend that stalls until the deadline of two minutes is found out by
	// verdicts that come later than the window.
	"a late failure counts": func(g *guarded) {
		var verdicts []func(error)
		for range 5 {
			v, _ := g.Begin()
			verdicts = append(verdicts, v)
		}
		<-time.After(2 * time.Minute)
		for _, v := range verdicts {
			g.expect()
			v(errBroken)
		}
		g.expect(Open)
	},
	// Nor are they dropped when successes, as late, come between.
	"late verdicts count by their share": func(g *guarded) {
		var verdicts []func(error)
		for range 20 {
			v, _ := g.Begin()
			verdicts = append(verdicts, v)
		}
		<-time.After(2 * time.Minute)
		for i, v := range verdicts {
			g.expect()
			if i%2 == 0 {
				v(nil)
			} else {
				v(errBroken)
			}
		}
		g.expect(Open)
	},
	"failures in a row count however slow": func(g *guarded) {
		for range 4 {
			g.fail(1)
			<-time.After(10 * time.Minute)
		}
		g.expect()
		g.fail(1)
		g.expect(Open)
	},
	"a verdict from before the break is ignored": func(g *guarded) {
		var old []func(error)
		for range 10 {
			v, _ := g.Begin()
			old = append(old, v)
		}
		g.fail(5)
		<-time.After(6 * time.Second)
		for _, v := range old[:2] {
			v(errBroken)
			v(nil)
		}
		g.expect(Open, HalfOpen)
		g.try(nil)
		for _, v := range old[2:] {
			v(errBroken)
		}
		g.fail(4)
		g.expect(Open, HalfOpen, Closed)
	},
	"cuts": func(g *guarded) {
		for range 5 {
			g.try(nil)
		}
		for range 4 {
			g.Cut(errBroken)
		}
		g.expect()
		g.Cut(errBroken)
		g.expect(Open)
		g.Cut(errBroken) // the others that it served are no news
		<-time.After(6 * time.Second)
		g.Cut(errBroken) // nor do they take the probe's place
		g.expect(Open, HalfOpen)
		g.try(nil)
		g.expect(Open, HalfOpen, Closed)
	},
	// A backend that serves every first token and cuts every stream is broken,
	// though each cut comes between two successes.
	"a backend that cuts every stream is found out": func(g *guarded) {
		for range rules.InARow {
			g.expect()
			g.try(nil)
			g.StreamEnded(errBroken)
		}
		g.expect(Open)
		<-time.After(6 * time.Second)
		for range rules.InARow - 1 { // the count began anew
			g.try(nil)
			g.StreamEnded(errBroken)
		}
		g.expect(Open, HalfOpen, Closed)
	},
	// What a client breaks off is no cut, nor does it end a row of them; a stream
	// that ends whole does.
	"cuts in a row": func(g *guarded) {
		cut := func(n int) {
			for range n {
				g.try(nil)
				g.StreamEnded(errBroken)
			}
		}
		for range 3 { // seldom enough not to open by their share
			cut(4)
			g.try(nil)
			g.StreamEnded(nil)
			g.expect()
			<-time.After(rules.Window + rules.Bucket)
		}
		cut(4)
		for range 30 {
			g.try(nil)
			g.StreamEnded(context.Canceled)
			g.StreamEnded(ErrNoVerdict)
		}
		g.expect()
		cut(1)
		g.expect(Open)
	},
	"a cancelled probe frees its place": func(g *guarded) {
		g.fail(5)
		<-time.After(6 * time.Second)
		for range 10 {
			g.try(context.Canceled)
		}
		g.expect(Open, HalfOpen)
		g.try(nil)
		g.expect(Open, HalfOpen, Closed)
	},
}

func TestBreaker(t *testing.T) {
	for name, play := range plays {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(guard(t)) })
		})
	}
}

// A probe whose verdict is lost must not lock the backend out for ever.
func TestALostProbeIsGivenUp(t *testing.T) {
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprintf("run=%v", running), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuarded(t)
				if running {
					g = guard(t)
				}
				g.fail(5)
				<-time.After(6 * time.Second)
				lost, ok := g.Begin()
				if !ok {
					t.Fatal("no probe")
				}
				<-time.After(rules.Lost - time.Second)
				if _, ok := g.Begin(); ok {
					t.Fatal("a second probe while the first is out")
				}
				<-time.After(2 * time.Second)
				second, ok := g.Begin()
				if !ok {
					t.Fatal("the lost probe locks the breaker")
				}
				lost(errBroken) // too late to count
				second(nil)
				if !g.closed() {
					t.Error("the second probe did not close the breaker")
				}
			})
		})
	}
}

// OnHealth may ask the breaker itself, and is told everything in order: what it
// sets off is told after it returned.
func TestOnHealthMayCallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		var b *Backend
		b, err := New(Options{Client: *client, Name: "b", BaseURL: "http://b", OnHealth: func(h Health) {
			told = append(told, "begin "+h.String())
			if verdict, ok := b.Begin(); ok && h == HalfOpen {
				verdict(nil) // we are the probe
			} else if ok {
				verdict(ErrNoVerdict)
			}
			told = append(told, "end "+h.String())
		}})
		must.Do(t, err)
		for range 5 {
			verdict, _ := b.Begin()
			verdict(errBroken)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 6*time.Second)
		defer cancel()
		must.Do(t, b.Run(ctx))
		want := []string{"begin open", "end open", "begin half-open", "end half-open", "begin closed", "end closed"}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// Whatever many do at once, the states are told in an order that can be.
func TestTheBreakerUnderManyHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t)
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				for j := range 200 {
					if verdict, ok := g.Begin(); ok {
						<-time.After(time.Duration(i) * time.Millisecond)
						if (i+j/20)%3 == 0 {
							verdict(nil)
						} else {
							verdict(errBroken)
						}
						verdict(nil)
					}
					if j%50 == 0 {
						g.Cut(errBroken)
					}
					<-time.After(100 * time.Millisecond)
				}
			})
		}
		all.Wait()
		g.mu.Lock()
		defer g.mu.Unlock()
		if len(g.told) < 4 {
			t.Fatalf("told only %v", g.told)
		}
		before := Closed
		for i, h := range g.told {
			ok := before == Closed && h == Open || before == Open && h == HalfOpen || before == HalfOpen && h != HalfOpen
			if !ok {
				t.Fatalf("number %d: %v after %v", i, h, before)
			}
			before = h
		}
	})
}

// Budget: 1 µs for a request's way through the breaker.
func BenchmarkBreaker(b *testing.B) {
	backend := must.Get(New(Options{Client: *client, Name: "b", BaseURL: "http://b"}))(b)
	b.ReportAllocs()
	for b.Loop() {
		verdict, _ := backend.Begin()
		verdict(nil)
	}
}
