package router

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/profiles"
)

// twin is a router under random events, and what it decided.
type twin struct {
	*bench
	random  *rand.Rand
	leases  []*Lease
	tokens  []float64 // of leases
	tickets []*Ticket
	told    []string
}

func newTwin(t *testing.T, seed uint64) *twin {
	chat := Route{Name: "chat", SLO: SLO{MinTPS: 30}, MaxWaiting: 4, OnInfeasible: []Step{
		{Kind: Queue, Wait: time.Second}, {Kind: Spill, Route: "small"}, {Kind: Shed},
	}}
	small := Route{Name: "small", SLO: SLO{MinTPS: 20}, OnInfeasible: queue(time.Second), Targets: targets("y")}
	w := &twin{bench: newBench(t, []string{"x", "y"}, chat, small), random: rand.New(rand.NewPCG(seed, 7))}
	w.learn("x", carrying(3, 30, 60))
	w.learn("y", carrying(4, 20, 60))
	return w
}

func (w *twin) note(d Decision) {
	what := ""
	switch {
	case d.Lease != nil:
		w.leases, w.tokens = append(w.leases, d.Lease), append(w.tokens, 0)
		what = fmt.Sprint(d.Policy, d.Spilled, d.Lease.Target(), d.Lease.Floor())
	case d.Ticket != nil:
		w.tickets = append(w.tickets, d.Ticket)
		what = fmt.Sprint("waits till ", d.Ticket.Deadline().Sub(start))
	default:
		what = fmt.Sprint(d.Refusal.Reason, d.Refusal.RetryAfter)
	}
	w.told = append(w.told, fmt.Sprint(w.now.Sub(start), " ", what))
}

func (w *twin) settle(grants []Grant) {
	for _, g := range grants {
		w.note(g.Decision)
	}
}

// step is one random event.
func (w *twin) step() {
	pick := w.random.IntN
	switch pick(6) {
	case 0, 1, 2:
		floor := []float64{15, 30, 30, 50, 100}[pick(5)]
		w.note(w.place([]string{"chat", "small"}[pick(2)], wish(floor), tenant(fmt.Sprint(pick(3))), prompt(pick(500)), func(r *Request) { r.Key = uint64(pick(20)) }))
	case 3:
		if len(w.leases) > 0 {
			i := pick(len(w.leases))
			w.settle(w.leases[i].Done(w.now, w.tokens[i]+1))
			w.leases, w.tokens = slices.Delete(w.leases, i, i+1), slices.Delete(w.tokens, i, i+1)
		}
	case 4:
		for i, l := range w.leases {
			l.FirstToken(w.now)
			w.tokens[i] += 3
			l.Progress(w.now, profiles.Count{Tokens: w.tokens[i]})
		}
		w.settle(w.tick())
	case 5:
		waiting := w.tickets
		w.tickets = nil
		for _, tk := range waiting {
			if tk.state == inLine && !tk.Deadline().After(w.now) {
				w.note(tk.Expire(w.now))
			} else if tk.state == inLine {
				w.tickets = append(w.tickets, tk)
			}
		}
	}
}

// Of two routers that see the same at the same times, the one that is asked for
// previews all the time decides the same.
func TestPreviewsChangeNoDecision(t *testing.T) {
	for seed := range uint64(racetest.Some(20)) {
		plain, asked := newTwin(t, seed), newTwin(t, seed)
		pick := rand.New(rand.NewPCG(seed, 8)).IntN
		pause := rand.New(rand.NewPCG(seed, 9)).IntN
		for range 600 {
			d := time.Duration(pause(80)) * time.Millisecond
			plain.sleep(d)
			asked.sleep(d)
			previews := pick(4)
			if previews > 0 {
				plain.mu.Lock()
				plain.advance(plain.now)
				plain.mu.Unlock()
			}
			for range previews {
				floor := []float64{0, 15, 30, 50, 100, 1000}[pick(6)]
				asked.Preview(asked.now, Request{
					Route: []string{"chat", "small"}[pick(2)], MinTPS: &floor, PromptTokens: pick(4000), Arrived: asked.now, NoQueue: pick(2) == 0,
				})
			}
			plain.step()
			asked.step()
			if !slices.Equal(plain.told, asked.told) {
				last := func(told []string) []string { return told[max(len(told)-3, 0):] }
				t.Fatalf("seed %d: the last decisions are %q, with previews %q", seed, last(plain.told), last(asked.told))
			}
		}
		if len(plain.told) < 300 {
			t.Fatalf("seed %d: only %d decisions", seed, len(plain.told))
		}
	}
}

// Place looks at the streams first if that was long ago, and slow start may move
// by it: so does a preview, as any question does that comes with the time.
func TestPreviewSeesWhatPlaceWillSee(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}})
	leases := b.fill("chat", 10)
	for _, l := range leases {
		l.FirstToken(b.now)
	}
	b.sleep(2 * time.Second)
	for _, l := range leases {
		l.Progress(b.now, profiles.Count{Tokens: 100})
	}
	moved := 0
	for i := range 3 {
		if rec, _ := b.Preview(b.now, Request{Route: "chat", Stream: true}); rec.Outcome != OutcomePlaced {
			t.Errorf("previewed %v (%v), want placed", rec.Outcome, rec.Candidates[0].Reason)
		}
		if limit := b.load(0).Cap; i == 0 {
			moved = limit
		} else if limit != moved {
			t.Errorf("the cap of slow start is %d after another preview, want %d as before", limit, moved)
		}
	}
	if moved <= slowStartCap {
		t.Errorf("the cap of slow start is %d after 20 tokens each, want more than %d", moved, slowStartCap)
	}
	if d := b.place("chat"); d.Lease == nil {
		t.Errorf("placed after 50 tokens/s at a floor of 30: %+v", d.Refusal)
	}
}
