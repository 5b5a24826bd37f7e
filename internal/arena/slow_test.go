package arena

import (
	"flag"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

var slowFlag = flag.Int("slow", 0, "fleets to draw, of which one engine is slow for minutes, from -first on; 0 = a few")

const (
	slowSeed   = 0x510
	slowFirst  = 10
	slowPlayed = 10
	slowFor    = 5 * time.Minute
)

// drawSlow draws a fleet of which one engine becomes slow for d.
func drawSlow(seed uint64, d time.Duration) aWorld {
	rng := rand.New(rand.NewPCG(seed, slowSeed))
	w := aWorld{pool: pool{name: fmt.Sprint("slow ", seed), length: worldEvent + d + 4*time.Minute, replicas: 1}}
	w.floor = math.Round(10 + 30*rng.Float64())
	lengths := w.drawLengths(rng)
	users := w.drawEngines(rng, lengths)
	w.routes = []Route{chat("chat", w.floor, w.backends)}
	answers := 0.0
	for _, l := range lengths {
		answers += float64(l.answer) / float64(len(lengths))
	}
	load := 0.9 + 0.5*rng.Float64()
	g := Generator{Rate: load * users * w.floor / answers, Duration: w.length, Prompt: Lengths{Kind: Fixed, Mean: 1}, Output: Lengths{Kind: Fixed, Mean: 1}}
	hit := w.backends[rng.IntN(len(w.backends)):][:1]
	w.faults = slowdown(hit, worldEvent, d, 2.5+2*rng.Float64())
	w.load = func(seed uint64) iter.Seq[Arrival] {
		return drawnLoad(g, lengths, []Share{{"chat", 1}}, 1, seed)
	}
	return w
}

// An engine that was slow for minutes does not stand idle for as long again. Tries are a
// quarter of that apart, and one may take a while.
func TestAnEngineThatWasSlowForMinutesIsUsedAgain(t *testing.T) {
	skipUnderRace(t)
	first, fleets := uint64(slowFirst), slowPlayed
	if *slowFlag > 0 {
		first, fleets = uint64(*firstFlag), *slowFlag
	}
	for i := range fleets {
		seed := first + uint64(i)
		w := drawSlow(seed, slowFor)
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			x, r := w.watchedFrom(t, seed, worldEvent+slowFor)
			c := w.promised(&r)
			t.Logf("half empty beside refusals for %d s; met %.1f %%, missed %d of %d", x.longest, 100*c.Attainment(), c.Missed, c.Met+c.Missed)
			if most := slowFor/4 + 15*time.Second; time.Duration(x.longest)*time.Second > most {
				t.Errorf("half empty beside refusals for %d s (%s), want %v at most", x.longest, x.words, most)
			}
		})
	}
}
