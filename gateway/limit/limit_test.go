package limit

import (
	"errors"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// take is a request whose body is there as soon as its head.
func take(l *Limiter, now time.Time, tokens int) (*Permit, error) {
	p, err := l.Enter(now)
	if err == nil {
		err = p.Charge(now, tokens, 1)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
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
		if _, err := take(l, at(0), 0); err != nil {
			t.Fatalf("request %d of a minute of 60 was refused: %v", i+1, err)
		}
	}
	_, err := take(l, at(0), 0)
	exceeded(t, err, "requests", time.Second)
	if _, err := take(l, at(0.5), 0); err == nil {
		t.Fatal("got a place after half of the time to wait")
	}
	if _, err := take(l, at(1), 0); err != nil {
		t.Fatalf("refused after waiting as long as told: %v", err)
	}
}

func TestTokensAreSettledWithWhatWasUsed(t *testing.T) {
	l := New(config.KeyLimits{TokensPerMinute: 600}) // 10 a second
	cheap, err := take(l, at(0), 600)
	must.Do(t, err)
	_, err = take(l, at(0), 1)
	exceeded(t, err, "tokens", 100*time.Millisecond)

	cheap.Settle(at(0), 100) // 500 come back
	cheap.Settle(at(0), 100) // once
	if got := l.State(at(0)).Tokens.Remaining; got != 500 {
		t.Fatalf("%d tokens left after 100 of 600 were used, want 500", got)
	}
	dear, err := take(l, at(0), 500)
	must.Do(t, err)
	dear.Settle(at(0), 800) // 300 owed: 30 s until there is one again
	_, err = take(l, at(0), 1)
	exceeded(t, err, "tokens", 30100*time.Millisecond)
	if got := l.State(at(0)).Tokens.Remaining; got != 0 {
		t.Fatalf("%d tokens left while some are owed, want 0", got)
	}
}

func TestAnEstimateAboveAMinuteCanStillBeSent(t *testing.T) {
	l := New(config.KeyLimits{TokensPerMinute: 100})
	if _, err := take(l, at(0), 5000); err != nil {
		t.Fatalf("a request larger than the limit can never be sent: %v", err)
	}
	_, err := l.Enter(at(0))
	exceeded(t, err, "tokens", 600*time.Millisecond) // until there is one
	_, err = take(l, at(0.6), 100)
	exceeded(t, err, "tokens", 59400*time.Millisecond)
}

// A place is taken at the head. What is not charged was no request: it leaves
// the limits as it found them, whether tokens were lacking or it ended before.
func TestAPlaceThatIsNotChargedComesBack(t *testing.T) {
	limits := config.KeyLimits{RequestsPerMinute: 2, TokensPerMinute: 600, Concurrency: 1}
	full := State{Requests: Left{Limit: 2, Remaining: 2}, Tokens: Left{Limit: 600, Remaining: 600}}
	for name, c := range map[string]struct {
		end  func(t *testing.T, p *Permit)
		want State
	}{
		"ended":          {func(_ *testing.T, p *Permit) { p.Settle(at(0), 0); p.Settle(at(0), 0) }, full},
		"left and ended": {func(_ *testing.T, p *Permit) { p.Leave(); p.Settle(at(0), 7) }, full},
		"charged": {func(t *testing.T, p *Permit) {
			must.Do(t, p.Charge(at(0), 400, 1))
			p.Settle(at(0), 0)
		}, State{Requests: Left{Limit: 2, Remaining: 1, Reset: 30 * time.Second}, Tokens: full.Tokens}},
		"too few tokens": {func(t *testing.T, p *Permit) {
			p.limiter.tokens.take(300)
			exceeded(t, p.Charge(at(0), 400, 1), "tokens", 10*time.Second)
			p.Settle(at(0), 0)
			p.limiter.tokens.take(-300)
		}, full},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(limits)
			p, err := l.Enter(at(0))
			must.Do(t, err)
			if got := l.State(at(0)).Requests.Remaining; got != 1 {
				t.Errorf("%d requests left while one reads its body, want 1 of 2", got)
			}
			_, err = l.Enter(at(0))
			exceeded(t, err, "concurrency", busyRetry)
			c.end(t, p)
			if got := l.State(at(0)); got != c.want {
				t.Errorf("left %+v, want %+v", got, c.want)
			}
			if _, err := l.Enter(at(0)); err != nil {
				t.Errorf("no place after it ended: %v", err)
			}
		})
	}
}

