package arena

import (
	"iter"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/sim"
)

// flat is an engine whose steps take 20 ms, however many of at most four decode.
// A token of four costs 5 ms of it.
func flat() Backend {
	return Backend{Name: "x", Engine: sim.EngineOptions{Model: sim.Model{A: 0.02, D: 1e-4}, MaxNumSeqs: 4, Noise: -1}}
}

// alikes are so many requests at once, a prompt of 1000 and an answer of 101 each.
func alikes(count int) func(uint64) iter.Seq[Arrival] {
	return func(uint64) iter.Seq[Arrival] {
		return slices.Values(slices.Repeat([]Arrival{{Route: "chat", PromptTokens: 1000, OutputTokens: 101}}, count))
	}
}

// Each costs 100 tokens at 5 ms and 0.1 s of prompt, 0.6 s, and has to be done
// 10 + 1 + 100/30 s after it came at most: the bins up to 15 s have room for 25.
func TestTheUpperBoundOfAFlatEngine(t *testing.T) {
	p := pool{backends: []Backend{flat()}, load: alikes(100), length: time.Second}
	p.routes = []Route{chat("chat", 30, p.backends)}
	if got, want := p.upperBound(1), 25*noiseOfRun; math.Abs(got-want) > 0.1 {
		t.Errorf("at most %.2f of 100, want %.2f", got, want)
	}
	p.load = alikes(10)
	if got := p.upperBound(1); got != 10 {
		t.Errorf("at most %.2f of 10 that fit, want all", got)
	}
	p.routes[0].SLO.MinTPS = 100 // twice what one alone gets: after its second of grace 50 of 100 are missing
	if got := p.upperBound(1); got != 10 {
		t.Errorf("at most %.2f of 10 whose grace makes up for it, want all", got)
	}
	p.routes[0].Grace = 0
	if got := p.upperBound(1); got != 0 {
		t.Errorf("at most %.2f at a floor that nobody gets, want none", got)
	}
	p.routes[0].SLO.MinTPS = 30
	p.faults = []Fault{{Kind: Drift, Backend: "x", Factor: 1.5}}
	p.load = alikes(100)
	slowed := p.upperBound(1)
	if want := 25 / 1.5 * noiseOfRun; math.Abs(slowed-want) > 0.1 {
		t.Errorf("at most %.2f where all takes 1.5 times as long, want %.2f", slowed, want)
	}
	p.faults = []Fault{{Kind: Kill, Backend: "x"}}
	if got := p.upperBound(1); got > 1e-6 {
		t.Errorf("at most %.2f on a dead engine, want none", got)
	}
}

// A policy that is nearly perfect comes close: four at a time, for ever.
func TestTheUpperBoundIsReached(t *testing.T) {
	p := pool{backends: []Backend{flat()}, length: 100 * time.Second, load: func(uint64) iter.Seq[Arrival] {
		return func(yield func(Arrival) bool) {
			for at := time.Duration(0); at < 100*time.Second; at += 500 * time.Millisecond {
				if !yield(Arrival{At: at, Route: "chat", PromptTokens: 10, OutputTokens: 101}) {
					return
				}
			}
		}
	}}
	p.routes = []Route{chat("chat", 30, p.backends)}
	s := p.scenario(LeastRequests, 1)
	s.Backends = slices.Clone(s.Backends)
	s.Backends[0].MaxConcurrency = 4
	c := p.promised(play(t, s))
	if bound := p.upperBound(1); float64(c.Met) > bound || float64(c.Met) < 0.95*bound {
		t.Errorf("%d met of at most %.1f", c.Met, bound)
	}
}

func TestTheLowerHull(t *testing.T) {
	e := boundEngine{hull: lowerHull([][2]float64{{1, 4}, {2, 3.5}, {3, 1}, {4, 1.2}, {5, 0.5}})}
	for s, want := range map[float64]float64{1: 4, 2: 2.5, 3: 1, 4: 0.75, 5: 0.5, 9: 0.5} {
		if got := e.hullAt(s); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v at %v, want %v", got, s, want)
		}
	}
	if !math.IsInf(e.hullAt(0.9), 1) {
		t.Error("a step that short cannot be")
	}
}

