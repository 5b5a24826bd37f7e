package profiles

import (
	"fmt"
	"testing"
	"time"
)

// beating calls Beat as its loop does.
func (b *bench) beating(until time.Duration) {
	for at := time.Duration(0); at <= until; at += BeatEvery {
		b.book.Beat(start.Add(at))
	}
}

// A stream of 20 tokens/s lives through ten seconds in which this process stood
// still; the backend went on, and 200 tokens are read at once after it. Neither
// those seconds nor those tokens teach, whether the stream or the beat is first
// to go on.
func TestOurOwnPauseIsNoEvidence(t *testing.T) {
	for _, first := range []string{"the stream", "the beat"} {
		b := newBench(t)
		b.calibrated(3, 3)
		b.occ.Set(start, 1)
		s := b.open(Open{Sent: start, Ahead: Ahead{Known: true}})
		b.beating(5 * time.Second)
		end := steady(s, 0, 50*ms, 101) // to 5 s
		back := end + 10*time.Second
		if first == "the beat" {
			b.book.Beat(start.Add(back))
		}
		for i := range 5 { // what piled up, in five reads of the network
			s.Read(start.Add(back+time.Duration(i)*100*time.Microsecond), 40)
		}
		b.book.Beat(start.Add(back + ms))
		for i := 1; i <= 100; i++ {
			s.Read(start.Add(back+time.Duration(i)*50*ms), 1)
		}
		summary := s.Close(start.Add(back+5*time.Second), true)
		var seconds, tokens float64
		for _, d := range b.book.Fold(start.Add(time.Minute)) {
			for i := range d.Sums.bins {
				seconds, tokens = seconds+d.Sums.bins[i].S, tokens+d.Sums.bins[i].Y
			}
		}
		// The last of the five reads is 0.4 ms late, and opens the exposure again.
		within(t, first+": seconds", seconds, 10, 0.001)
		within(t, first+": tokens", tokens, 200, 0.001)
		if summary.Measured {
			t.Errorf("%s: measured at %.1f tokens/s, though half its life was ours", first, summary.TPS)
		}
	}
}

// A first token that came in a pause says nothing of the backend's prefill.
func TestOurOwnPauseBeforeTheFirstToken(t *testing.T) {
	b := newBench(t)
	b.calibrated(3, 3)
	b.occ.Set(start, 1)
	s := b.open(Open{Sent: start, PromptTokens: 1000, Ahead: Ahead{Known: true}})
	b.beating(200 * ms)
	for i := range 60 {
		s.Read(start.Add(10*time.Second+time.Duration(i)*50*ms), 1)
	}
	s.Close(start.Add(13*time.Second), true)
	for _, d := range b.book.Fold(start.Add(time.Minute)) {
		if d.Sums.firsts.N != 0 {
			t.Errorf("%v first tokens, want none", d.Sums.firsts.N)
		}
	}
}

// A backend that stalls while this process goes on is slow.
func TestAStallOfTheBackendIsEvidence(t *testing.T) {
	b := newBench(t)
	b.calibrated(3, 3)
	b.occ.Set(start, 1)
	b.beating(5 * time.Second)
	s := b.open(Open{Sent: start})
	end := steady(s, 0, 50*ms, 101)
	for at := end; at <= end+10*time.Second; at += BeatEvery {
		b.book.Beat(start.Add(at))
	}
	s.Read(start.Add(end+10*time.Second), 1)
	s.Close(start.Add(end+10*time.Second), true)
	var seconds float64
	for _, d := range b.book.Fold(start.Add(time.Minute)) {
		seconds += d.Sums.bins[0].S
	}
	within(t, "seconds", seconds, 15, 0.001)
}

func TestOnlyTheLastPausesAreKept(t *testing.T) {
	b := NewBook(Options{})
	for i := range 100 {
		b.Beat(start.Add(time.Duration(i) * time.Minute))
	}
	if got := len(*b.heart.paused.Load()); got != pausesKept {
		t.Errorf("%d pauses are kept, want %d", got, pausesKept)
	}
	if !b.heart.pausedIn(98*time.Minute, 99*time.Minute) || b.heart.pausedIn(99*time.Minute, 99*time.Minute+ms) {
		t.Error("the last minute was a pause, and what follows is none")
	}
}

// TestASilenceThatNobodyOutlastedIsNoSpeed: an engine that died leaves its streams silent
// until somebody breaks them off. What it gave before tells how fast it is.
func TestASilenceThatNobodyOutlastedIsNoSpeed(t *testing.T) {
	for _, c := range []struct {
		silent time.Duration
		want   float64
	}{{2 * time.Second, 7}, {5 * time.Second, 10}, {time.Minute, 5}} {
		b := newBench(t)
		b.calibrated(3, 3)
		b.occ.Set(start, 1)
		s := b.open(Open{Sent: start})
		end := steady(s, 0, 50*ms, 101)
		s.Close(start.Add(end+c.silent), false)
		var seconds float64
		for _, d := range b.book.Fold(start.Add(2 * time.Minute)) {
			seconds += d.Sums.bins[0].S
		}
		within(t, fmt.Sprintf("seconds, broken off after a silence of %v", c.silent), seconds, c.want, 0.001)
	}
}

// While an engine shows no life nothing says how fast it is when it does; what the stream
// got is slower for it all the same.
func TestWhileAnEngineHangsNothingIsEvidence(t *testing.T) {
	for _, c := range []struct {
		hung          bool
		seconds, mean float64
	}{{true, 10, 200 / 60.0}, {false, 60, 200 / 60.0}} {
		b := newBench(t)
		b.calibrated(3, 3)
		b.occ.Set(start, 1)
		s := b.open(Open{Sent: start})
		end := steady(s, 0, 50*ms, 101) // 5 s
		if c.hung {
			s.Hung()
		}
		end = steady(s, end+50*time.Second, 50*ms, 101)
		sum := s.Close(start.Add(end), true)
		var seconds float64
		for _, d := range b.book.Fold(start.Add(2 * time.Minute)) {
			seconds += d.Sums.bins[0].S
		}
		within(t, fmt.Sprintf("seconds, hung %v", c.hung), seconds, c.seconds, 0.01)
		within(t, fmt.Sprintf("tokens/s of the stream, hung %v", c.hung), sum.TPS, c.mean, 0.02)
		if !sum.Measured {
			t.Errorf("hung %v: the stream is not measured, and so misses no floor", c.hung)
		}
	}
}