func TestConcurrency(t *testing.T) {
	l := New(config.KeyLimits{Concurrency: 2, RequestsPerMinute: 3})
	a, _ := take(l, at(0), 0)
	must.Get(take(l, at(0), 0))(t)
	_, err := take(l, at(0), 0)
	exceeded(t, err, "concurrency", time.Second)
	a.Settle(at(0), 0)
	a.Settle(at(0), 0) // must not make room for a second one
	if _, err := take(l, at(0), 0); err != nil {
		t.Fatalf("refused although one has ended, or charged for having been refused: %v", err)
	}
	if _, err := take(l, at(0), 0); err == nil {
		t.Fatal("got a third place at once of two")
	}
}

// A request of several sequences counts as so many that run, and one that can never
// run is told that no time helps.
func TestSequencesAreCountedAtOnce(t *testing.T) {
	for _, c := range []struct {
		name             string
		limit, others, n int
		elsewhere, among int
		never            int  // sequences that it is told never run
		busy             bool // it is told to come back
	}{
		{name: "alone", limit: 8, n: 8},
		{name: "beside others", limit: 8, others: 3, n: 5},
		{name: "one too many", limit: 8, others: 4, n: 5, busy: true},
		{name: "beside those of others", limit: 8, elsewhere: 4, n: 5, busy: true},
		{name: "more than the limit", limit: 8, n: 9, never: 9},
		{name: "more than its part, alone", limit: 8, n: 8, among: 4},
		{name: "more than its part, beside one", limit: 8, others: 1, n: 7, among: 4, busy: true},
		{name: "no limit", n: 4096},
		{name: "nothing said", limit: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := New(config.KeyLimits{Concurrency: c.limit, RequestsPerMinute: 1000})
			for range c.others {
				must.Get(take(l, at(0), 0))(t)
			}
			l.elsewhere, l.among = c.elsewhere, max(c.among, 1)
			p := must.Get(l.Enter(at(0)))(t)
			err := p.Charge(at(0), 0, c.n)
			if e := (*Exceeded)(nil); c.never > 0 || c.busy {
				if !errors.As(err, &e) || e.What != "concurrency" || e.Never != c.never || (e.RetryAfter > 0) != c.busy {
					t.Fatalf("got %+v, want that %d never run, or to come back: %v", err, c.never, c.busy)
				}
				if l.running != c.others {
					t.Fatalf("%d run once it is refused, want %d", l.running, c.others)
				}
				return
			}
			must.Do(t, err)
			if want := c.others + max(c.n, 1); l.running != want {
				t.Fatalf("%d run, want %d", l.running, want)
			}
			p.Leave()
			p.Settle(at(0), 0)
			if l.running != c.others {
				t.Fatalf("%d run once it has ended, want %d", l.running, c.others)
			}
		})
	}
}

func TestABucketHoldsNoMoreThanAMinute(t *testing.T) {
	l := New(config.KeyLimits{RequestsPerMinute: 5})
	l.State(at(0))
	if got := l.State(at(3600)).Requests; got != (Left{Limit: 5, Remaining: 5}) {
		t.Fatalf("after an idle hour %+v, want 5 of 5", got)
	}
	take(l, at(3600), 0)
	if got := l.State(at(3500)).Requests.Remaining; got != 4 {
		t.Fatalf("time that goes back left %d, want 4", got)
	}
}

func TestNoLimits(t *testing.T) {
	l := New(config.KeyLimits{})
	p, err := take(l, at(0), 1<<30)
	if l != nil || p != nil || err != nil {
		t.Fatalf("got %v, %v, %v; want nothing at all", l, p, err)
	}
	p.Settle(at(0), 1)
	if s := l.State(at(0)); s != (State{}) {
		t.Fatalf("got state %+v, want none", s)
	}
}
