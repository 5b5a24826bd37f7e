package arena

import (
	"flag"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// Days are drawn as worlds are: twelve minutes whose load is another one each minute,
// from one user at a time to more than all can carry, and three disturbances in them.
// They are looked through for engines that stand half empty while users are refused.

var (
	daysFlag = flag.Int("days", 0, "days to draw and to print, from -first on; 0 = none")

	dayLoads = [...]float64{0.03, 0.1, 0.4, 0.8, 1.1, 1.4} // of what is carried
)

const (
	dayMinutes = 12
	daySeed    = 0xdada
	daysPlayed = 12

	// longestIdle is how many seconds an engine may stand half empty beside refusals: so
	// long it takes to find that a slow one is well again.
	longestIdle = 60
)

// drawDay draws the day of a seed.
func drawDay(seed uint64) aWorld {
	rng := rand.New(rand.NewPCG(seed, daySeed))
	w := aWorld{pool: pool{name: fmt.Sprint("day ", seed), length: dayMinutes * time.Minute, replicas: 1}}
	w.floor = math.Round(10 + 30*rng.Float64())
	lengths := w.drawLengths(rng)
	users := w.drawEngines(rng, lengths)
	w.routes = []Route{chat("chat", w.floor, w.backends)}
	shares := []Share{{"chat", 1}}
	w.say("floor %.0f", w.floor)
	if rng.IntN(3) == 0 {
		w.routes = append(w.routes, nightly(w.backends))
		shares = append(shares, Share{"nightly", 0.2 + rng.Float64()})
		w.say("batch %.2f", shares[1].Weight)
	}
	answers := 0.0
	for _, l := range lengths {
		answers += float64(l.answer) / float64(len(lengths))
	}
	var loads [dayMinutes]float64
	for i := range loads {
		loads[i] = dayLoads[rng.IntN(len(dayLoads))]
	}
	w.say("loads %v", loads)
	for range 3 {
		w.drawDisturbance(rng, users)
	}
	slices.SortStableFunc(w.faults, func(a, b Fault) int { return int(a.At - b.At) })
	if rng.IntN(4) == 0 {
		w.replicas = 3
		w.say("three gateways")
	}
	w.load = func(seed uint64) iter.Seq[Arrival] {
		var minutes []iter.Seq[Arrival]
		for i, load := range loads {
			g := Generator{Rate: load * users * w.floor / answers, Duration: time.Minute, Prompt: Lengths{Kind: Fixed, Mean: 1}, Output: Lengths{Kind: Fixed, Mean: 1}}
			minutes = append(minutes, from(time.Duration(i)*time.Minute, drawnLoad(g, lengths, shares, 1, seed+uint64(1000*i))))
		}
		return merge(minutes...)
	}
	return w
}

// drawDisturbance draws one that is over three minutes before the end.
func (w *aWorld) drawDisturbance(rng *rand.Rand, users float64) {
	at, d := time.Duration(rng.IntN(7*60))*time.Second, time.Duration(5*math.Exp(3.178*rng.Float64()))*time.Second
	hit := w.backends[rng.IntN(len(w.backends)):][:1]
	switch rng.IntN(4) {
	case 0:
		w.faults = append(w.faults, Fault{At: at, Kind: Kill, Backend: hit[0].Name}, Fault{At: at + d, Kind: Back, Backend: hit[0].Name})
		w.say("%v: %s dies for %v", at, hit[0].Name, d)
	case 1:
		n := max(int(users/4), 1)
		w.faults = append(w.faults, Fault{At: at, Kind: Tenant, Backend: hit[0].Name, Users: n}, Fault{At: at + d, Kind: TenantGone, Backend: hit[0].Name})
		w.say("%v: %d tenants on %s for %v", at, n, hit[0].Name, d)
	default:
		if rng.IntN(2) == 0 {
			hit = w.backends
		}
		factor := 1.5 + 3*rng.Float64()
		w.faults = append(w.faults, slowdown(hit, at, d, factor)...)
		w.say("%v: ×%.1f for %v on %d from %s", at, factor, d, len(hit), hit[0].Name)
	}
}

// watch looks once a second for engines that stand half empty while users are refused.
type watch struct {
	refused map[string]int    // so far, by route
	skip    map[string]bool   // engines that something else may keep empty
	idle    map[string][2]int // by engine: the seconds since when and until when it did
	longest int               // seconds
	words   string
}

// lull is for how many seconds nobody may be refused before it counts as over.
const lull = 10

func (x *watch) fire(w *world) {
	if w.now+time.Second < w.s.Duration {
		w.agenda.enter(w.now+time.Second, x)
	}
	if x.refused == nil {
		x.refused = map[string]int{}
	}
	refused := map[*Route]bool{}
	for name, tally := range w.routes {
		now := tally.counts.Shed
		refused[tally.route] = tally.route.floored() && now > x.refused[name]
		x.refused[name] = now
	}
	second := int(w.now.Seconds())
	for _, e := range w.engines {
		if x.skip[e.conf.Name] || !e.refuses(refused) || !e.standsEmpty() {
			continue
		}
		span, ok := x.idle[e.conf.Name]
		if !ok || second-span[1] > lull {
			span[0] = second
		}
		span[1] = second
		x.idle[e.conf.Name] = span
		if d := span[1] - span[0]; d > x.longest {
			x.longest, x.words = d, fmt.Sprintf("%s from %d to %d s", e.conf.Name, span[0], span[1])
		}
	}
}

// refuses reports whether one of the routes in which somebody was refused is on e.
func (e *engine) refuses(refused map[*Route]bool) bool {
	for r, yes := range refused {
		if yes && r.on(e.conf.Name) {
			return true
		}
	}
	return false
}

// standsEmpty reports whether users have no more than half of the places that e has for
// them, and nothing but the rules is in the way.
func (e *engine) standsEmpty() bool {
	users, prompts := 0, 0
	for _, v := range e.visits {
		if v.floor > 0 {
			users++
		}
		if v.seen.arrivals == 0 {
			prompts += v.arrival.PromptTokens
		}
	}
	places := e.trueUsers(e.floor())
	return !e.dead && len(e.tenants) == 0 && places >= 3 && 2*users <= places && float64(prompts)*e.conf.Engine.Model.D < 0.3
}

func (w *aWorld) watched(t *testing.T, seed uint64) (watch, Result) {
	return w.watchedFrom(t, seed, time.Second)
}

// watchedFrom plays w, and looks from then on.
func (w *aWorld) watchedFrom(t *testing.T, seed uint64, from time.Duration) (x watch, r Result) {
	return watched(t, w.scenario(Pacer, seed), from)
}

// watched plays s, and looks from then on.
func watched(t *testing.T, s Scenario, from time.Duration) (x watch, r Result) {
	if err := s.complete(); err != nil {
		t.Fatal(err)
	}
	more, stop := iter.Pull(s.Load)
	defer stop()
	x.idle = map[string][2]int{}
	world := newWorld(s, more)
	if err := world.build(); err != nil {
		t.Fatal(err)
	}
	world.agenda.enter(from, &x)
	if err := world.play(t.Context()); err != nil {
		t.Fatal(err)
	}
	return x, world.result()
}

// Nothing that was learned in a quiet hour or on a bad minute keeps users from engines
// that would serve them.
func TestNoEngineStandsEmptyBesideRefusals(t *testing.T) {
	skipUnderRace(t)
	first, days := uint64(1), daysPlayed
	if *daysFlag > 0 {
		first, days = uint64(*firstFlag), *daysFlag
	}
	for i := range days {
		seed := first + uint64(i)
		w := drawDay(seed)
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			x, r := w.watched(t, seed)
			c := w.promised(&r)
			what := fmt.Sprintf("half empty beside refusals for %d s (%s); met %.1f %%, missed %.2f %% | %s",
				x.longest, x.words, 100*c.Attainment(), 100*c.MissedOfServed(), strings.Join(w.words, "; "))
			t.Log(what)
			if x.longest > longestIdle {
				t.Errorf("%s; want %d at most", what, longestIdle)
			}
		})
	}
}
