package limit

import (
	"math"
	"testing"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
)

func remaining(t *testing.T, what string, l *Limiter, seconds float64, want int) {
	t.Helper()
	if got := l.State(at(seconds)).Tokens.Remaining; got != want {
		t.Errorf("%s: %d tokens left, want %d", what, got, want)
	}
}

func spend(t *testing.T, l *Limiter, seconds float64, tokens int) *Permit {
	t.Helper()
	p, err := take(l, at(seconds), tokens)
	if err != nil {
		t.Fatalf("%d tokens at %v s: %v", tokens, seconds, err)
	}
	return p
}

func told(t *testing.T, l *Limiter, seconds float64, next uint64, want Report) {
	t.Helper()
	got := l.Report(at(seconds), next)
	for _, v := range []*float64{&got.Requests.New, &got.Tokens.New, &got.Tokens.Used, &got.Requests.Used} {
		*v = math.Round(*v*1000) / 1000
	}
	if got != want {
		t.Errorf("at %v s told %+v, want %+v", seconds, got, want)
	}
}

func TestWhatOthersUsedCounts(t *testing.T) {
	l := New(config.KeyLimits{TokensPerMinute: 600}) // 10 a second
	p := spend(t, l, 0, 100)
	told(t, l, 0, 1, Report{Seq: 1, Tokens: Spent{Size: 600, New: 100}, Running: 1})
	spend(t, l, 0, 50) // while the answer is under way
	l.Answer(at(0), 1, Totals{Tokens: 400})
	remaining(t, "400 used by all and 50 here since", l, 0, 150)
	_, err := take(l, at(0), 200)
	exceeded(t, err, "tokens", 5e9)

	p.Settle(at(0), 30) // 70 come back, more than were used since: 20 less than was told
	told(t, l, 0, 2, Report{Seq: 2, Tokens: Spent{Size: 600, New: -20, Used: 400}, Running: 1})
	remaining(t, "with what came back", l, 0, 220)
	l.Answer(at(0), 2, Totals{Tokens: 380})
	remaining(t, "answered", l, 0, 220)
	remaining(t, "ten seconds later", l, 10, 320)
	remaining(t, "an hour later", l, 3600, 600)
}

// An answer that does not come leaves what was told in force, and it is told
// again under its number, less what time has paid for. A late answer to
// another report says nothing.
func TestAReportIsRepeatedUntilItIsAnswered(t *testing.T) {
	l := New(config.KeyLimits{TokensPerMinute: 600})
	spend(t, l, 0, 100)
	told(t, l, 0, 1, Report{Seq: 1, Tokens: Spent{Size: 600, New: 100}, Running: 1})
	spend(t, l, 0, 50)
	told(t, l, 3, 2, Report{Seq: 1, Tokens: Spent{Size: 600, New: 70}, Running: 2})
	remaining(t, "not answered", l, 3, 480)
	l.Answer(at(3), 2, Totals{Tokens: 0})
	remaining(t, "answered another", l, 3, 480)
	l.Answer(at(3), 1, Totals{Tokens: 70})
	l.Answer(at(3), 1, Totals{Tokens: 7000})
	remaining(t, "answered", l, 3, 480)
	told(t, l, 3, 3, Report{Seq: 3, Tokens: Spent{Size: 600, New: 50, Used: 70}, Running: 2})
	remaining(t, "what is shared is paid for first", l, 10, 550)
	told(t, l, 10, 4, Report{Seq: 3, Tokens: Spent{Size: 600, New: 50}, Running: 2})
}

// More comes back than anybody still owes: it is nobody's.
func TestWhatComesBackIsNoMoreThanWasUsed(t *testing.T) {
	l := New(config.KeyLimits{TokensPerMinute: 600})
	p := spend(t, l, 0, 500)
	told(t, l, 0, 1, Report{Seq: 1, Tokens: Spent{Size: 600, New: 500}, Running: 1})
	l.Answer(at(0), 1, Totals{Tokens: 500})
	p.Settle(at(10), 0)
	told(t, l, 10, 2, Report{Seq: 2, Tokens: Spent{Size: 600, New: -400, Used: 400}})
	told(t, l, 30, 3, Report{Seq: 2, Tokens: Spent{Size: 600, New: -200, Used: 200}})
	told(t, l, 120, 3, Report{Seq: 2, Tokens: Spent{Size: 600}})
	l.Answer(at(120), 2, Totals{})
	spend(t, l, 120, 10)
	remaining(t, "after the refund is gone", l, 120, 590)
}

