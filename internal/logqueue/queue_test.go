package logqueue

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// reader is who reads the log. Its zero value reads all.
type reader struct {
	mu    sync.Mutex
	text  strings.Builder
	room  int // bytes until err
	err   error
	holds chan struct{} // nil = it reads; else it waits for the end of holds
}

func (r *reader) Write(p []byte) (int, error) {
	if r.holds != nil {
		<-r.holds
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		return r.text.Write(p)
	}
	n := min(r.room, len(p))
	r.room -= n
	r.text.Write(p[:n])
	if n < len(p) {
		return n, r.err
	}
	return n, nil
}

func (r *reader) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Split(strings.TrimSuffix(r.text.String(), "\n"), "\n")
}

func sayLost(n uint64) []byte { return fmt.Appendf(nil, "lost %d\n", n) }

// write puts n lines of 10 bytes.
func write(w io.Writer, kind string, n int) {
	for i := range n {
		fmt.Fprintf(w, "%s %07d\n", kind, i)
	}
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestLinesComeOutInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		q := New(r, Options{Lost: sayLost})
		write(q, "a", 2) // before anybody writes
		go q.Run()
		write(q.Requests(), "r", 1)
		synctest.Wait()
		write(q, "b", 1)
		q.Close(time.Second)
		want(t, "lines", strings.Join(r.lines(), "|"), "a 0000000|a 0000001|r 0000000|b 0000000")
		want(t, "dropped", q.Dropped(), uint64(0))
	})
}

// Nobody waits for a reader that stands still: the lines of requests go first,
// the reserve is for others, and what was lost is said once when it reads on.
func TestAReaderThatStandsStill(t *testing.T) {
	for name, o := range map[string]Options{
		"lines": {Lines: 100, Lost: sayLost},
		"bytes": {Bytes: 1000, Lost: sayLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &reader{holds: make(chan struct{})}
				q := New(r, o)
				go q.Run()
				write(q, "a", 1)
				synctest.Wait() // the writer hangs with it
				write(q.Requests(), "r", 1000)
				want(t, "dropped of requests", q.Dropped(), uint64(1000-75))
				write(q, "w", 1000)
				want(t, "dropped", q.Dropped(), uint64(2000-100))
				close(r.holds)
				synctest.Wait()
				got := r.lines()
				want(t, "lines", len(got), 1+100+1)
				want(t, "first of requests", got[1], "r 0000000")
				want(t, "first of others", got[76], "w 0000000")
				want(t, "last", got[101], "lost 1900")
				write(q.Requests(), "r", 1)
				q.Close(time.Second)
				got = r.lines()
				want(t, "lines", len(got), 103)
				want(t, "after all", got[102], "r 0000000")
			})
		})
	}
}

// A reader that stands still bounds the end of the program, and no more.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{holds: make(chan struct{})}
		q := New(r, Options{})
		go q.Run()
		write(q, "a", 1)
		start := time.Now()
		q.Close(3 * time.Second)
		want(t, "waited", time.Since(start), 3*time.Second)
		write(q, "late", 2)
		want(t, "dropped", q.Dropped(), uint64(2))
		close(r.holds)
		q.Close(3 * time.Second) // Run ends
		want(t, "waited", time.Since(start), 3*time.Second)
	})
}

// A disk that is full loses lines; when there is room again no line is glued to
// the half of another.
func TestAReaderThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{err: errors.New("no space left on device"), room: 15}
		q := New(r, Options{Lost: sayLost})
		go q.Run()
		for range 3 {
			write(q, "a", 3)
			synctest.Wait()
		}
		want(t, "dropped", q.Dropped(), uint64(8))
		r.mu.Lock()
		r.room = 1000
		r.mu.Unlock()
		write(q, "b", 1)
		q.Close(time.Second)
		want(t, "lines", strings.Join(r.lines(), "|"), "a 0000000|a 000|b 0000000|lost 8")
	})
}

func TestConcurrentUse(t *testing.T) {
	r := &reader{}
	q := New(r, Options{Lines: 50})
	go q.Run()
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			write(q.Requests(), "r", 500)
			write(q, "w", 500)
		})
	}
	users.Wait()
	q.Close(time.Minute)
	if got := uint64(len(r.lines())) + q.Dropped(); got != 4000 {
		t.Errorf("%d lines were written or dropped, want 4000", got)
	}
}

// What the line of a request costs: written at once, and through the queue.
// Budget: no allocation more, and no more time.
func BenchmarkLine(b *testing.B) {
	null := must.Get(os.OpenFile(os.DevNull, os.O_WRONLY, 0))(b)
	defer null.Close()
	line := func(log *slog.Logger) {
		log.Info("request", "request", "req-ABCDEFGHIJKLMNOPQRSTUVWXYZ", "method", "POST", "path", "/v1/chat/completions", "status", 200)
	}
	b.Run("at-once", func(b *testing.B) {
		log := slog.New(slog.NewJSONHandler(null, nil))
		b.ReportAllocs()
		for b.Loop() {
			line(log)
		}
	})
	b.Run("queued", func(b *testing.B) {
		q := New(null, Options{})
		go q.Run()
		log := slog.New(slog.NewJSONHandler(q.Requests(), nil))
		b.ReportAllocs()
		for b.Loop() {
			line(log)
		}
		q.Close(time.Minute)
		b.ReportMetric(float64(q.Dropped())/float64(b.N), "lost/op")
	})
}
