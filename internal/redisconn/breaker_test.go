package redisconn

import (
	"errors"
	"testing"
	"time"

	core "github.com/pacer-dev/pacer/internal/breaker"
)

var errDown = errors.New("down")

func TestBreakerLeavesADeadServerAloneForLongerAndLonger(t *testing.T) {
	b := newBreaker(time.Second, 10*time.Second)
	start := time.Unix(1000, 0)
	var asked []time.Duration
	for at := time.Duration(0); at < 60*time.Second; at += 100 * time.Millisecond {
		try, err := b.enter(start.Add(at))
		if err != nil {
			var out *OutError
			if !errors.As(err, &out) || !errors.Is(err, errDown) {
				t.Fatalf("after %v: error %v, want an *OutError with the cause", at, err)
			}
			continue
		}
		asked = append(asked, at)
		b.leave(start.Add(at), try, core.Failed, errDown)
	}
	// Waits of 1, 2, 4, 8, 10, 10 … s, each up to a fifth (and one step of
	// this loop) longer.
	low := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second}
	if len(asked) < 7 || len(asked) > 9 {
		t.Errorf("asked %d times in a minute, want 7 to 9: %v", len(asked), asked)
	}
	for i := 1; i < len(asked); i++ {
		want := low[min(i, len(low))-1]
		if got := asked[i] - asked[i-1]; got < want || got > want+want/5+100*time.Millisecond {
			t.Errorf("wait %d was %v, want %v to %v", i, got, want, want+want/5)
		}
	}
}

func TestBreakerSendsOneTrialAndClosesWhenItWorks(t *testing.T) {
	b := newBreaker(time.Second, 10*time.Second)
	now := time.Unix(1000, 0)
	p, _ := b.enter(now)
	if left := b.leave(now, p, core.Failed, errDown); !left || b.core.RetryIn(now) < time.Second {
		t.Fatalf("left alone: %v, for %v; want so for at least 1s", left, b.core.RetryIn(now))
	}
	now = now.Add(2 * time.Second)
	trial, err := b.enter(now)
	if err != nil {
		t.Fatalf("trial: %v", err)
	}
	if _, err := b.enter(now); err == nil {
		t.Error("a second call went out while the trial was out")
	}
	// A trial that its caller gave up says nothing, and frees its place.
	b.leave(now, trial, core.Nothing, nil)
	trial, err = b.enter(now)
	if err != nil {
		t.Fatalf("trial after a cancelled one: %v", err)
	}
	if b.leave(now, trial, core.Worked, nil) {
		t.Error("a server that is back is left alone")
	}
	for range 2 {
		if _, err := b.enter(now); err != nil {
			t.Errorf("closed, and refused: %v", err)
		}
	}
}

// Calls that were out together when the server died are one failure.
func TestBreakerCountsOneFailurePerPeriod(t *testing.T) {
	b := newBreaker(time.Second, 10*time.Second)
	now := time.Unix(1000, 0)
	first, _ := b.enter(now)
	second, _ := b.enter(now)
	third, _ := b.enter(now)
	b.leave(now, first, core.Failed, errDown)
	if b.leave(now, second, core.Failed, errDown) {
		t.Error("a second failure of the same moment counts again")
	}
	// An answer that was on its way before the failure does not close it.
	b.leave(now, third, core.Worked, nil)
	if _, err := b.enter(now.Add(500 * time.Millisecond)); err == nil {
		t.Error("asked again half a second after the failure")
	}
	if _, err := b.enter(now.Add(1300 * time.Millisecond)); err != nil {
		t.Errorf("not asked after 1.3s: %v", err)
	}
}

// A server that answers every trial and fails the next call is not out and back
// every second; one that was back for long enough begins anew.
func TestBreakerIsPatientWithAServerThatFailsAgain(t *testing.T) {
	b := newBreaker(time.Second, 10*time.Second)
	now := time.Unix(1000, 0)
	outage := func() time.Duration {
		p, _ := b.enter(now)
		if !b.leave(now, p, core.Failed, errDown) {
			t.Fatal("a failure does not count")
		}
		wait := b.core.RetryIn(now)
		now = now.Add(wait)
		p, err := b.enter(now)
		if b.leave(now, p, core.Worked, nil) || err != nil {
			t.Fatalf("a trial that works leaves the server alone: %v", err)
		}
		return wait
	}
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second} {
		if got := outage(); got < want || got > want+want/5 {
			t.Errorf("outage %d lasts %v, want %v to %v", i, got, want, want+want/5)
		}
		now = now.Add(9 * time.Second)
	}
	now = now.Add(time.Second)
	if got := outage(); got > 2*time.Second {
		t.Errorf("after ten good seconds an outage lasts %v, want a second and a fifth at most", got)
	}
}