// Three replicas that do not know of each other: what was left is divided, and
// all together get the limit and no more.
func TestAloneEachHasItsPart(t *testing.T) {
	l := New(config.KeyLimits{TokensPerMinute: 600, RequestsPerMinute: 6, Concurrency: 7})
	for range 2 {
		spend(t, l, 0, 60).Settle(at(0), 60)
	}
	told(t, l, 0, 1, Report{Seq: 1, Tokens: Spent{Size: 600, New: 120}, Requests: Spent{Size: 6, New: 2}})
	l.Answer(at(0), 1, Totals{Tokens: 300, Requests: 3})
	l.Alone(at(0), 3)
	remaining(t, "a third of what is left", l, 0, 100)
	if got := l.State(at(0)).Requests; got.Remaining != 1 || got.Limit != 6 {
		t.Errorf("%+v, want 1 of 6 requests", got)
	}
	spend(t, l, 0, 100)
	_, err := take(l, at(0), 0)
	exceeded(t, err, "requests", 30e9) // one request at 6/3 a minute
	remaining(t, "in 30 s time pays for what all owe", l, 30, 100)
	remaining(t, "then, three times slower, for its own", l, 45, 150)

	spend(t, l, 45, 0)
	_, err = take(l, at(45), 0)
	exceeded(t, err, "concurrency", 1e9) // 7/3
	l.Answer(at(45), 1, Totals{Tokens: 0})
	remaining(t, "nothing was asked", l, 45, 150)
	told(t, l, 45, 2, Report{Seq: 2, Tokens: Spent{Size: 600, New: 50}, Requests: Spent{Size: 6, New: 1.5}, Running: 2})
	l.Answer(at(45), 2, Totals{Tokens: 150, Requests: 4, Running: 4})
	remaining(t, "in touch again", l, 45, 450)
	spend(t, l, 45, 0)
	_, err = take(l, at(45), 0)
	exceeded(t, err, "concurrency", 1e9) // 3 here and 4 elsewhere
}

// A part smaller than one request still lets one through at a time, and time
// pays for it at the part's pace.
func TestAPartIsAtLeastOneRequest(t *testing.T) {
	l := New(config.KeyLimits{TokensPerMinute: 600, RequestsPerMinute: 2, Concurrency: 1})
	l.Alone(at(0), 4)
	spend(t, l, 0, 600).Settle(at(0), 600) // more than a part of 150: it can be sent, and is owed
	_, err := take(l, at(0), 0)
	exceeded(t, err, "requests", 120e9)
	_, err = take(l, at(120), 1)
	exceeded(t, err, "tokens", 604e8) // 300 are paid for, 150 must be, and 1
}

func TestBusy(t *testing.T) {
	l := New(config.KeyLimits{Concurrency: 2, TokensPerMinute: 600})
	busy := func(seconds float64, want bool, why string) {
		t.Helper()
		if got := l.Busy(at(seconds)); got != want {
			t.Errorf("busy at %v s: %v, want %v: %s", seconds, got, want, why)
		}
	}
	tell := func(seconds float64, seq uint64) {
		l.Answer(at(seconds), l.Report(at(seconds), seq).Seq, Totals{})
	}
	busy(0, false, "never used")
	p := spend(t, l, 0, 1)
	tell(0, 1)
	busy(60, true, "used a minute ago")
	busy(100, true, "one runs")
	p.Settle(at(100), 1)
	busy(100, true, "who told that one runs has to tell that none does")
	tell(100, 2)
	busy(100, false, "all is told")
	must.Get(take(l, at(100), 700))(t)
	busy(100, true, "used")
}

// Budget: 250 ns and 1 allocation, the permit.
func BenchmarkTakeAndSettle(b *testing.B) {
	l := New(config.KeyLimits{RequestsPerMinute: 1e9, TokensPerMinute: 1e9, Concurrency: 10})
	b.ReportAllocs()
	for b.Loop() {
		p := must.Get(take(l, start, 100))(b)
		l.State(start)
		p.Settle(start, 0)
		l.requests.own = 0
	}
}
