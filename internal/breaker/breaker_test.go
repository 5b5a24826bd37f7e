package breaker

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func at(seconds float64) time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// What it waits grows by how often it had opened before, until it stays closed
// for Calm.
func TestWaitGrowsUntilItIsCalm(t *testing.T) {
	b := New(Options{InARow: 1, Calm: 10 * time.Second, Wait: func(opened int) time.Duration { return time.Second << opened }})
	now := 0.0
	for _, step := range []struct {
		after float64 // seconds, in which it stays as it is
		v     Verdict
		want  float64 // seconds until it may be tried; 0 = it is closed
	}{
		{0, Failed, 1},
		{1, Failed, 2},
		{2, Failed, 4},
		{4, Worked, 0},
		{9, Failed, 8}, // it was back for less than Calm
		{8, Worked, 0},
		{10, Failed, 1},
	} {
		now += step.after
		try, ok := b.Begin(at(now))
		if !ok {
			t.Fatalf("at %vs no try goes out", now)
		}
		b.Give(at(now), try, step.v)
		if got := b.RetryIn(at(now)).Seconds(); got != step.want || (b.State(at(now)) == Closed) != (step.want == 0) {
			t.Errorf("at %vs: %v, to be tried in %vs; want %vs", now, b.State(at(now)), got, step.want)
		}
	}
}

// The window is of the last minute, and only enough verdicts are believed.
func TestHalfOfAWindow(t *testing.T) {
	o := OfBackend()
	for name, c := range map[string]struct {
		every float64 // seconds from verdict to verdict, which fail and work in turn
		n     int
		want  State
	}{
		"19 within a minute":  {1, 19, Closed},
		"20 within a minute":  {1, 20, Open},
		"20 within two":       {6, 20, Closed},
		"200, 6 s apart":      {6, 200, Closed},
		"200, one in a third": {0.3, 200, Open},
	} {
		b := New(o)
		for i := range c.n {
			b.Count(at(float64(i)*c.every), []Verdict{Worked, Failed}[i%2])
			if b.State(at(float64(i)*c.every)) == Open {
				break
			}
		}
		if c.n == 19 {
			b.Count(at(19), Worked) // a 20th that works does not open it
		}
		if got := b.state; got != c.want {
			t.Errorf("%s: state %d, want %d", name, got, c.want)
		}
	}
}

// Whatever is asked, given and forgotten, in any order: while open nobody goes
// out; while half-open one at most; and it never stays open for longer than Wait.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := OfBackend()
		b := New(o)
		now, openSince := 0.0, -1.0
		var out []*Try
		probes := map[*Try]bool{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now += rapid.SampledFrom([]float64{0, 0, 0, 0.1, 1, 5, 60, 200}).Draw(t, "after")
			before := b.State(at(now))
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				try, ok := b.Begin(at(now))
				if ok == (before == Open) && before != HalfOpen {
					t.Fatalf("at %vs in state %d: let through %v", now, before, ok)
				}
				if !ok {
					break
				}
				if out = append(out, try); before == HalfOpen {
					for p := range probes {
						if !p.given && at(now).Sub(p.begun) < o.Lost && p.epoch == b.epoch {
							t.Fatalf("at %vs a second probe goes out", now)
						}
					}
					probes[try] = true
				}
			case 2:
				if len(out) > 0 {
					i := rapid.IntRange(0, len(out)-1).Draw(t, "which")
					b.Give(at(now), out[i], Verdict(rapid.IntRange(0, 2).Draw(t, "verdict")))
				}
			case 3:
				b.Ended(at(now), Verdict(rapid.IntRange(0, 2).Draw(t, "ended")))
			}
			switch after := b.State(at(now)); {
			case after != Open:
				openSince = -1
			case openSince < 0:
				openSince = now
			case now-openSince >= o.Wait(0).Seconds() && before == Open:
				t.Fatalf("it is open since %vs at %vs", openSince, now)
			}
		}
	})
}

// A clock that stands before 1970 counts like any other.
func TestBeforeTheEpoch(t *testing.T) {
	b, now := New(OfBackend()), time.Unix(-1000, 0)
	for i := range 20 {
		b.Count(now.Add(time.Duration(i)*time.Second), []Verdict{Worked, Failed}[i%2])
	}
	if got := b.State(now.Add(20 * time.Second)); got != Open {
		t.Errorf("%v after half of 20 failed, want it open", got)
	}
}
