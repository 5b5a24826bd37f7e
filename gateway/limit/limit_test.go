package limit

import (
	"errors"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/config"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

func exceeded(t *testing.T, err error, what string, retry time.Duration) {
	t.Helper()
	var e *Exceeded
	if !errors.As(err, &e) {
		t.Fatalf("got error %v, want the limit of %s", err, what)
	}
	if e.What != what || (e.RetryAfter-retry).Abs() > 2*time.Millisecond {
		t.Fatalf("got %s, retry after %v; want %s, %v", e.What, e.RetryAfter, what, retry)
	}
}

func TestRequestsPerMinute(t *testing.T) {
	l := New(config.KeyLimits{RequestsPerMinute: 60})
	for i := range 60 {
		if _, err := l.Take(at(0), 0); err != nil {
			t.Fatalf("request %d of a minute of 60 was refused: %v", i+1, err)
		}
	}
	_, err := l.Take(at(0), 0)
	exceeded(t, err, "requests", time.Second)
	if _, err := l.Take(at(0.5), 0); err == nil {
		t.Fatal("got a place after half of the time to wait")
	}
	if _, err := l.Take(at(1), 0); err != nil {
		t.Fatalf("refused after waiting as long as told: %v", err)
	}
}

func TestTokensAreSettledWithWhatWasUsed(t *testing.T) {
	l := New(config.KeyLimits{TokensPerMinute: 600}) // 10 a second
	cheap, err := l.Take(at(0), 600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Take(at(0), 1)
	exceeded(t, err, "tokens", 100*time.Millisecond)

	cheap.Settle(at(0), 100) // 500 come back
	cheap.Settle(at(0), 100) // once
	if got := l.State(at(0)).Tokens.Remaining; got != 500 {
		t.Fatalf("%d tokens left after 100 of 600 were used, want 500", got)
	}
	dear, err := l.Take(at(0), 500)
	if err != nil {
		t.Fatal(err)
	}
	dear.Settle(at(0), 800) // 300 owed: 30 s until there is one again
	_, err = l.Take(at(0), 1)
	exceeded(t, err, "tokens", 30100*time.Millisecond)
	if got := l.State(at(0)).Tokens.Remaining; got != 0 {
		t.Fatalf("%d tokens left while some are owed, want 0", got)
	}
}

func TestAnEstimateAboveAMinuteCanStillBeSent(t *testing.T) {
	l := New(config.KeyLimits{TokensPerMinute: 100})
	if _, err := l.Take(at(0), 5000); err != nil {
		t.Fatalf("a request larger than the limit can never be sent: %v", err)
	}
	_, err := l.Take(at(0), 100)
	exceeded(t, err, "tokens", time.Minute)
}

func TestConcurrency(t *testing.T) {
	l := New(config.KeyLimits{Concurrency: 2, RequestsPerMinute: 3})
	a, _ := l.Take(at(0), 0)
	if _, err := l.Take(at(0), 0); err != nil {
		t.Fatal(err)
	}
	_, err := l.Take(at(0), 0)
	exceeded(t, err, "concurrency", time.Second)
	a.Settle(at(0), 0)
	a.Settle(at(0), 0) // must not make room for a second one
	if _, err := l.Take(at(0), 0); err != nil {
		t.Fatalf("refused although one has ended, or charged for having been refused: %v", err)
	}
	if _, err := l.Take(at(0), 0); err == nil {
		t.Fatal("got a third place at once of two")
	}
}

func TestABucketHoldsNoMoreThanAMinute(t *testing.T) {
	l := New(config.KeyLimits{RequestsPerMinute: 5})
	l.State(at(0))
	if got := l.State(at(3600)).Requests; got != (Level{Limit: 5, Remaining: 5}) {
		t.Fatalf("after an idle hour %+v, want 5 of 5", got)
	}
	l.Take(at(3600), 0)
	if got := l.State(at(3500)).Requests.Remaining; got != 4 {
		t.Fatalf("time that goes back left %d, want 4", got)
	}
}

func TestNoLimits(t *testing.T) {
	l := New(config.KeyLimits{})
	p, err := l.Take(at(0), 1<<30)
	if l != nil || p != nil || err != nil {
		t.Fatalf("got %v, %v, %v; want nothing at all", l, p, err)
	}
	p.Settle(at(0), 1)
	if s := l.State(at(0)); s != (State{}) {
		t.Fatalf("got state %+v, want none", s)
	}
}
