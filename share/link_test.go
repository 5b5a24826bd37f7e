package share

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// An outage is one line at its start and one at its end, and so is what a gateway
// without Redis says.
func TestAnOutageIsSaidOnce(t *testing.T) {
	var log bytes.Buffer
	l := must.Get(NewLink(Options{Replicas: 3, Log: slog.New(slog.NewTextHandler(&log, nil))}))(t)
	at := time.Unix(1000, 0)
	see := func(others int, err error) {
		at = at.Add(Every)
		l.See(at, others, err)
	}
	for range 3 {
		see(1, nil)
	}
	if log.Len() > 0 {
		t.Errorf("nothing happened, and this is said:\n%s", log.String())
	}
	for range 50 {
		see(0, errDown)
	}
	for range 3 {
		see(0, nil) // not all are back
	}
	see(1, nil)
	see(1, nil)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[0], "replicas=2") || !strings.Contains(lines[0], "error=down") ||
		!strings.Contains(lines[1], "level=INFO") || !strings.Contains(lines[1], "alone_for=9.8s") {
		t.Errorf("got\n%swant a warning with its cause, and one line at the end", log.String())
	}
	if got := l.State(); got != (State{Replicas: 2}) {
		t.Errorf("%v of %d, want shared of 2", got, got.Replicas)
	}
}

func TestAloneFromTheStart(t *testing.T) {
	var log bytes.Buffer
	l := must.Get(NewLink(Options{Replicas: 3, Log: slog.New(slog.NewTextHandler(&log, nil))}))(t)
	if got := l.State(); got != (State{Replicas: 3}) {
		t.Errorf("%v of %d before the first exchange, want shared of 3", got, got.Replicas)
	}
	for range 5 {
		if got := l.See(time.Unix(1000, 0), 0, errDown); got != (State{Replicas: 3, Alone: true}) {
			t.Errorf("%v of %d, want alone of 3", got, got.Replicas)
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines, want 1:\n%s", n, log.String())
	}
	if _, err := NewLink(Options{}); err == nil || !strings.Contains(err.Error(), "Log") {
		t.Errorf("NewLink without Log = %v, want an error that names it", err)
	}
}

// A step that hangs is given up before the one after next is due, and does not
// hold up the end; the last word is bounded too.
func TestAStepThatHangsHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start, steps := time.Now(), 0
		var last error
		left := time.Duration(0)
		done := make(chan bool)
		go func() {
			defer close(done)
			Loop(ctx, Beat{Every: Every}, func(ctx context.Context) {
				steps++
				<-ctx.Done()
				last = ctx.Err()
			}, func(ctx context.Context) {
				if ctx.Err() != nil {
					t.Error("the last word has no time")
				}
				<-ctx.Done()
				left = time.Since(start)
			})
		}()
		<-time.After(time.Second + 100*time.Millisecond)
		cancel()
		<-done
		if steps != 3 || !errors.Is(last, context.Canceled) {
			t.Errorf("%d steps, the last ended by %v; want 3 of 400 ms, by the end", steps, last)
		}
		if want := 1600 * time.Millisecond; left != want {
			t.Errorf("ended after %v, want %v", left, want)
		}
	})
}

// What is to be told at once is told within LookEvery, and once.
func TestNewsAreToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var news atomic.Uint64
		var steps []time.Duration
		done := make(chan bool)
		go func() {
			defer close(done)
			Loop(ctx, Beat{Every: Every, News: news.Load}, func(context.Context) { steps = append(steps, time.Since(start)) }, func(context.Context) {})
		}()
		<-time.After(50 * time.Millisecond)
		news.Add(2)
		<-time.After(400 * time.Millisecond)
		cancel()
		<-done
		const ms = time.Millisecond
		if want := []time.Duration{0, 60 * ms, 200 * ms, 400 * ms}; !slices.Equal(steps, want) {
			t.Errorf("steps at %v, want %v", steps, want)
		}
	})
}

func TestSeldom(t *testing.T) {
	var log bytes.Buffer
	var s Seldom
	for i := range 21 {
		s.Warn(slog.New(slog.NewTextHandler(&log, nil)), time.Unix(1000, 0).Add(time.Duration(i)*time.Minute), "odd", "minute", i)
	}
	if got := log.String(); strings.Count(got, "\n") != 3 || !strings.Contains(got, "minute=0\n") || !strings.Contains(got, "minute=10\n") || !strings.Contains(got, "minute=20\n") {
		t.Errorf("said\n%swant it at 0, 10 and 20 minutes", got)
	}
}