// With one step for all, the grace does not help, and nobody waits in line for
// more than two seconds: 4 + 1 + 100/30 s, in whole seconds nine, in which 0.6 are taken by each.
func TestTheAssignmentOfAFlatEngine(t *testing.T) {
	p := pool{backends: []Backend{flat()}, load: alikes(100), length: time.Second}
	p.routes = []Route{chat("chat", 30, p.backends)}
	if got, want := p.assignment(1), 9/0.6*noiseOfRun; math.Abs(got-want) > 0.1 {
		t.Errorf("%.2f of 100, want %.2f", got, want)
	}
	p.load = alikes(10)
	if got := p.assignment(1); got != 10 {
		t.Errorf("%.2f of 10 that fit, want all", got)
	}
	// Each prompt of 1000 stops three others too: a step of four has 40 tokens of
	// prompts, 24 ms in all, and 45 tokens/s are beyond it. Three have 23 ms.
	p.load, p.routes[0].SLO.MinTPS, p.routes[0].Grace = alikes(100), 1/0.02301, 0
	if got, want := p.assignment(1), 7/(0.1+100*0.02/3)*noiseOfRun; math.Abs(got-want) > 0.2 {
		t.Errorf("%.2f at a floor that three keep, want %.2f", got, want)
	}
}

// Prompts of 100 cost 0.51 s, those of 4000 cost 0.9 s. Most are met where only short
// ones are. Who meets as many of both has 0.705 s for each.
func TestTheAssignmentOfLengths(t *testing.T) {
	p := pool{backends: []Backend{flat()}, length: time.Second, load: func(uint64) iter.Seq[Arrival] {
		return func(yield func(Arrival) bool) {
			for i := range 200 {
				if !yield(Arrival{Route: "chat", PromptTokens: []int{100, 4000}[i%2], OutputTokens: 101}) {
					return
				}
			}
		}
	}}
	p.routes = []Route{chat("chat", 30, p.backends)}
	if got, want := p.assignment(1), 9/0.51*noiseOfRun; math.Abs(got-want) > 0.3 {
		t.Errorf("%.2f of 200, want %.2f", got, want)
	}
	const both = 9 / 0.705 * noiseOfRun
	if got := p.assignmentOfLengths(1, [4]float64{both / 2, 0, both / 2, 0}); math.Abs(got-both) > 0.3 {
		t.Errorf("%.2f of 200 by who meets as many long ones, want %.2f", got, both)
	}
	if got := p.assignmentOfLengths(1, [4]float64{9 / 0.51}); math.Abs(got-9/0.51*noiseOfRun) > 0.3 {
		t.Errorf("%.2f of 200 by who meets short ones only, want as many as by all", got)
	}
}

// Two engines that give one stream 100 tokens/s and four streams 40: one serves those who
// need 90, the other those who need 30.
func TestTheAssignmentGivesAFloorItsEngine(t *testing.T) {
	law := Backend{Engine: sim.EngineOptions{Model: sim.Model{A: 0.005, C: 0.005}, MaxNumSeqs: 4, Noise: -1}}
	a, b := law, law
	a.Name, b.Name = "a", "b"
	p := pool{backends: []Backend{a, b}, length: 100 * time.Second, load: func(uint64) iter.Seq[Arrival] {
		return func(yield func(Arrival) bool) {
			for at := time.Duration(0); at < 100*time.Second; at += time.Second {
				for _, route := range []string{"slow", "slow", "fast"} {
					if !yield(Arrival{At: at, Route: route, PromptTokens: 1, OutputTokens: 91}) {
						return
					}
				}
			}
		}
	}}
	p.routes = []Route{chat("slow", 30, p.backends), chat("fast", 90, p.backends)}
	for i := range p.routes {
		p.routes[i].Grace = 0
	}
	if got := p.assignment(1); got < 280 {
		t.Errorf("%.1f of 300, want nearly all: 100 on one engine, 200 on the other", got)
	}
	p.backends = p.backends[:1]
	// For those who need 30 it has 160 tokens/s, in the 100 s and the seven of the last one.
	if got, want := p.assignment(1), 107*160/90.0; math.Abs(got-want) > 5 {
		t.Errorf("%.1f of 300 on one engine, want %.0f", got, want)
	}
}
