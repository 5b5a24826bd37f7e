package arena

import (
	"flag"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// Settings are drawn as worlds are: several routes on one fleet, each with a floor, a grace,
// a max_ttft, a line and lengths of its own. Engines have caps and priors, right and wrong.

var settingsFlag = flag.Int("settings", 0, "worlds with drawn settings to print, from -first on; 0 = none")

const (
	settingsLength = 4 * time.Minute
	settingsSeed   = 0x5e77

	// mostDrawn is the most requests/s of one route: short answers would take all of the time.
	mostDrawn = 10.0
)

// settingsWorld is a world with drawn settings; loads are those of its routes.
type settingsWorld struct {
	aWorld
	loads []settingsLoad
}

// settingsLoad is what comes to one route.
type settingsLoad struct {
	lengths    []length
	rate       float64 // requests/s
	begin, end time.Duration
	lower      bool // one in five asks for half the floor, or none
	hanging    bool
}

// drawSettings draws the world of a seed.
func drawSettings(seed uint64) *settingsWorld {
	rng := rand.New(rand.NewPCG(seed, settingsSeed))
	w := &settingsWorld{aWorld: aWorld{pool: pool{name: fmt.Sprint("settings ", seed), length: settingsLength, replicas: 1 << rng.IntN(3)}}}
	w.floor = math.Round(10 + 30*rng.Float64())
	lengths := w.drawLengths(rng)
	w.drawEngines(rng, lengths)
	w.drawBackends(rng, meanOf(lengths))
	load := 0.5 + rng.Float64()
	routes := 2 + rng.IntN(4)
	for i := range routes {
		l := settingsLoad{lengths: lengths, end: settingsLength, lower: rng.IntN(4) == 0, hanging: rng.IntN(4) == 0}
		if rng.IntN(2) == 0 {
			l.lengths = w.drawLengths(rng)
		}
		if rng.IntN(3) == 0 {
			l.begin = time.Duration(rng.IntN(120)) * time.Second
			l.end = l.begin + 2*time.Minute
		}
		r := w.drawRoute(rng, i)
		need := max(r.SLO.MinTPS, w.floor)
		l.rate = min(load/float64(routes)*w.users(&r, need, l.lengths)*need/meanOf(l.lengths).answer+0.02, mostDrawn)
		if r.floored() && rng.IntN(5) == 0 {
			r.SLO.Guarantee.Places = 1 + int(w.users(&r, need, l.lengths)/4)
		}
		w.routes, w.loads = append(w.routes, r), append(w.loads, l)
		w.say("%s: %v %+v, attainment %v, grace %v, %v on %d, %.1f/s from %v to %v", r.Name, r.Class, r.SLO, r.Attainment, r.Grace, r.OnInfeasible, len(r.Targets), l.rate, l.begin, l.end)
	}
	if rng.IntN(4) == 0 && w.routes[1].floored() {
		w.routes[1].OnInfeasible = []router.Step{{Kind: router.Spill, Route: "r0"}, {Kind: router.Shed}}
		w.say("r1 spills to r0")
	}
	if rng.IntN(3) == 0 {
		w.retries = 3
		w.manners[rng.IntN(int(manners))] = 1
	}
	w.say("load %.2f, %d gateways, retries %d %v", load, w.replicas, w.retries, w.manners)
	w.load = func(seed uint64) iter.Seq[Arrival] {
		list := make([]iter.Seq[Arrival], len(w.loads))
		for i := range w.loads {
			list[i] = w.loads[i].arrivals(&w.routes[i], seed*101+uint64(i))
		}
		return merge(list...)
	}
	return w
}

// drawBackends gives engines caps and priors.
func (w *settingsWorld) drawBackends(rng *rand.Rand, m mix) {
	priors := rng.IntN(2) == 0
	for i := range w.backends {
		b := &w.backends[i]
		e := &engine{conf: *b, drift: 1, mix: m}
		if rng.IntN(5) == 0 {
			b.MaxConcurrency = 1 + int(between(rng, 0.3, 1.4)*float64(e.trueUsers(w.floor)))
		}
		if !priors {
			continue
		}
		wrong := 1.0
		if rng.IntN(2) == 0 {
			wrong = between(rng, 0.4, 2.5)
		}
		for _, n := range []int{1, 4, 16, 64} {
			b.Prior = append(b.Prior, profiles.PriorPoint{N: n, TPS: wrong * e.perStep(n) / e.stepSeconds(n, 0)})
		}
		w.say("%s: cap %d, prior ×%.2f", b.Name, b.MaxConcurrency, wrong)
	}
}

// drawRoute draws the route number i: the first one's floor is that of the world.
func (w *settingsWorld) drawRoute(rng *rand.Rand, i int) Route {
	on, floor := w.backends, w.floor
	if i > 0 {
		floor = math.Round(min(max(w.floor*between(rng, 0.25, 3), 5), 80))
	}
	if rng.IntN(3) == 0 {
		on = on[:1+rng.IntN(len(on))]
	}
	r := chat(fmt.Sprint("r", i), floor, on)
	if i > 0 && rng.IntN(5) == 0 {
		r = nightly(on)
		r.Name, r.BatchShare = fmt.Sprint("r", i), []float64{0, 0.1, -1}[rng.IntN(3)]
	}
	r.Grace = time.Duration(between(rng, 0.25, 10) * float64(time.Second)).Round(time.Millisecond)
	r.Attainment = []float64{0.9, 0.99, 0.99, 0.999}[rng.IntN(4)]
	if r.Class == router.Interactive && rng.IntN(2) == 0 {
		r.SLO.MaxTTFT = time.Duration(between(rng, 1, 10) * float64(time.Second)).Round(time.Millisecond)
	}
	switch rng.IntN(6) {
	case 0:
		r.OnInfeasible = r.OnInfeasible[1:]
	case 1:
		r.MaxWaiting = 1 + rng.IntN(10)
	default:
		r.OnInfeasible[0].Wait = time.Duration(between(rng, 0.25, 10) * float64(time.Second)).Round(time.Millisecond)
	}
	r.Prefer = []router.Prefer{router.Headroom, router.Headroom, router.Order, router.Pack}[rng.IntN(4)]
	return r
}

// users is how many with floor the targets of r carry, below their caps.
func (w *settingsWorld) users(r *Route, floor float64, lengths []length) (users float64) {
	for i := range w.backends {
		if b := &w.backends[i]; r.on(b.Name) {
			e := &engine{conf: *b, drift: 1, mix: meanOf(lengths)}
			n := e.trueUsers(floor)
			if b.MaxConcurrency > 0 {
				n = min(n, b.MaxConcurrency)
			}
			users += float64(n)
		}
	}
	return users
}

// meanOf is the mix of these lengths.
func meanOf(lengths []length) mix {
	m := mix{lengths: lengths}
	for _, l := range lengths {
		m.prompts += float64(l.prompt) / float64(len(lengths))
		m.answer += float64(l.answer) / float64(len(lengths))
	}
	return m
}

func (l *settingsLoad) arrivals(r *Route, seed uint64) iter.Seq[Arrival] {
	one := Lengths{Kind: Fixed, Mean: 1}
	g := Generator{Rate: l.rate, Duration: l.end - l.begin, Prompt: one, Output: one}
	return func(yield func(Arrival) bool) {
		rng := stream(seed, streamOutputs)
		for a := range from(l.begin, drawnLoad(g, l.lengths, []Share{{r.Name, 1}}, 1, seed)) {
			if floor := r.SLO.MinTPS * float64(rng.IntN(2)) / 2; l.lower && rng.IntN(5) == 0 {
				a.MinTPS = &floor
			}
			if l.hanging && rng.Float64() < hangUps {
				a.HangsUp = 1 + rng.IntN(a.OutputTokens)
			}
			if !yield(a) {
				return
			}
		}
	}
}

// within reports whether a single stream keeps the floor of r on each of its targets.
func (w *settingsWorld) within(r *Route, lengths []length) bool {
	for i := range w.backends {
		if b := &w.backends[i]; r.on(b.Name) && (&engine{conf: *b, drift: 1, mix: meanOf(lengths)}).trueUsers(r.SLO.MinTPS) == 0 {
			return false
		}
	}
	return true
}

// settingsPlay is what became of one world: of the routes whose floor is within reach,
// who missed it and who was late, and of all with a promise how many were met.
type settingsPlay struct {
	words               string
	served, floor, late int
	met, oracle         int
}

func playSettings(t *testing.T, seed uint64) (x settingsPlay) {
	w := drawSettings(seed)
	x.words = w.name + ": " + strings.Join(w.words, "; ")
	got, best := play(t, w.scenario(Pacer, seed)), play(t, w.scenario(OracleNoMargin, seed))
	for i := range w.routes {
		if w.routes[i].Class == router.Batch {
			continue
		}
		c := got.Routes[i].Counts
		x.met, x.oracle = x.met+c.Met, x.oracle+best.Routes[i].Met
		if w.within(&w.routes[i], w.loads[i].lengths) && w.routes[i].OnInfeasible[0].Kind != router.Spill {
			x.served += c.Met + c.Missed
			x.late += c.Late
			x.floor += c.Missed - c.Late
		}
	}
	return x
}

func (x *settingsPlay) String() string {
	return fmt.Sprintf("missed %d and late %d of %d, met %d, oracle %d | %s", x.floor, x.late, x.served, x.met, x.oracle, x.words)
}

// settingsPlayed are those of the plain run.
const settingsPlayed = 2

// Floors and first tokens are kept whatever is written in the routes.
func TestDrawnSettings(t *testing.T) {
	skipUnderRace(t)
	var sum settingsPlay
	for seed := range uint64(settingsPlayed) {
		x := playSettings(t, seed+1)
		t.Log(x.String())
		sum.served, sum.floor, sum.late = sum.served+x.served, sum.floor+x.floor, sum.late+x.late
		sum.met, sum.oracle = sum.met+x.met, sum.oracle+x.oracle
	}
	if float64(sum.floor) > 0.003*float64(sum.served) || float64(sum.late) > 0.01*float64(sum.served) || float64(sum.met) < 0.95*float64(sum.oracle) {
		t.Errorf("%s; want 0.3 %% missed and 1 %% late at most, and 0.95 of the oracle's", sum.String())
	}
}

// TestSettingsTable prints what became of worlds with drawn settings.
func TestSettingsTable(t *testing.T) {
	if *settingsFlag == 0 {
		t.Skip("go test -v -run TestSettingsTable ./internal/arena -args -settings 50 prints it")
	}
	for i := range *settingsFlag {
		x := playSettings(t, uint64(*firstFlag+i))
		fmt.Fprintln(t.Output(), x.String())
	}
}
