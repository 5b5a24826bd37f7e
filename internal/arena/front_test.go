package arena

import (
	"testing"
	"time"

	"github.com/pacer-dev/pacer/sim"
)

// twoOf are two engines that carry many, of which the first has this front.
func twoOf(front Front, ranks int) pool {
	engine := sim.EngineOptions{Model: sim.Model{A: 0.02, D: 1e-5}}
	b := []Backend{{Name: "a", Engine: engine, Ranks: ranks, Front: front}, {Name: "b", Engine: engine}}
	return pool{backends: b, routes: []Route{chat("chat", 0, b)}, load: chatting(2, time.Minute), length: time.Minute}
}

// A request that a limit turns away waits in line for another backend, as in the gateway.
func TestWhoIsTurnedAwayStandsInLine(t *testing.T) {
	for _, told := range []bool{false, true} {
		p := twoOf(Front{PerMinute: 10, Told: told}, 1)
		p.load = chatting(0.3, time.Minute)
		p.backends[1].MaxConcurrency = 1
		p.routes[0].OnInfeasible[0].Wait = 5 * time.Minute
		c := play(t, p.scenario(Pacer, 1)).Routes[0].Counts
		if t.Logf("told %v: %+v", told, c); c.Failed > 0 || c.Met != c.Offered {
			t.Errorf("told %v: %+v, want all met", told, c)
		}
	}
}

// A proxy delays tokens, and loses none.
func TestAProxyCollectsTokens(t *testing.T) {
	plain := play(t, twoOf(Front{}, 1).scenario(Pacer, 1))
	for _, front := range []Front{{Flush: 400 * time.Millisecond}, {Chunk: 16}} {
		p := twoOf(front, 1)
		p.backends[1].Front = front
		got := play(t, p.scenario(Pacer, 1))
		if got.Routes[0].Met != plain.Routes[0].Met || got.Tokens != plain.Tokens {
			t.Errorf("%+v: %d met with %d tokens, want %d with %d", front, got.Routes[0].Met, got.Tokens, plain.Routes[0].Met, plain.Tokens)
		}
		if later := got.Routes[0].TTFTP50 - plain.Routes[0].TTFTP50; later < 100*time.Millisecond {
			t.Errorf("%+v: first tokens %v later, want a tenth of a second or more", front, later)
		}
	}
}

// With one of its ranks a backend loses what runs there, and serves on with the other.
func TestARankDies(t *testing.T) {
	for _, pick := range []Pick{Emptiest, AnyRank, Sticky} {
		p := twoOf(Front{Pick: pick, Lame: 1.5}, 2)
		p.backends[1].MaxConcurrency = 1
		whole := play(t, p.scenario(Pacer, 1)).Routes[0].Counts
		p.faults = []Fault{{At: 20 * time.Second, Kind: RankDies, Backend: "a"}, {At: 40 * time.Second, Kind: RankBack, Backend: "a"}}
		r := play(t, p.scenario(Pacer, 1))
		c := r.Routes[0].Counts
		if whole.Failed > 0 || c.Failed == 0 && pick != Sticky || c.Failed > whole.Offered/4 || r.Backends[0].OutputTokens == 0 {
			t.Errorf("pick %v: failed %d of %d, and %d while nothing dies; want those of one rank", pick, c.Failed, c.Offered, whole.Failed)
		}
	}
}
