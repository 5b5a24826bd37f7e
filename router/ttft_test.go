package router

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/profiles"
)

// firstToken is one that came: when, and how long after the user had asked.
type firstToken struct {
	route string
	at    time.Time
	took  time.Duration
}

// withoutTTFT is a curve that says nothing about first tokens.
type withoutTTFT struct{ *profiles.Curve }

func (withoutTTFT) TTFT() profiles.TTFT { return profiles.TTFT{} }

// burstsOf are users who ask once each: for five seconds and more at a stretch
// they come at three times the rate (a quarter of the time) or a third of it.
func burstsOf(r *rand.Rand, rate float64, until time.Duration, u user) []*user {
	var list []*user
	var at, turn time.Duration
	factor := 1.0
	for at < until {
		for at >= turn {
			factor = 1.0 / 3
			if r.Float64() < 0.25 {
				factor = 3
			}
			turn += seconds(5 + 10*r.ExpFloat64())
		}
		at += seconds(r.ExpFloat64() / (rate * factor))
		one := u
		one.at, one.once = start.Add(at), true
		list = append(list, &one)
	}
	return list
}

// Engines in front of which everybody else waits once their slots are taken, and
// bursts that would fill them two times over: of those admitted since the knee was
// learned, 99 in 100 get their first token in time. A router that is not told of
// it learns of a queue when it is there. In the second, who waits for a slot has
// prompts ahead that take a good part of that time.
func TestFirstTokensInTimeUnderBursts(t *testing.T) {
	const most = 2 * time.Second
	for _, c := range racetest.Rows([]struct {
		name          string
		engine        engine
		rate, floor   float64
		prompt        int
		steps         []Step
		learning, end time.Duration
	}{
		{"8 slots", engine{a: 0.02, b: 0.0006, d: 5e-5, budget: 2048, slots: 8}, 2, 0, 500, queue(most), 3 * time.Minute, 15 * time.Minute},
		{"24 slots", engine{a: 0.01, b: 0.0002, d: 3e-5, budget: 2048, slots: 24}, 9, 0, 1000, []Step{{Kind: Shed}}, 2 * time.Minute, 6 * time.Minute},
	}) {
		t.Run(c.name, func(t *testing.T) {
			late := func(hide bool) (share float64, admitted int) {
				rt := Route{Name: "chat", SLO: SLO{MinTPS: c.floor, MaxTTFT: most}, OnInfeasible: c.steps}
				e := c.engine
				w := newWorld(newBench(t, []string{"x"}, rt), map[string]*engine{"x": &e})
				w.learnBy("real")
				w.hideTTFT = hide
				w.later = burstsOf(rand.New(rand.NewPCG(3, 1)), c.rate, c.end, user{route: "chat", prompt: c.prompt, tokens: 128, spread: true})
				w.until(c.end)
				count := 0
				for _, f := range w.firsts {
					if f.at.Sub(start) < c.learning {
						continue
					}
					admitted++
					if f.took > most {
						count++
					}
				}
				return float64(count) / float64(admitted), admitted
			}
			with, served := late(false)
			without, control := late(true)
			t.Logf("late %.1f %% of %d admitted, without the model %.1f %% of %d", 100*with, served, 100*without, control)
			if with > 0.01 {
				t.Errorf("%.1f %% of the first tokens came too late, want at most 1 %%", 100*with)
			}
			if without < 0.1 {
				t.Errorf("only %.1f %% came too late without the model: the load is no test", 100*without)
			}
			if float64(served) < 0.9*float64(control) {
				t.Errorf("%d were admitted, %d without the model: that is paid for with refusals", served, control)
			}
		})
	}
}

// eight is an engine with eight slots of which two come free each second.
func eight() form {
	c := carrying(1000, 1, 60)
	c.first = profiles.TTFT{Base: 0.1, PerToken: 1e-4, Uncached: 1, Slots: 8, Turnover: 2}
	return c
}

func TestRule5SeesTheKnee(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MaxTTFT: 3 * time.Second}}, Route{Name: "free"})
	b.learn("x", eight())
	leases := b.fill("free", 7)
	for _, l := range leases {
		l.FirstToken(b.now)
	}
	b.wantReason("chat", OK)
	last := b.place("free").Lease // takes the last slot
	last.FirstToken(b.now)
	// One place in line: half a second on average, 2.3 s at the 99th percentile.
	b.wantReason("chat", OK)
	b.wantReason("chat", ReasonTTFT, func(r *Request) { r.Arrived = b.now.Add(-time.Second) })
	b.wantReason("chat", ReasonTTFT, ttft(2*time.Second))
	waiting := b.place("free").Lease
	b.wantReason("chat", ReasonTTFT)
	b.wantReason("free", OK) // a route that promises nothing about it is not limited by it
	if got := waiting.Ahead(); got != (profiles.Ahead{Known: true, Sequences: 8}) {
		t.Errorf("ahead of the ninth: %+v, want 8 sequences", got)
	}
	waiting.Done(b.now, 0)
	last.Done(b.now, 10)
	b.wantReason("chat", OK, ttft(time.Second))
}

// Who waits in line moves up in that of the engine: only where that one alone is
// too long does waiting make no sense. Time for the own prefill has to be left.
func TestLineInFrontOfAFullEngine(t *testing.T) {
	b := newBench(t, []string{"x"},
		Route{Name: "chat", SLO: SLO{MaxTTFT: 2 * time.Second}, OnInfeasible: queue(10 * time.Second)}, Route{Name: "free"})
	b.learn("x", eight())
	leases := b.fill("free", 8)
	for _, l := range leases {
		l.FirstToken(b.now)
	}
	d := b.place("chat", prompt(4000), waiter("u")) // 0.1 s and 0.4 s of its own
	if d.Ticket == nil {
		t.Fatalf("got %+v, want a ticket", d)
	}
	if got, want := d.Ticket.Deadline().Sub(b.now), time.Second; (got - want).Abs() > time.Microsecond {
		t.Errorf("may wait %v, want %v", got, want)
	}
	if grants := leases[0].Done(b.now, 10); len(grants) != 1 || grants[0].Waiter != "u" {
		t.Errorf("a slot is free: got %+v, want it granted", grants)
	}
	b.fill("free", 4) // more than two seconds of line in the engine
	b.wantRefusal(b.place("chat"), ShedTTFT)
	b.wantRefusal(b.place("chat", prompt(1e6)), ShedTTFT)
}

// Answers that are no streams count as decoding from the predicted TTFT on, the
// wait for a slot included.
func TestWholeAnswersWaitForASlot(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "free"})
	b.learn("x", eight())
	for _, l := range b.fill("free", 8) {
		l.FirstToken(b.now)
	}
	b.place("free", whole, prompt(2000)) // 0.5 s for a slot, 0.1 s, 0.2 s of prefill
	b.sleep(799 * time.Millisecond)
	b.tick()
	if got := b.load(0); got.Decoding != 8 {
		t.Errorf("after 799 ms %d decode, want 8", got.Decoding)
	}
	b.sleep(2 * time.Millisecond)
	b.tick()
	if got := b.load(0); got.Decoding != 9 {
		t.Errorf("after 801 ms %d decode, want 9", got.Decoding)
	}
}
